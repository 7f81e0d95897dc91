"""What Ceph's daemons are told at their start: ceph.conf, keys, and who may do what."""

import base64
import os
import struct

KEYRING, CONF = "keyring", "ceph.conf"
MON_PORTS = {"v2": 3300, "v1": 6789}
POOLS = ("meta", "data")
PGS = 16    # a pool
# So that what a few hosts of one machine cannot have is neither waited for nor complained of.
CLUSTER = {
    "auth_cluster_required": "cephx", "auth_service_required": "cephx",
    "auth_client_required": "cephx",
    "mon_allow_pool_size_one": "true", "osd_pool_default_pg_autoscale_mode": "off",
    "mon_max_pg_per_osd": 500, "mon_data_avail_warn": 1, "mon_data_avail_crit": 1,
    # the machine's disk may be fuller than Ceph likes, and is not the cluster's
    "mon_osd_full_ratio": 0.99, "mon_osd_nearfull_ratio": 0.98, "mon_osd_backfillfull_ratio": 0.985,
    "mon_warn_on_insecure_global_id_reclaim": "false",
    "ms_async_op_threads": 1, "ms_bind_ipv6": "false",
    "osd_op_num_shards": 1, "osd_op_num_threads_per_shard": 2,
    "osd_crush_chooseleaf_type": 1, "osd_class_update_on_start": "false",
    "log_to_stderr": "true", "err_to_stderr": "true", "log_file": "", "mon_cluster_log_file": "",
    "mon_cluster_log_to_stderr": "true", "mon_cluster_log_to_file": "false",
}
CAPS = {"mon": {"mon": "allow *"},
        "osd": {"mon": "allow profile osd", "osd": "allow *"},
        "mds": {"mon": "allow profile mds", "osd": "allow *", "mds": "allow *"},
        "client": {"mon": "allow *", "osd": "allow *", "mds": "allow *", "mgr": "allow *"}}


def monitors(address: str) -> str:
    """As `mon host` has it."""
    return "[" + ",".join(f"{way}:{address}:{port}" for way, port in MON_PORTS.items()) + "]"


def text(fsid: str, address: str, home, **more) -> str:
    """ceph.conf of a daemon in the folder `home`; `address` is the monitor's."""
    options = {"fsid": fsid, "mon_host": monitors(address), "keyring": f"{home}/{KEYRING}",
               "run_dir": home, **CLUSTER, **more}
    lines = (f"{key} = {value}" for key, value in options.items() if value is not None)
    return "\n".join(["[global]", *lines, ""])


def new_key(now: float) -> str:
    """A key of cephx's: its type, when it was made, its length, 16 bytes."""
    return base64.b64encode(struct.pack("<HIIH", 1, int(now), 0, 16) + os.urandom(16)).decode()


def keyring(keys: dict[str, str]) -> str:
    """`keys` by name, such as osd.3, each with what its kind may do."""
    lines = []
    for name, key in keys.items():
        caps = CAPS[name.partition(".")[0]]
        lines += [f"[{name}]", f"\tkey = {key}",
                  *(f'\tcaps {part} = "{may}"' for part, may in caps.items())]
    return "\n".join([*lines, ""])

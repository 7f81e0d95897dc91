"""ceph.conf, keys and capabilities, as pure functions of a cluster's settings."""

import base64
import os
import struct

from labbook.errors import InputError

FILE = "settings of ceph"
KEYRING, CONF = "keyring", "ceph.conf"
DEFAULTS = {"grace": 15, "beacon": 4, "tick": 5}  # Ceph's, in s; see `detection`
BALANCING = {"mds_bal_interval": 10, "mds_decay_halflife": 5, "mds_bal_sample_interval": 3}  # Ceph's, in s
MON_PORTS = {"v2": 3300, "v1": 6789}
FS_NAME = "labbook"
POOLS = ("meta", "data")
PGS = 16    # per pool
ADMIN = "client.admin"
# Options of a running MDS that enter the facts.
MDS_FACTS = ("mds_cache_memory_limit", "mds_bal_interval", "mds_decay_halflife", "mds_beacon_interval",
             "mds_beacon_grace", "mds_beacon_mon_down_grace", "mon_tick_interval",
             "paxos_propose_interval")
SECONDS = {"type": ["number", "null"], "exclusiveMinimum": 0}
SETTINGS = {
    "osds": {"enum": ["memory", "disk"], "default": "memory"},
    "replication": {"type": "integer", "minimum": 1, "default": 1},
    "active": {"type": "integer", "minimum": 1, "default": 1},
    "standby": {"type": "integer", "minimum": 0, "default": 0},
    "replay": {"type": "boolean", "default": False},
    "cache_mb": {"type": ["integer", "null"], "minimum": 1, "default": None},
    "balancer": {"type": "boolean", "default": True},
    "balance_s": {"type": ["integer", "null"], "minimum": 1, "default": None},
    "beacon_grace_s": {**SECONDS, "minimum": 3, "default": None},
    "propose_s": {**SECONDS, "default": 0.2},
}
SAFE = {f"auth_{what}_required": "cephx" for what in ("cluster", "service", "client")}
LOGS = {"log_to_stderr": "true", "err_to_stderr": "true", "log_file": ""}
# Nothing that a few hosts of one machine cannot provide is waited for or warned about.
CLUSTER = {
    **SAFE, **LOGS,
    "mon_allow_pool_size_one": "true", "osd_pool_default_pg_autoscale_mode": "off",
    "mon_max_pg_per_osd": 500,
    # the machine's disk may be fuller than a monitor accepts
    "mon_data_avail_warn": 1, "mon_data_avail_crit": 1,
    "mon_warn_on_insecure_global_id_reclaim": "false",
    "ms_async_op_threads": 1, "ms_bind_ipv6": "false",
    "osd_op_num_shards": 1, "osd_op_num_threads_per_shard": 2, "osd_crush_initial_weight": 1,
    # without this, a monitor younger than a minute takes every MDS for alive
    "mds_beacon_mon_down_grace": 0,
    "mon_cluster_log_to_stderr": "true", "mon_cluster_log_to_file": "false",
    "log_max_recent": 200,          # lines that a crashing daemon dumps
}
CAPS = {"mon": {"mon": "allow *"},
        "osd": {"mon": "allow profile osd", "osd": "allow *"},
        "mds": {"mon": "allow profile mds", "osd": "allow *", "mds": "allow *"},
        "client": {"mon": "allow *", "osd": "allow *", "mds": "allow *", "mgr": "allow *"}}


def monitors(address: str) -> str:
    """The monitors' addresses as the option mon_host has them."""
    return "[" + ",".join(f"{way}:{address}:{port}" for way, port in MON_PORTS.items()) + "]"


def text(fsid: str, address: str, home, **more) -> str:
    """ceph.conf of a daemon whose folder is `home`; `address` is the monitor's."""
    options = {"fsid": fsid, "mon_host": monitors(address), "keyring": f"{home}/{KEYRING}",
               "run_dir": home, **CLUSTER, **more}
    return sections({"global": options})


def sections(options_by_section: dict[str, dict]) -> str:
    """Text of a ceph.conf; an option that is None is left out."""
    lines = []
    for name, options in options_by_section.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in options.items()
                                 if value is not None)]
    return "\n".join([*lines, ""])


def new_key(now: float) -> str:
    """A cephx key: type, time of creation, length, 16 random bytes."""
    return base64.b64encode(struct.pack("<HIIH", 1, int(now), 0, 16) + os.urandom(16)).decode()


def keyring(keys: dict[str, str]) -> str:
    """A keyring file of `keys` (by name, such as osd.3) with the capabilities of each kind."""
    lines = []
    for name, key in keys.items():
        caps = CAPS[name.partition(".")[0]]
        lines += [f"[{name}]", f"\tkey = {key}",
                  *(f'\tcaps {part} = "{may}"' for part, may in caps.items())]
    return "\n".join([*lines, ""])


def options(settings: dict) -> dict:
    """Options of every daemon's ceph.conf that follow from the settings."""
    found = {"osd_pool_default_size": settings["replication"]}
    if settings["propose_s"] is not None:
        found["paxos_propose_interval"] = settings["propose_s"]
    if settings["cache_mb"] is not None:
        found["mds_cache_memory_limit"] = settings["cache_mb"] << 20
    found |= balancing(settings["balance_s"])
    if not settings["balancer"]:
        found["mds_bal_interval"] = 0
    return {**found, **detection(settings["beacon_grace_s"])}


def balancing(interval_s: int | None) -> dict:
    """Options that scale the balancer to this interval; {} for None.

    The half-life of a directory's load and the time between two samples keep their default share of the
    interval, so that the balancer sees as much change between two rounds as with Ceph's 10 s.
    """
    if interval_s is None:
        return {}
    share = interval_s / BALANCING["mds_bal_interval"]
    return {**{name: round(default * share, 3) for name, default in BALANCING.items()},
            "mds_bal_interval": interval_s}


def detection(grace_s: float | None) -> dict:
    """Options that scale the detection of dead MDSs to this grace; {} for None.

    A monitor that ticks more rarely than once a grace believes itself late and forgives. So beacons
    and ticks keep their default share of the grace.
    """
    if grace_s is None:
        return {}
    share = grace_s / DEFAULTS["grace"]
    return {"mds_beacon_grace": grace_s, "mds_beacon_interval": round(DEFAULTS["beacon"] * share, 3),
            "mon_tick_interval": max(1, int(DEFAULTS["tick"] * share))}


def client_text(fsid: str, address: str, **more) -> str:
    """ceph.conf of a client, which runs in the folder of its keyring."""
    options = {"fsid": fsid, "mon_host": monitors(address), "keyring": KEYRING, **SAFE, **LOGS}
    return sections({"global": options, "client": more})


def check_hosts(settings: dict, found: dict[str, int]) -> None:
    """InputError if the numbers of hosts by role (`found`) do not fit the settings."""
    place = {"file": "hosts of ceph", "key": "role"}
    if found["mon"] != 1:
        raise InputError(f"{found['mon']} hosts of role mon", **place, allowed="mon: 1")
    if not found["osd"]:
        raise InputError("no OSD: no host of role osd", **place, allowed="osd: 1 and more")
    if settings["replication"] > found["osd"]:
        raise InputError(f"{settings['replication']} copies need as many OSDs, and there are "
                         f"{found['osd']}", file=FILE, key="replication",
                         allowed=f"1 to {found['osd']}")
    wanted = settings["active"] + settings["standby"]
    if wanted > found["mds"]:
        standby = f" and {settings['standby']} standbys" if settings["standby"] else ""
        raise InputError(f"{settings['active']} active metadata servers{standby} need as many hosts of "
                         f"role mds, and there are {found['mds']}", file=FILE,
                         key="active" if settings["active"] > found["mds"] else "standby",
                         allowed=f"1 to {found['mds']} together")


def file_system(settings: dict) -> list[dict]:
    """The monitor commands that create the file system."""
    metadata, data = POOLS
    made = [{"prefix": "osd pool create", "pool": pool, "pg_num": PGS} for pool in POOLS]
    made.append({"prefix": "fs new", "fs_name": FS_NAME, "metadata": metadata, "data": data})
    changed = {"max_mds": settings["active"],
               "allow_standby_replay": str(settings["replay"]).lower()}
    return made + [{"prefix": "fs set", "fs_name": FS_NAME, "var": key, "val": str(value)}
                   for key, value in changed.items()]

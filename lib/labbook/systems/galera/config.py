"""A Galera node's configuration, and parsers of its status and log. Pure functions."""

import re

from labbook.errors import InputError

FILE = "settings of galera"
PROVIDERS = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib/libgalera_smm.so",
             "/usr/lib64/galera-4/libgalera_smm.so")
CLUSTER_PORT = 4567
SUSPECT_S = 5       # Galera's default of evs.suspect_timeout
BYTE = {"type": "integer", "minimum": 0, "maximum": 255}
WINDOW = {"type": "integer", "minimum": 1, "maximum": 4096}
SHARED = {  # settings that all nodes of a cluster have in common
    "durability": {"enum": ["commit", "periodic"], "default": "periodic"},
    "max_connections": {"type": "integer", "minimum": 2, "maximum": 16384, "default": 300},
    "send_window": {**WINDOW, "default": 4},       # Galera's defaults, both
    "user_send_window": {**WINDOW, "default": 2},
    # A node sends an empty message each time. The default is Galera's. See suspect_options.
    "keepalive_s": {"type": "number", "minimum": 0.1, "maximum": 3, "default": 1},
}
# Counters since a node's start: our name, and the name in SHOW GLOBAL STATUS.
COUNTERS = {
    "flow_control_sent": "wsrep_flow_control_sent", "cert_failures": "wsrep_local_cert_failures",
    "bf_aborts": "wsrep_local_bf_aborts", "replicated": "wsrep_replicated",
    "replicated_bytes": "wsrep_replicated_bytes", "questions": "Questions",
}
NOWHERE = "00000000-0000-0000-0000-000000000000"
# In a joiner's log at the end of a state transfer.
TRANSFER = "(IST|SST) completed on joiner"
# In a node's log at each change of its state in the cluster.
SHIFTS = "WSREP: Shifting [A-Z/]+ -> [A-Z/]+"
# For a proxy that asks for the node's state, which takes no rights.
CHECK_USER = "check"
CHECK_ACCOUNT = f"GRANT USAGE ON *.* TO '{CHECK_USER}'@'%' IDENTIFIED BY '';\n"


def check_windows(settings: dict) -> None:
    """InputError if user_send_window is larger than send_window."""
    if settings["user_send_window"] > settings["send_window"]:
        raise InputError(f"{settings['user_send_window']} is more than send_window",
                         file=FILE, key="user_send_window",
                         allowed=f"1 to {settings['send_window']}")


def numbers_per_node(key: str, numbers, nodes: int, default: int) -> list[int]:
    """`numbers`, or the default for each node; InputError unless there is one for each node."""
    if numbers is None:
        return [default] * nodes
    if len(numbers) != nodes:
        raise InputError(f"{len(numbers)} numbers do not fit {nodes} nodes", file=FILE, key=key,
                         allowed="one for each node")
    return numbers


def options(settings, name: str, address: str, provider: str, login: str) -> dict:
    """Options of my.cnf that make a server a node; `settings.peers`: the addresses of all nodes.
    `login`: user and password of state transfers, `user:password`."""
    peers = settings.peers or [address]
    return {
        "wsrep_on": "ON", "wsrep_provider": provider,
        "wsrep_cluster_name": "labbook", "wsrep_cluster_address": f"gcomm://{','.join(peers)}",
        "wsrep_node_name": name, "wsrep_node_address": address,
        "wsrep_sst_method": "mariabackup", "wsrep_sst_auth": login,
        "wsrep_provider_options": f'"{provider_options(settings, address)}"',
        # required by replication
        "binlog_format": "ROW", "innodb_autoinc_lock_mode": 2,
        # half a dozen nodes share a machine
        "innodb_log_file_size": "32M", "performance_schema": "OFF",
    }


def provider_options(settings, address: str) -> str:
    given = {
        "gmcast.listen_addr": f"tcp://{address}:{CLUSTER_PORT}",
        "gmcast.segment": settings.segment, "pc.weight": settings.weight,
        "evs.send_window": settings.send_window,
        "evs.user_send_window": settings.user_send_window,
        "evs.keepalive_period": f"PT{settings.keepalive_s:g}S",
        **suspect_options(settings.keepalive_s),
        "gcache.size": "64M",
    }
    return ";".join(f"{key}={value}" for key, value in given.items())


def suspect_options(keepalive_s: float) -> dict:
    """Galera's own timeout, 5 s without a message, suspects a node that sends fewer than three in it, and
    refuses to start so. It then becomes four periods."""
    return {} if 3 * keepalive_s < SUSPECT_S else {"evs.suspect_timeout": f"PT{4 * keepalive_s:g}S"}


def transfers(address: str) -> str:
    """Section of my.cnf for state transfers, whose receiver would listen on all interfaces. Their log
    stays in the data directory; an archive would outlive the lab."""
    return f"[sst]\nsst-log-archive=0\nsockopt=\",bind={address}\"\n"


def last_view(ids: list, segments: list[int], mine) -> str:
    """gvwstate.dat as every node has it after all nodes were killed at once.

    It lists the members; once all are back they form the cluster again, in whatever order they start.
    """
    members = (f"member: {one} {segment}" for one, segment in zip(ids, segments))
    return "\n".join([f"my_uuid: {mine}", "#vwbeg", f"view_id: 3 {ids[0]} 1", "bootstrap: 0",
                      *members, "#vwend", ""])


def parse_cluster_state(status: dict) -> dict:
    """A node's state in its cluster, from its SHOW GLOBAL STATUS.

    size: nodes that it sees. primary: whether these may write. state: such as Synced. committed:
    number of its last transaction.
    """
    return {"size": int(status["wsrep_cluster_size"]),
            "primary": status["wsrep_cluster_status"] == "Primary",
            "state": status["wsrep_local_state_comment"],
            "committed": int(status["wsrep_last_committed"])}


def parse_counters(status: dict) -> dict:
    """A node's COUNTERS, and flow_control_paused_s, from its SHOW GLOBAL STATUS."""
    found = {key: int(status[name]) for key, name in COUNTERS.items()}
    return {"flow_control_paused_s": int(status["wsrep_flow_control_paused_ns"]) / 1e9, **found}


def parse_transfer(log: str) -> str | None:
    """How a node got what it had missed, from its log: SST, IST, or None for nothing."""
    found = re.findall(TRANSFER, log)
    return found[-1] if found else None


def has_left(log: str) -> bool:
    """Whether the last change of state in a node's log is the one out of its cluster."""
    found = re.findall(SHIFTS, log)
    return bool(found) and found[-1].endswith("-> CLOSED")


def parse_recovered_position(output: str) -> str | None:
    """History and number of the last transaction in the output of --wsrep-recover; None without."""
    found = re.findall(r"Recovered position:\s*([0-9a-f-]{36}:-?\d+)", output)
    return found[-1] if found and not found[-1].startswith(NOWHERE) else None

"""Ceph clusters and mounts for a point, and functions that wait for their states."""

import time
from contextlib import ExitStack, contextmanager, suppress

from labbook.errors import InputError, SystemFailure
from labbook.lab import LabDescription
from labbook.study.point import check_range, check_values
from labbook.systems.ceph.cluster import Ceph
from labbook.systems.ceph.config import check_hosts
from labbook.systems.cluster import in_parallel
from labbook.workloads.crew.crew import Crew
from labbook.workloads.files.bonnie import fits
from labbook.workloads.files.load import PATTERNS

# Hosts of a cluster that is alone.
MOST_DIRECTORIES = 65535      # their numbers have two bytes in the rows of clients
FIRST = ("mon", *(f"osd{i}" for i in range(1, 9)), *(f"mds{i}" for i in range(1, 5)))
# Settings by the way in which a dead server's rank is replaced. A standby_replay daemon serves one rank only.
TAKEOVERS = {"standby": {"standby": 1}, "standby_replay": {"standby": 2, "replay": True},
             "restart": {"standby": 0}, "mds_fail": {"standby": 1}}
# Function of the number of ranks: the ranks to which directories are pinned in turn.
PINS = {"none": lambda ranks: [], "one": lambda ranks: [0], "spread": lambda ranks: list(range(ranks))}
# The patterns of calls of tools that reread by fresh mounts, in each order or in that of the names alone.
REREADING = ("remount", "remount_in_order")
ALLOWED = {"tool": ["bonnie", "own", *REREADING], "pin": list(PINS), "pattern": list(PATTERNS), "how": list(TAKEOVERS),
           "load": ["idle", "load", "migrating"], "rank": [0, 1]}


def ceph_settings(params: dict) -> dict:
    """The settings of Ceph among a point's parameters: osds, replication, mds (active ones), balance_s, grace_s,
    and the standbys by `spare` or `how`."""
    spares = {}
    if "spare" in params:
        spares = {"standby": int(params["spare"])}
    elif "how" in params:
        spares = TAKEOVERS[params["how"]]
    grace = {"beacon_grace_s": params["grace_s"]} if "grace_s" in params else {}
    return {name: params[name] for name in ("osds", "replication", "balance_s")} | {
        "active": params["mds"]} | grace | spares


def check_points(experiment) -> None:
    """InputError for invalid parameters, loads or clusters, before a lab is brought up."""
    roles = {host.name: host.role for host in LabDescription.load(experiment.study.folder / "lab.yml").hosts}
    number = {role: sum(roles.get(name) == role for name in FIRST) for role in ("mon", "osd", "mds")}
    check_values(experiment.points(), ALLOWED)
    check_range(experiment.points(), {"clients": 1, "directories": 1, "files": 1}, {"directories": MOST_DIRECTORIES})
    for point in (arm for each in experiment.points() for arm in each.arm_points):
        if point.params.get("tool") == "bonnie" and not fits(point.directories, point.files):
            raise InputError(f"{point.directories} directories of {point.files} files", key=f"{experiment.name}: files",
                             allowed="for bonnie++, in all a multiple of 1024")
        check_hosts(Ceph.checked(ceph_settings(point.params)), number)


def bring_up(attempt) -> Ceph:
    """The point's cluster, which all points of a block share; once it is up, each metadata server has
    `mds_share` of a core."""
    return attempt.setup(lambda lab: cluster_up(lab, attempt.point))


def cluster_up(lab, point, names=FIRST) -> Ceph:
    """A cluster of the point's settings on the hosts of these names."""
    hosts = [lab.host(name) for name in names]
    servers = [host.name for host in hosts if host.role == "mds"]
    for name in servers:
        lab.limit(name, None)
    ceph = Ceph(hosts, **ceph_settings(point.params)).up()
    for name in servers:
        lab.limit(name, point.mds_share)
    return ceph


def bring_up_whole(attempt) -> Ceph:
    """The same, where an earlier point has killed a server: a new cluster unless all its servers are back."""
    ceph = bring_up(attempt)
    try:
        ceph.await_formed()
    except SystemFailure:
        ceph.up()
    return ceph


@contextmanager
def mounted(attempt, ceph, number=1, cache_inodes=None, name="client"):
    """Context with `number` new mounts, spread over the client hosts: a list of mounts for each host.

    cache_inodes: size of each client's cache; by default as shipped.
    """
    hosts = Crew.of(attempt.lab).hosts
    mounts = in_parallel(range(number), lambda i: ceph.mount(
        hosts[i % len(hosts)], name=f"{name}{i + 1}", cache_inodes=cache_inodes).up())
    yield [[one for one in mounts if one.host is host] for host in hosts[:number]]
    in_parallel(mounts, lambda one: one.end())


@contextmanager
def remounted(attempt, ceph, stages: int, *mount):
    """Context with `stages` further lists of mounts as `mounted` gives them, for clients to go on in."""
    with ExitStack() as stack:
        yield [stack.enter_context(mounted(attempt, ceph, *mount, name=f"fresh{stage + 1}-"))
               for stage in range(stages)]


def paths(mounts) -> list[list[str]]:
    """The mounts' paths, a list for each host."""
    return [[str(one.path) for one in of_host] for of_host in mounts]


def fuse_processes(*lists) -> list:
    """The processes of ceph-fuse of several lists of mounts."""
    return [one.process for mounts in lists for of_host in mounts for one in of_host]


def reached(condition, seconds: float, between_s: float = 0.2) -> bool:
    """Wait until `condition()` is true, checking every `between_s`; False after `seconds`."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(between_s)
    return True


def at_rest(ceph, seconds: float) -> bool:
    """Wait until deleted files are purged from the OSDs; False after `seconds`."""
    def busy():
        queues = [ceph.ask(one.name, "perf dump")["purge_queue"] for one in ceph.ranks().values()]
        return any(one["pq_executing"] or one["pq_item_in_journal"] for one in queues)

    return reached(lambda: not busy(), seconds)


def all_active(ceph, seconds: float) -> bool:
    """Wait until every rank is active on a server that was not killed; False after `seconds`."""
    with suppress(SystemFailure):
        return bool(ceph.await_active(seconds=seconds))
    return False


def has_left(ceph, rank: int, name: str) -> bool:
    """Whether the monitor's map shows the rank without this server, or the server as laggy."""
    now = ceph.ranks().get(rank)
    return now is None or now.name != name or now.laggy


def await_pinned(ceph, folder: str, number: int, seconds: float = 60.0) -> None:
    """Wait until rank 1 owns `number` directories of a folder; an MDS applies pins every 5 s.

    SystemFailure after `seconds`.
    """
    def owned():
        return {path for path in ceph.owned()[1] if path.startswith(f"/{folder}/")}

    if not reached(lambda: len(owned()) >= number, seconds):
        raise SystemFailure(f"rank 1 did not get the {number} directories that are pinned to it")

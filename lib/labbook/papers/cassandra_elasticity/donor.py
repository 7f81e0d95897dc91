"""The donor: the ring's first node, whose files are restored before each point.

Each amount of data is loaded once and then kept as a snapshot, also while others are measured. Where the disk
is modelled, loading takes none of the model's time.
"""

from contextlib import ExitStack

from labbook.lab import LabDescription
from labbook.systems.cassandra.elastic_ring import ElasticRing
from labbook.systems.cassandra.token_plan import plan
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue.loading import load_pairs

SHIPPED_RING_DELAY_MS = 30_000      # of both versions
RING = ("version", "heap_mb", "stream_mbit", "whole_files", "files", "coordinators", "ring_delay_ms")
DATA = ("data_mb", "value_bytes", "loading_mb_per_s")
EMPTY = "empty"             # the snapshot of a ring without data
KEPT_MB = 18_000            # of data in snapshots; beyond, the others go before more are loaded
PARAMETERS = {"order": "disk_order"}    # of points, where a disk's setting has another name
TAGS = 128                  # of a loop device, where a point does not set them


def ring_settings(params: dict) -> dict:
    """The settings of ElasticRing among a point's parameters."""
    delay_ms = params["ring_delay_ms"]
    return {name: params[name] for name in RING} | {
        "ring_delay_ms": None if delay_ms == SHIPPED_RING_DELAY_MS else delay_ms}


def rows_of(params: dict) -> int:
    """Number of rows of the point's data."""
    return int(params["data_mb"] * 1e6) // params["value_bytes"]


def protocols(versions) -> list[str]:
    """The protocols that these versions speak, each once."""
    return sorted({ElasticRing.speaks(version=version) for version in versions})


def node_names(study) -> list[str]:
    """The database hosts of the study's lab; the first is the donor."""
    description = LabDescription.load(study.folder / "lab.yml")
    return [host.name for host in description.hosts if host.role == "db"]


def check_rings(study, settings: dict, *, versions=(), heaps_mb=(), shares=(), numbers=()) -> None:
    """InputError for invalid rings and joins, before a lab is brought up.

    Checked are `settings` with each of the versions and heap sizes, a join of one node with each of
    the shares of the ring, and a join with the first share for each of the numbers of joiners.
    """
    nodes, versions = node_names(study), {settings["version"], *versions}
    for changed in [*({"version": one} for one in versions), *({"heap_mb": one} for one in heaps_mb)]:
        ElasticRing.checked(ring_settings(settings | changed))
    joins = [[share] for share in shares] + [[share] * number for share in shares[:1] for number in numbers]
    for version in versions:
        for one in joins:
            plan(version, {nodes[0]: 0}, nodes, one)


class Donor:
    """The loaded ring of a study. It stays up between points of the same settings.

    nodes: names of the database hosts; the first is the donor. metrics: of loading the data.
    """

    def __init__(self, nodes: list[str]):
        self.nodes = nodes
        self.metrics = {}
        self._lab = self._ring = self._settings = self._shipped = self._disks = None
        self._snapshots = {}     # snapshot: its MB and the metrics of loading it

    @property
    def name(self) -> str:
        return self.nodes[0]

    def restore(self, attempt) -> ElasticRing:
        """The point's ring, which consists of the donor with its files as loaded.

        The page cache has none of them, and all nodes' disks have the point's scheduler, read-ahead, tags and
        order of waiting requests; for gets there is no read-ahead where the point says so.
        """
        lab, params = attempt.lab, attempt.point.params
        settings, data = ({name: params[name] for name in names} for names in (RING, DATA))
        if self._lab is not lab:
            self._enter(lab)
        if self._settings != settings:
            self._begin(settings)
        name = "-".join(str(value) for value in data.values()) if rows_of(params) else EMPTY
        if name not in self._snapshots and name != EMPTY:
            self._load(name, data)
        self.metrics = self._snapshots[name][1] if name != EMPTY else {}
        self._set_disks({key: params.get(PARAMETERS.get(key, key), shipped) for key, shipped in self._shipped.items()})
        self._ring.read_ahead_of_gets(params.get("ahead_of_gets", True))
        self._ring.restore(name)
        self._ring.compaction(params["compaction"])
        return self._ring

    def _enter(self, lab):
        """Start with a new lab, which has no ring and disks with default settings."""
        facts = lab.disk(self.name).facts()
        self._lab, self._ring, self._settings, self._snapshots = lab, None, None, {}
        self._shipped = {key: facts[key] for key in ("scheduler", "read_ahead_kb", "order") if key in facts}
        self._shipped["tags"] = TAGS
        self._disks = self._shipped

    def _begin(self, settings):
        """A ring with these settings, empty."""
        if self._ring:
            self._ring.destroy()
        self._ring, self._settings, self._snapshots = None, None, {}
        self._set_disks(self._shipped)
        with self._in_a_hurry():
            ring = ElasticRing(self._lab.role("db"), **ring_settings(settings)).up()
            ring.compaction(False)
            ring.snapshot(EMPTY)
        self._ring, self._settings = ring, settings

    def _load(self, name, data):
        """Load data and keep them as a snapshot of this name."""
        self._make_room(data["data_mb"])
        self._set_disks(self._shipped)
        ring, rows = self._ring, rows_of(data)
        with self._in_a_hurry():
            ring.restore(EMPTY)
            ring.check_room(rows, data["value_bytes"])
            load = load_pairs(Crew.of(self._lab), ring, rows=rows, value_bytes=data["value_bytes"],
                              most_mb_per_s=data["loading_mb_per_s"])
            ring.merge()
            ring.snapshot(name)
        self._snapshots[name] = data["data_mb"], {
            "loader_mb_per_s": load.metrics["mb_per_s"],
            "loader_mb_per_s_per_core": load.metrics["mb_per_s_per_client_core"]}

    def _make_room(self, coming_mb):
        """Forget snapshots where they would take too much of the machine's disk."""
        if sum(mb for mb, _ in self._snapshots.values()) + coming_mb <= KEPT_MB:
            return
        for name in list(self._snapshots):
            self._ring.forget(name)
            del self._snapshots[name]

    def _in_a_hurry(self) -> ExitStack:
        """`with`: the disks of all nodes take no modelled time."""
        stack = ExitStack()
        for name in self.nodes:
            stack.enter_context(self._lab.disk(name).in_a_hurry())
        return stack

    def _set_disks(self, wanted):
        """Set all nodes' disks. Call before a node starts: open files keep their read-ahead."""
        if self._disks != wanted:
            for name in self.nodes:
                self._lab.disk(name).set(**wanted)
            self._disks = wanted

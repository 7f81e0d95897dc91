"""The donor: the ring's first node, loaded once, whose files are restored before each point."""

from labbook.lab import LabDescription
from labbook.systems.cassandra.elastic_ring import ElasticRing
from labbook.systems.cassandra.token_plan import plan
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue.loading import load_pairs

SHIPPED_RING_DELAY_MS = 30_000      # of both versions
RING = ("version", "heap_mb", "stream_mbit", "whole_files", "files", "coordinators", "ring_delay_ms")
LOADED = (*RING, "data_mb", "value_bytes", "loading_mb_per_s")  # a change of one of them requires a reload


def ring_settings(params: dict) -> dict:
    """The settings of ElasticRing among a point's parameters."""
    delay_ms = params["ring_delay_ms"]
    return {name: params[name] for name in RING} | {
        "ring_delay_ms": None if delay_ms == SHIPPED_RING_DELAY_MS else delay_ms}


def rows_of(params: dict) -> int:
    """Number of rows of the point's data."""
    return int(params["data_mb"] * 1e6) // params["value_bytes"]


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

    @property
    def name(self) -> str:
        return self.nodes[0]

    def restore(self, attempt) -> ElasticRing:
        """The point's ring, which consists of the donor with its files as loaded.

        The page cache has none of them, and all nodes' disks have the point's scheduler and read-ahead.
        """
        lab, params = attempt.lab, attempt.point.params
        settings = {name: params[name] for name in LOADED}
        if self._lab is not lab:
            self._enter(lab)
        if self._settings != settings:
            self._load(settings)
        self._set_disks({key: params.get(key, shipped) for key, shipped in self._shipped.items()})
        self._ring.restore()
        self._ring.compaction(params["compaction"])
        return self._ring

    def _enter(self, lab):
        """Start with a new lab, which has no ring and disks with default settings."""
        facts = lab.disk(self.name).facts()
        self._lab, self._ring, self._settings = lab, None, None
        self._shipped = self._disks = {key: facts[key] for key in ("scheduler", "read_ahead_kb")}

    def _load(self, settings):
        if self._ring:
            self._ring.destroy()
        self._ring = self._settings = None
        self._set_disks(self._shipped)
        ring = ElasticRing(self._lab.role("db"), **ring_settings(settings)).up()
        ring.compaction(False)
        ring.check_room(rows_of(settings), settings["value_bytes"])
        load = load_pairs(Crew.of(self._lab), ring, rows=rows_of(settings), value_bytes=settings["value_bytes"],
                          most_mb_per_s=settings["loading_mb_per_s"])
        ring.merge()
        ring.snapshot()
        self.metrics = {"loader_mb_per_s": load.metrics["mb_per_s"],
                        "loader_mb_per_s_per_core": load.metrics["mb_per_s_per_client_core"]}
        self._ring, self._settings = ring, settings

    def _set_disks(self, wanted):
        """Set all nodes' disks. Call before a node starts: open files keep their read-ahead."""
        if self._disks != wanted:
            for name in self.nodes:
                self._lab.disk(name).set(**wanted)
            self._disks = wanted

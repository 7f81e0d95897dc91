"""A ring of Cassandra nodes that join and leave while it is used.

Its first node, the *donor*, has token 0 and, alone, owns the whole ring. A node that joins takes
the range after that of the node before it, so that all of its data comes from the donor. There is
one copy of each row and one token a node. The donor's data can be saved as snapshots, to any of
which the ring is restored within seconds.
"""

from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace

from labbook.errors import InputError, SystemFailure
from labbook.lab import clock
from labbook.systems.base import Needs, errors_of
from labbook.systems.cassandra import logs, nodetool, sstables, token_plan
from labbook.systems.cassandra.config import VERSIONS
from labbook.systems.cassandra.elastic_node import ElasticNode
from labbook.systems.cassandra.join import Joiner, Joins
from labbook.systems.cassandra.node import Cassandra
from labbook.systems.cassandra.ring import HEAP_MB, by_host
from labbook.systems.cluster import Cluster, in_parallel, poll
from labbook.targets import CQL, DATABASE, TABLE

FILE = "settings of elastic_ring"
OLD, NEW = "1.0.7", "5.0.8"
COORDINATORS, FILES = ("donor", "all"), ("by_size", "by_range")
RING_DELAY_MS = 5000    # at 1000 ms, nodes have joined without any data
JOIN_SECONDS = LEAVE_SECONDS = QUIET_SECONDS = 3600
QUIET_INTERVAL, LEAVE_INTERVAL = 0.5, 0.2   # seconds between two questions to the donor


class ElasticRing(Cluster):
    """Each of `hosts` may have a node; the first one is the donor, which is up from the beginning.

    ring_delay_ms: how long nodes wait for a change of the ring to spread; None: as shipped, and
    then they wait for gossip to settle as well. coordinators: whom clients call, the donor or all
    nodes that are in the ring when a load begins. files: what merging leaves, by_size a few
    SSTables with rows of the whole ring, by_range many SSTables of one range each, most of which
    a joiner receives whole (5.0). compression: of SSTables. The other settings are those of a node.
    """

    NAME = "elastic_ring"
    SETTINGS = {
        "version": {"enum": [OLD, NEW], "default": OLD},
        "ring_delay_ms": {**Cassandra.SETTINGS["ring_delay_ms"], "default": RING_DELAY_MS},
        **{key: Cassandra.SETTINGS[key] for key in ("heap_mb", "stream_mbit", "whole_files",
                                                    "disk_access")},
        "compression": {"type": "boolean", "default": False},
        "coordinators": {"enum": list(COORDINATORS), "default": "donor"},
        "files": {"enum": list(FILES), "default": "by_size"},
    }
    NEEDS = Cassandra.needs(version=OLD)

    def __init__(self, hosts, **settings):
        self._forget_state()
        super().__init__(hosts, **settings)

    @classmethod
    def checked(cls, settings: dict) -> dict:
        """As Described.checked; None stands for the default, and for `ring_delay_ms` for waits as
        shipped."""
        full = super().checked({key: value for key, value in settings.items()
                                if value is not None or key == "ring_delay_ms"})
        with errors_of(cls.NAME):
            Cassandra.checked({key: value for key, value in full.items()
                               if key in Cassandra.SETTINGS and value is not None})
        if full["files"] == "by_range" and full["version"] == OLD:
            raise InputError(f"Cassandra {OLD} does not stream SSTables whole",
                             file=FILE, key="files", allowed="by_size")
        return full

    @classmethod
    def needs(cls, **settings) -> Needs:
        return Cassandra.needs(version=cls.checked(settings)["version"])

    @classmethod
    def speaks(cls, **settings) -> str:
        return VERSIONS[cls.checked(settings)["version"]]["protocol"]

    # Its nodes

    def make_nodes(self) -> list[ElasticNode]:
        return [self.make_node(host) for host in self.hosts]

    def make_node(self, host, token=0, joins=False, together=False) -> ElasticNode:
        s = self.settings
        return ElasticNode(
            host, joins=joins, together=together, waits=s.ring_delay_ms is None,
            version=s.version, token=token, seeds=[self.hosts[0].address],
            heap_mb=s.heap_mb or HEAP_MB[VERSIONS[s.version]["protocol"]],
            ring_delay_ms=s.ring_delay_ms, stream_mbit=s.stream_mbit, whole_files=s.whole_files,
            disk_access=s.disk_access)

    @property
    def donor(self) -> ElasticNode:
        return self.front

    @property
    def running(self) -> list[ElasticNode]:
        """The nodes that are in the ring or joining it."""
        return [self.node(name) for name in self._running]

    @property
    def joined(self) -> list[str]:
        """Names of the nodes in the ring, the donor first."""
        return list(self._tokens)

    @property
    def addresses(self) -> list[str]:
        if self.settings.coordinators == "donor":
            return [self.address]
        return [node.address for node in self.running if node.host.name in self._tokens]

    @property
    def processes(self) -> list:
        return [node.process for node in self.running]

    # Its life

    def up(self) -> "ElasticRing":
        """Remove what earlier runs left; the donor alone, with the table, empty."""
        super().up()
        with self.all_or_none():
            self.donor.create_table(DATABASE, TABLE, 1, compression=self.settings.compression)
            if self.settings.files == "by_range":
                self.compaction(True)
        return self

    def deploy(self) -> None:
        self.donor.deploy()

    def start(self) -> None:
        """Start the donor, alone."""
        self.donor.start()
        self._running, self._tokens = [self.host.name], {self.host.name: 0}

    def stop(self) -> None:
        in_parallel(self.running, lambda node: node.stop())
        self._running, self._tokens = [], {}

    def destroy(self) -> None:
        super().destroy()
        self._forget_state()

    def facts(self) -> dict:
        """The donor's facts, the names of the nodes in the ring, and the ring's own settings."""
        own = ("compression", "coordinators", "files")
        return {**self.donor.facts(), "system": self.NAME, "nodes": self.joined,
                **{key: getattr(self.settings, key) for key in own}}

    def owners(self) -> dict[str, int]:
        """{name of the host: token at which its range ends}, as the donor knows them."""
        return by_host(self.nodes, self.donor.admin.owners(DATABASE))

    def status(self) -> dict[str, dict]:
        """By name, what the donor's `nodetool ring` shows: state (such as NORMAL, JOINING), up,
        token, load_bytes."""
        return by_host(self.nodes, nodetool.parse_ring(self.donor.nodetool("ring")))

    # Nodes that join and leave

    def join(self, shares) -> Joins:
        """Start nodes that join, all at once, and do not wait; `shares` as in token_plan.plan.
        InputError, before anything starts, where the data do not fit a joiner's disk without its earlier files."""
        version, taken = self.settings.version, dict(self._tokens)
        names = [node.host.name for node in self.nodes]
        wanted, before = token_plan.plan(version, taken, names, shares), self.data_bytes()
        owned = token_plan.owned(version, {**taken, **wanted})
        in_parallel([self.node(name) for name in wanted], lambda node: node.destroy())
        for name, token in wanted.items():
            self._check_free(name, round(before * token_plan.coming(version, taken, token)))
        for name, token in wanted.items():
            self.nodes[names.index(name)] = self.make_node(
                self.node(name).host, token, joins=True, together=len(wanted) > 1)
        joiners = [Joiner(self.node(name), token, float(owned[name]))
                   for name, token in wanted.items()]
        in_parallel(joiners, _deploy)
        self._running += list(wanted)
        in_parallel(joiners, Joiner.begin)
        held_bytes = min(before, self._snapshot.bytes) if self._snapshot else before
        return Joins(self, joiners, before, held_bytes)

    def one_after_another(self, shares: list[float], seconds: float = JOIN_SECONDS) -> list[dict]:
        """Nodes with these shares join, each once the one before is in the ring: the rows of all."""
        rows = []
        for share in shares:
            rows += self.join([share]).wait(seconds)
        return rows

    def join_with_retries(self, shares, seconds: float, tries: int) -> tuple[list[dict], int]:
        """Nodes join as in `join`; after a failure the joiners are killed and it is tried again, at
        most `tries` times: the rows of the join that succeeded (none: no row), and how many tries
        it took."""
        for number in range(1, tries + 1):
            joins = self.join(shares)
            try:
                return joins.wait(seconds), number
            except SystemFailure:
                for joiner in joins.joiners:
                    if joiner.killed_s is None:
                        joins.kill(joiner.name)
                    self._tokens.pop(joiner.name, None)
        return [], tries

    def leave(self, name: str, seconds: float = LEAVE_SECONDS) -> dict:
        """Have a node give its range away and leave; its process has ended when this returns.

        Gives node, asked_s, gone_s, streamed_from_s and streamed_to_s (epoch seconds), leave_s, fixed_wait_s,
        streaming_s, held_bytes
        (on the disk of the node that leaves), moved_bytes (by how much the others grew; data
        written meanwhile count too). InputError for a node that cannot leave, such as the donor; SystemFailure
        where it has not left within `seconds`.
        """
        able = [n for n in self._running if n in self._tokens][1:]
        node = self.node(name)
        if name not in able:
            raise InputError(f"{name!r} cannot leave", file="elastic ring", key="leave",
                             allowed=able)
        others = [other for other in self.running if other is not node]
        held_bytes, before = sstables.table_bytes(node), sum(in_parallel(others, sstables.table_bytes))
        asked_s = clock.now()
        node.nodetool(*node.version.get("leave", ["decommission"]), seconds=seconds)
        poll(self.host, self.owners, lambda owners: name not in owners, f"{name} to leave the ring", seconds,
             process=self.process, interval=LEAVE_INTERVAL)
        gone_s = clock.now()
        phases = logs.phases(node, logs.LEAVING)
        node.kill()
        moved = sum(in_parallel(others, sstables.table_bytes)) - before
        self.mark_stopped(name)
        self._tokens.pop(name)
        return {"node": name, "asked_s": asked_s, "gone_s": gone_s, "leave_s": gone_s - asked_s,
                **phases, "held_bytes": held_bytes, "moved_bytes": moved}

    def mark_joined(self, name: str) -> None:
        """Note that a joiner owns its range; called by Joins."""
        self._tokens[name] = self.node(name).settings.token

    def mark_stopped(self, name: str) -> None:
        """Note that a node does not run any more; called by Joins."""
        self._running = [other for other in self._running if other != name]

    # The donor's files

    def check_room(self, rows: int, value_bytes: int) -> None:
        """InputError where so many rows do not fit the donor's disk while they are loaded."""
        token_plan.check_room(self.settings.version, rows, value_bytes, self._compacting,
                              sstables.free_bytes(self.host), self.host.name)

    def data_bytes(self, name: str | None = None) -> int:
        """Bytes on disk of the table's live SSTables, on the host of this name (the donor's)."""
        return sstables.table_bytes(self.donor if name is None else self.node(name))

    def compaction(self, on: bool) -> None:
        """Let SSTables be merged by themselves or not, on all nodes, those to come included."""
        self.donor.admin.compaction(DATABASE, TABLE, on, self.settings.files == "by_range")
        self.donor.await_agreed("all nodes to know about compaction")
        self._compacting = on

    def read_ahead_of_gets(self, on: bool) -> None:
        """Let the kernel read ahead for the donor's gets or not, from its next start on, as in `restore`; other
        threads' files are read ahead as the disk's setting says. InputError for today's version, whose threads
        share open files."""
        if not on and self.protocol == CQL:
            raise InputError(f"threads of Cassandra {self.settings.version} share open files", file="elastic ring",
                             key="read_ahead_of_gets", allowed=f"with {OLD}")
        if not on:
            self.donor.compile_advise()
        self.donor.ahead_of_gets = on

    def drop_page_cache(self, name: str) -> None:
        """Drop a node's files from its host's page cache, where a joiner still has what it received."""
        sstables.drop_page_cache(self.node(name))

    def flush(self) -> None:
        """Write everything that is in memory to disk."""
        in_parallel(self.running, lambda node: node.nodetool("flush", DATABASE, seconds=QUIET_SECONDS))

    def await_quiet(self, seconds: float = QUIET_SECONDS) -> None:
        """Return when no node merges or writes SSTables; SystemFailure that names what does."""
        poll(self.host, self._busy, lambda busy: not busy, "all nodes to merge and write nothing", seconds,
             process=self.process, interval=QUIET_INTERVAL)

    def _busy(self) -> dict:
        """{host: what its node merges or writes} of those that do; SystemFailure for one that has ended."""
        if ended := [node for node in self.running if not node.process.alive()]:
            raise SystemFailure(f"{ended[0].host.name}: its Cassandra ended", log=ended[0].process.log_tail())
        return {node.host.name: work for node in self.running if (work := node.admin.busy())}

    def merge(self, seconds: float = QUIET_SECONDS) -> list[int]:
        """Have the donor merge the table's SSTables until nothing is left to merge, without the
        throttle: bytes of those that remain, largest first.

        A node that is filled writes many small SSTables and goes on merging them long after. What
        remains is what the table's strategy leaves alone: size-tiered, fewer than four SSTables of
        about one size. Only a major compaction would make a single one. Afterwards compaction and
        its throttle are as they were before. InputError without free disk for a second copy, which
        merging the largest may need.
        """
        donor, before = self.donor, self._compacting
        need, free = self.data_bytes(), sstables.free_bytes(self.host)
        if need > free:
            raise InputError(f"{need} bytes are to be merged, and {self.host.name} has {free} free",
                             file="elastic ring", key="merge", allowed="as much again free")
        with _as_before() as restored:
            if not before:
                restored.callback(self.compaction, False)
            restored.callback(donor.nodetool, "setcompactionthroughput", donor.version["compaction_throttle"])
            donor.nodetool("setcompactionthroughput", 0)
            self.compaction(True)
            donor.admin.look_for_merges(DATABASE, TABLE)
            self.await_quiet(seconds)
        return sstables.table_files(donor)

    def snapshot(self, name: str = "data", seconds: float = QUIET_SECONDS) -> int:
        """Save the data of the donor, which must be alone, under this name for `restore`: their bytes. The
        donor is restarted, and its files are not in the page cache then."""
        self._require_alone()
        self.flush()
        self.await_quiet(seconds)
        self.donor.nodetool("drain", seconds=seconds)
        self.donor.stop()
        sstables.snapshot(self.donor, name)
        self._snapshot = SimpleNamespace(bytes=self.data_bytes(), compacting=self._compacting)
        self._snapshots[name] = self._snapshot
        self.start()
        sstables.drop_page_cache(self.donor)
        return self._snapshot.bytes

    def forget(self, name: str) -> None:
        """Remove the snapshot of this name."""
        sstables.forget(self.donor, name)
        del self._snapshots[name]

    def restore(self, name: str = "data") -> None:
        """The donor alone again, with the data of a snapshot, none of them in the page cache.

        InputError for a name without a snapshot; SystemFailure where the donor is not alone or has other data.
        """
        if name not in self._snapshots:
            raise InputError(f"there is no snapshot {name!r}", file="elastic ring", key="restore",
                             allowed=list(self._snapshots) or "after snapshot()")
        self._snapshot = self._snapshots[name]
        in_parallel(self.nodes[1:], lambda node: node.destroy())
        self.donor.kill()
        sstables.restore(self.donor, name)
        self.start()
        self._compacting = self._snapshot.compacting
        self._require_alone()
        if (size := self.data_bytes()) != self._snapshot.bytes:
            raise SystemFailure(f"{self.host.name} has {size} bytes after restoring a snapshot of "
                                f"{self._snapshot.bytes}", log=self.process.log_tail())
        sstables.drop_page_cache(self.donor)

    def _forget_state(self) -> None:
        self._running: list[str] = []           # names of the nodes that run, in the order of joining
        self._tokens: dict[str, int] = {}       # of the nodes in the ring, by name
        self._compacting, self._snapshot, self._snapshots = True, None, {}     # of the donor's files: the last, all

    def _require_alone(self) -> None:
        if (owners := self.owners()) != {self.host.name: 0}:
            raise SystemFailure(f"{self.host.name} should be alone in its ring, which has {owners}")

    def _check_free(self, name: str, coming: int) -> None:
        """InputError where so many bytes do not fit the host's disk."""
        free = sstables.free_bytes(self.node(name).host)
        if coming > free:
            raise InputError(f"{coming} bytes are to come, and {name} has {free} free",
                             file="elastic ring", key=f"shares.{name}",
                             allowed="what fits its disk")


@contextmanager
def _as_before():
    """An ExitStack whose callbacks are called at the end, all of them; their errors do not hide one of the block."""
    stack = ExitStack()
    try:
        yield stack
    except BaseException:
        with suppress(Exception):   # the first error is the one to report
            stack.close()
        raise
    stack.close()


def _deploy(joiner: Joiner) -> None:
    joiner.node.provide()
    joiner.node.deploy()

"""A ring of one Cassandra node, the donor, and hosts for more: a target, and what it holds is kept.

What was loaded once is put aside, and the ring set back to it within seconds.
"""

import time
from types import SimpleNamespace

from labbook.errors import InputError, SystemFailure
from labbook.systems.cassandra import sstables as files
from labbook.systems.cassandra import token_plan as shares
from labbook.systems.cassandra.config import VERSIONS
from labbook.systems.cassandra.growing_node import GrowingNode
from labbook.systems.cassandra.merge import merge
from labbook.systems.cassandra.ring import HEAP_MB
from labbook.systems.cassandra.ring_settings import FILE, RingSettings
from labbook.systems.cluster import in_parallel
from labbook.targets import DATABASE, TABLE

QUIET_SECONDS = 3600
ASK_SECONDS = 0.5


class KeptRing(RingSettings):
    """The first host has the donor; settings as in RingSettings."""

    def __init__(self, hosts, **settings):
        if not hosts:
            raise InputError("no hosts for it", file=FILE, key="hosts")
        self.settings = SimpleNamespace(**self.checked(settings))
        self.host, self.hosts = hosts[0], list(hosts)
        self._nodes = {host.name: self._made(host) for host in hosts}
        self.port, self.protocol = self.donor.port, self.donor.protocol
        self._running, self._joined = [], {}
        self._compacting, self._kept = True, None

    @property
    def donor(self) -> GrowingNode:
        return self._nodes[self.host.name]

    @property
    def nodes(self) -> list[GrowingNode]:
        """Of all hosts, also of those not in the ring."""
        return list(self._nodes.values())

    @property
    def running(self) -> list[GrowingNode]:
        """In the ring or on their way into it."""
        return [self._nodes[name] for name in self._running]

    @property
    def joined(self) -> list[str]:
        """Names of the nodes in the ring, the donor first."""
        return list(self._joined)

    @property
    def address(self) -> str:
        return self.donor.address

    @property
    def addresses(self) -> list[str]:
        """Whom clients call."""
        if self.settings.coordinators == "donor":
            return [self.address]
        return [node.address for node in self.running if node.host.name in self._joined]

    @property
    def process(self):
        return self.donor.process

    @property
    def processes(self) -> list:
        return [node.process for node in self.running]

    def node(self, name: str) -> GrowingNode:
        """The node on the host of this name."""
        if name not in self._nodes:
            raise InputError(f"no node on a host {name!r}", allowed=list(self._nodes))
        return self._nodes[name]

    def up(self) -> "GrowingRing":
        """Take away what earlier runs left; the donor alone, with the table, empty."""
        self.destroy()
        in_parallel(self.nodes, lambda node: node.provide())
        self.donor.deploy()
        self._start_donor()
        self.donor.create_table(DATABASE, TABLE, 1, compression=self.settings.compression)
        if self.settings.files == "by_range":
            self.compaction(True)
        return self

    def stop(self) -> None:
        in_parallel(self.running, lambda node: node.stop())
        self._running, self._joined = [], {}

    def destroy(self) -> None:
        in_parallel(self.nodes, lambda node: node.destroy())
        self._running, self._joined, self._kept, self._compacting = [], {}, None, True

    def facts(self) -> dict:
        """The donor's, and how the ring stands."""
        own = ("compression", "coordinators", "files")
        return {**self.donor.facts(), "system": self.NAME, "nodes": self.joined,
                **{key: getattr(self.settings, key) for key in own}}

    def check_room(self, rows: int, value_bytes: int) -> None:
        """InputError when so many rows do not fit the donor's disk while they are loaded."""
        shares.check_room(self.settings.version, rows, value_bytes, self._compacting,
                          files.free_bytes(self.host), self.host.name)

    def compaction(self, on: bool) -> None:
        """Whether SSTables are merged, on nodes that are there and on those to come."""
        self.donor.admin.compaction(DATABASE, TABLE, on)
        self.donor.await_agreed("all nodes to know about compaction")
        self._compacting = on

    @property
    def compacting(self) -> bool:
        """Whether SSTables are merged."""
        return self._compacting

    def data_bytes(self, node=None) -> int:
        """On disk of the table's live SSTables, on a node or the host of this name (the donor)."""
        node = self.donor if node is None else node
        return files.table_bytes(self.node(node) if isinstance(node, str) else node)

    def owners(self) -> dict[str, int]:
        """{address: token} of the nodes that the donor has as owners of their ranges."""
        return self.donor.admin.owners(DATABASE)

    def flush(self) -> None:
        """Have all that was written on disk."""
        in_parallel(self.running, lambda node: node.nodetool("flush", DATABASE, seconds=QUIET_SECONDS))

    def quiet(self, seconds: float = QUIET_SECONDS) -> None:
        """Returns when no node merges or flushes SSTables; SystemFailure that says what does."""
        until = time.monotonic() + seconds
        while busy := {node.host.name: found for node in self.running
                       if (found := node.admin.busy())}:
            if time.monotonic() > until:
                raise SystemFailure(f"not quiet within {seconds:g} s: {busy}")
            time.sleep(ASK_SECONDS)

    def merge(self, seconds: float = QUIET_SECONDS) -> list[int]:
        """Have the donor's files merged to rest, and compaction as it was: as cassandra_merge."""
        return merge(self, seconds)

    def keep(self, seconds: float = QUIET_SECONDS) -> int:
        """Keep what the donor, alone, has for `reset`: its bytes. It is started again by this."""
        self._require_alone()
        self.flush()
        self.quiet(seconds)
        self.donor.nodetool("drain", seconds=seconds)
        self.donor.stop()
        files.keep(self.donor)
        self._kept = SimpleNamespace(bytes=self.data_bytes(), compacting=self._compacting)
        self._start_donor()
        files.forget(self.donor)
        return self._kept.bytes

    def reset(self) -> None:
        """The donor alone again, with what was kept, none of it in the page cache."""
        if self._kept is None:
            raise InputError("nothing is kept to go back to", file="growing ring", key="reset",
                             allowed="after keep")
        in_parallel([node for node in self.nodes if node is not self.donor], lambda node: node.destroy())
        self.donor.process.kill()
        files.put_back(self.donor)
        self._start_donor()
        self._compacting = self._kept.compacting
        self._require_alone()
        if (found := self.data_bytes()) != self._kept.bytes:
            raise SystemFailure(f"{self.host.name} has {found} bytes, of {self._kept.bytes} kept",
                                log=self.process.log_tail())
        files.forget(self.donor)

    def _made(self, host, token=0, joins=False, together=False) -> GrowingNode:
        s = self.settings
        return GrowingNode(
            host, joins=joins, together=together, waits=s.ring_delay_ms is None,
            version=s.version, token=token, seeds=[self.host.address],
            heap_mb=s.heap_mb or HEAP_MB[VERSIONS[s.version]["protocol"]],
            ring_delay_ms=s.ring_delay_ms, stream_mbit=s.stream_mbit, whole_files=s.whole_files,
            disk_access=s.disk_access, by_range=s.files == "by_range")

    def _start_donor(self) -> None:
        self.donor.start()
        self._running, self._joined = [self.host.name], {self.host.name: 0}

    def _require_alone(self) -> None:
        if (owners := self.owners()) != {self.address: 0}:
            raise SystemFailure(f"{self.host.name} is not alone in its ring, but with {owners}")

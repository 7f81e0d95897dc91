"""A ring of Cassandra nodes that grows while it is used: one node has all, others join and leave.

Its first node, the donor, has token 0, and so all of the ring; a node that joins takes the range
after that of the one before, so that all data comes from the donor. One copy of each row, one
token a node. What was loaded once is kept, and a ring set back to it within seconds.
"""

from labbook.errors import InputError, SystemFailure
from labbook.systems.cassandra import nodetool
from labbook.systems.cassandra import sstables as files
from labbook.systems.cassandra import token_plan as shares
from labbook.systems.cassandra.config import VERSIONS
from labbook.systems.cassandra.join import Joiner, Joins
from labbook.systems.cassandra.kept_ring import KeptRing
from labbook.systems.cassandra.leave import leave
from labbook.systems.cassandra.node import Cassandra
from labbook.systems.cassandra.ring_settings import OLD
from labbook.systems.cluster import in_parallel

JOIN_SECONDS = LEAVE_SECONDS = 3600


class GrowingRing(KeptRing):
    """`hosts` are a node each, the first is the donor. `ring_delay_ms` None: waits as shipped; what
    else may be set is as in RingSettings and Cassandra. A target for workloads, also while it grows.
    """

    NEEDS = Cassandra.needs(version=OLD)

    @classmethod
    def needs(cls, **settings):
        return Cassandra.needs(version=cls.checked(settings)["version"])

    @classmethod
    def speaks(cls, **settings) -> str:
        return VERSIONS[cls.checked(settings)["version"]]["protocol"]

    def join(self, asked) -> Joins:
        """Have nodes join, all at once, and do not wait; `asked` as in cassandra_shares.plan."""
        version, taken = self.settings.version, dict(self._joined)
        wanted, before = shares.plan(version, taken, list(self._nodes), asked), self.data_bytes()
        owned = shares.owned(version, {**taken, **wanted})
        for name, token in wanted.items():
            self._check_free(name, round(before * shares.coming(version, taken, token)))
        in_parallel([self.node(name) for name in wanted], lambda node: node.destroy())
        for name, token in wanted.items():
            self._nodes[name] = self._made(self.node(name).host, token, joins=True,
                                           together=len(wanted) > 1)
        joiners = [Joiner(self.node(name), token, float(owned[name]))
                   for name, token in wanted.items()]
        in_parallel(joiners, lambda joiner: joiner.node.deploy())
        self._running += list(wanted)
        in_parallel(joiners, Joiner.begin)
        held = min(before, self._kept.bytes) if self._kept else before
        return Joins(self, joiners, before, held)

    def one_after_another(self, asked: list[float], seconds: float = JOIN_SECONDS) -> list[dict]:
        """Nodes of these shares join, each once the one before is in the ring: rows of all."""
        rows = []
        for share in asked:
            rows += self.join([share]).wait(seconds)
        return rows

    def join_again(self, asked, seconds: float, tries: int) -> tuple[list[dict], int]:
        """Nodes join as in `join`, and where that fails once more, at most `tries` times: rows of
        the join that came out, none if none did, and how many it took."""
        for number in range(1, tries + 1):
            joins = self.join(asked)
            try:
                return joins.wait(seconds), number
            except SystemFailure:
                for joiner in joins.joiners:
                    if joiner.killed_s is None:
                        joins.kill(joiner.name)
                    self._joined.pop(joiner.name, None)
        return [], tries

    def leave(self, name: str, seconds: float = LEAVE_SECONDS) -> dict:
        """Have a node give its range away and end: as cassandra_leave tells."""
        node, able = self.node(name), [n for n in self._running if n in self._joined][1:]
        if name not in able:
            raise InputError(f"{name!r} cannot leave", file="growing ring", key="leave",
                             allowed=able)
        told = leave(self, node, seconds)
        self.ended(name)
        self._joined.pop(name)
        return told

    def ring(self) -> dict[str, dict]:
        """By name, as the donor tells it: state (as NORMAL, JOINING), up, token, load_bytes."""
        names = {node.address: name for name, node in self._nodes.items()}
        told = nodetool.ring_told(self.donor.nodetool("ring"))
        return {names.get(address, address): found for address, found in told.items()}

    def came(self, name: str) -> None:
        """A joiner is in the ring; told by Joins."""
        self._joined[name] = self._nodes[name].settings.token

    def ended(self, name: str) -> None:
        """A node does not run any more."""
        self._running = [n for n in self._running if n != name]

    def _check_free(self, name: str, coming: int) -> None:
        """InputError when so many bytes do not fit the host's disk."""
        free = files.free_bytes(self.node(name).host)
        if coming > free:
            raise InputError(f"{coming} bytes are to come, and {name} has {free} free",
                             file="growing ring", key=f"shares.{name}",
                             allowed="what fits its disk")

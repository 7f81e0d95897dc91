"""A node of a ring that grows: a Cassandra that may ask the ring for its data first."""

from labbook.systems.cassandra.node import Cassandra


class GrowingNode(Cassandra):
    """A node of a ring that grows.

    joins: it asks the ring for the data of its range first. together: so do others at the same
    time, which today's versions refuse unless told. waits: it waits for gossip to settle as
    today's do when shipped. by_range: its SSTables are many, each of a range of its own.
    """

    def __init__(self, host, *, joins=False, together=False, waits=False, by_range=False,
                 **settings):
        super().__init__(host, nodetool=True, **settings)
        self.joins, self.together, self.waits = joins, together, waits
        self.by_range = by_range

    def configuration(self) -> dict:
        return {**super().configuration(), "auto_bootstrap": self.joins}

    def command(self) -> str:
        # Today's takes memory beside the heap as it likes, at most as much again, twice: nodes that
        # have little are killed for it while they stream.
        java, rest = super().command().split(" ", 1)
        most = f"-XX:MaxDirectMemorySize={self.settings.heap_mb // 2}M "
        return f"{java} {most if self.protocol == 'cql' else ''}{rest}"

    def properties(self) -> dict:
        # A ring of an earlier life is nothing that a node should look for.
        found = {**super().properties(), "cassandra.load_ring_state": "false"}
        if self.protocol == "cql":
            found["io.netty.maxDirectMemory"] = self.settings.heap_mb << 18  # a quarter, in bytes
            if self.together:
                found["cassandra.consistent.rangemovement"] = "false"
            if self.waits:
                found["cassandra.skip_wait_for_gossip_to_settle"] = None
        return found

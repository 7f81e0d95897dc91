"""A node of a ring that grows: a Cassandra that may ask the ring for its data first."""

from labbook.systems.cassandra import Cassandra


class GrowingNode(Cassandra):
    """A node of a ring that grows.

    joins: it asks the ring for the data of its range first. together: so do others at the same
    time, which today's versions refuse unless told. waits: it waits for gossip to settle as
    today's do when shipped.
    """

    def __init__(self, host, *, joins=False, together=False, waits=False, **settings):
        super().__init__(host, nodetool=True, **settings)
        self.joins, self.together, self.waits = joins, together, waits

    def configuration(self) -> dict:
        return {**super().configuration(), "auto_bootstrap": self.joins}

    def properties(self) -> dict:
        # A ring of an earlier life is nothing that a node should look for.
        found = {**super().properties(), "cassandra.load_ring_state": "false"}
        if self.protocol == "cql":
            if self.together:
                found["cassandra.consistent.rangemovement"] = "false"
            if self.waits:
                found["cassandra.skip_wait_for_gossip_to_settle"] = None
        return found

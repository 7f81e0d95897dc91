"""A Cassandra node that joins a ring and leaves it; see elastic_ring.py."""

from pathlib import Path

from labbook.systems.cassandra.node import Cassandra
from labbook.targets import CQL

ADVISE = Path(__file__).with_name("on_host") / "advise.c"
GETS = "ReadStage"      # how the names of the threads begin that read for gets


class ElasticNode(Cassandra):
    """A node that may ask the ring for the data of its range before it serves.

    joins: it does so. together: other nodes join at the same time, which today's version refuses
    by default. waits: it waits for gossip to settle, as today's version does by default.
    `ahead_of_gets`: whether the kernel reads ahead for gets; takes effect when the node starts.
    """

    ahead_of_gets = True

    def __init__(self, host, *, joins=False, together=False, waits=False, **settings):
        super().__init__(host, nodetool=True, **settings)
        self.joins, self.together, self.waits = joins, together, waits

    def configuration(self) -> dict:
        # The papers' version lets as many memtables wait for the disk as one fills in the meantime: with
        # a small heap and a disk slower than the writes it runs out of memory, instead of making them wait.
        waiting = {} if self.protocol == CQL else {"memtable_flush_queue_size": 1}
        return {**super().configuration(), **waiting, "auto_bootstrap": self.joins}

    def command(self) -> str:
        # Today's version takes up to twice the heap's size outside the heap. Nodes with little
        # memory are then killed while they stream, so that memory is limited here.
        java, rest = super().command().split(" ", 1)
        limit = f"-XX:MaxDirectMemorySize={self.settings.heap_mb // 2}M "
        preload = "" if self.ahead_of_gets else f"env LD_PRELOAD={self._advise} LABBOOK_NOTHING_AHEAD={GETS} "
        return f"{preload}{java} {limit if self.protocol == CQL else ''}{rest}"

    def compile_advise(self) -> None:
        """Compile what leaves gets without a read-ahead, on the node's host."""
        source = self.put(ADVISE.read_text(), ADVISE.name)
        self.run("gcc", "-O2", "-shared", "-fPIC", "-o", self._advise, source, "-ldl", timeout=60)

    @property
    def _advise(self):
        return self.home / "advise.so"

    def properties(self) -> dict:
        # It must not look for the members of a ring that it was in before.
        properties = {**super().properties(), "cassandra.load_ring_state": "false"}
        if self.protocol == CQL:
            properties["io.netty.maxDirectMemory"] = self.settings.heap_mb << 18  # a quarter, in bytes
            if self.together:
                properties["cassandra.consistent.rangemovement"] = "false"
            if self.waits:
                properties["cassandra.skip_wait_for_gossip_to_settle"] = None
        return properties

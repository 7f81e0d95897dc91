"""A Galera cluster: MariaDB servers at one or several sites that all take writes."""

import secrets
from contextlib import suppress
from pathlib import Path
from uuid import uuid1

import pymysql

from labbook.errors import InputError, SystemFailure
from labbook.lab.ssh.transfer import say
from labbook.systems.cluster import Cluster, in_parallel, poll
from labbook.systems.galera import config
from labbook.systems.galera.node import NEEDS, NEW_CLUSTER, SST_SECONDS, GaleraNode, Left

LISTEN_SECONDS, LEAVE_SECONDS = 30, 10
STARTS = 3      # of a node that leaves while joining


class Galera(Cluster):
    """A cluster of one node on each host; the first leads a new cluster.

    segments, weights: one number (0 to 255) for each node. A write is sent once to each other segment
    and passed on inside it. If the cluster is partitioned, the part with more than half of the
    weights continues.
    data: as in GaleraNode.deploy, for all nodes. Without, the first node creates an empty data
    directory, and the others get its content from the cluster.
    """

    NAME = "galera"
    NEEDS = NEEDS
    protocol = GaleraNode.protocol
    SETTINGS = {
        **config.SHARED,
        "segments": {"type": "array", "items": config.BYTE},
        "weights": {"type": "array", "items": config.BYTE},
    }

    def __init__(self, hosts, *, data: Path | None = None, **settings):
        self.data = data
        self._equal_data = False    # on all nodes, as copies from the cache
        super().__init__(hosts, **settings)

    @classmethod
    def checked(cls, settings: dict) -> dict:
        settings = super().checked(settings)
        config.check_windows(settings)
        return settings

    def make_nodes(self) -> list[GaleraNode]:
        s, count = self.settings, len(self.hosts)
        self.segments = config.numbers_per_node("segments", s.segments, count, 0)
        self.weights = config.numbers_per_node("weights", s.weights, count, 1)
        if not any(self.weights):
            raise InputError("all are 0, so that no node has a vote", file=config.FILE, key="weights",
                             allowed="at least one above 0")
        peers = [host.address for host in self.hosts]
        shared = {key: getattr(s, key) for key in config.SHARED}
        return [GaleraNode(host, peers=peers, segment=segment, weight=weight, **shared)
                for host, segment, weight in zip(self.hosts, self.segments, self.weights)]

    def deploy(self) -> None:
        password = secrets.token_urlsafe(24)
        in_parallel(self.nodes, lambda node: node.deploy(self.data, empty=node is not self.front,
                                                         password=password))
        self._equal_data = self.data is not None

    def start(self) -> None:
        """Start all nodes; returns when all are Synced."""
        with self.all_or_none():
            if self._equal_data:
                self._start_as_members()
                self._equal_data = False
            else:
                self._start_after_leader()
            self.await_formed()

    def await_formed(self) -> None:
        self.synced()

    def await_joined(self, node: GaleraNode, seconds: float | None = None) -> None:
        """Wait until a started node is Synced.

        A node that leaves while joining (seen once, on a busy machine) is started again, up to STARTS
        times in all; then SystemFailure.
        """
        for starts_left in reversed(range(STARTS)):
            try:
                return node.await_answer(seconds)
            except Left as left:
                if not starts_left or node.leads():
                    raise
                say(f"{left.message}; starting it again")
                node.begin_again()

    def stop(self) -> None:
        """Stop the nodes one after the other.

        Only a node that saw all others leave knows, when it starts again, that it has all data.
        """
        left = [node for node in self.nodes if node.process and node.process.alive()]
        while left:
            left.pop().stop()
            if left:
                self._await_left(left[0], len(left))

    def synced(self, nodes=None, size: int | None = None, seconds=60) -> None:
        """Wait until the nodes (host names; default: all) are Synced and may write, and each sees
        `size` nodes (default: as many as are waited for). SystemFailure with all states if not."""
        chosen = self.nodes if nodes is None else [self.node(name) for name in nodes]
        size = size or len(chosen)
        poll(self.host, lambda: self.status(chosen),
             lambda states: all(s and s["primary"] and s["state"] == "Synced" and s["size"] == size
                                for s in states.values()),
             f"{size} nodes to be Synced", seconds)

    def status(self, nodes=None) -> dict:
        """The cluster_state of each node by its host's name; None for a node that does not answer."""
        nodes = self.nodes if nodes is None else nodes
        return {node.host.name: found for node, found in zip(nodes, in_parallel(nodes, _state_of))}

    def counters(self) -> dict:
        """Counters since the nodes' starts, summed over the nodes: flow_control_paused_s,
        flow_control_sent, cert_failures, bf_aborts, replicated, replicated_bytes, questions."""
        found = in_parallel(self.nodes, lambda node: node.counters())
        return {key: sum(counters[key] for counters in found) for key in found[0]}

    def query_each(self, statement: str, database=None) -> dict:
        """The rows of one statement on each node, by its host's name, once the node has applied all
        that was committed before."""
        rows = in_parallel(self.nodes, lambda node: node.query_synced(statement, database))
        return {node.host.name: found for node, found in zip(self.nodes, rows)}

    def query(self, statement: str, database=None) -> tuple:
        """All rows of one statement on the first node, as in `query_each`."""
        return self.front.query_synced(statement, database)

    def facts(self) -> dict:
        own = ("peers", "segment", "weight")
        return {key: value for key, value in super().facts().items() if key not in own}

    def report(self) -> dict:
        return {"segments": self.segments, "weights": self.weights}

    def _start_after_leader(self) -> None:
        """Start the node that stopped last as the first of the cluster, then the others.

        It gives each of them in turn what it lacks. A node that has just joined is no donor yet: when the
        cluster changes while it gives, it sends less than the joiner needs, which then leaves (Galera
        26.4.23: "IST didn't contain all write sets").
        """
        leader = self._leader()
        leader.begin(NEW_CLUSTER)
        leader.host.wait_for(leader.listens, "a node to join", LISTEN_SECONDS, leader.process)
        donor = f"--wsrep-sst-donor={leader.host.name}"
        in_parallel([node for node in self.nodes if node is not leader], lambda node: node.begin(donor))
        in_parallel(self.nodes, lambda node: self.await_joined(node, SST_SECONDS), self.kill_all)

    def _start_as_members(self) -> None:
        """Start nodes with equal data at once, as members of one last view.

        Started one after the other, each node would get the transactions of those before it, which
        takes three times as long.
        """
        ids = [uuid1() for _ in self.nodes]
        for node, mine in zip(self.nodes, ids):
            node.put(config.last_view(ids, self.segments, mine), "data", "gvwstate.dat")
        in_parallel(self.nodes, lambda node: node.begin())
        in_parallel(self.nodes, self.await_joined, self.kill_all)

    def _leader(self) -> GaleraNode:
        """The node that stopped last, or the first if none has ever run."""
        last = in_parallel(self.nodes, lambda node: node.stopped_last())
        if True in last:
            return self.nodes[last.index(True)]
        if False not in last:
            return self.front
        raise SystemFailure("no node of galera was the last to stop in order, so none is known to "
                            "have all transactions")

    def _await_left(self, node, size: int) -> None:
        def sees_no_more() -> bool:
            found = _state_of(node)
            return found is None or found["size"] <= size

        with suppress(SystemFailure):  # the others are stopped all the same
            node.host.wait_for(sees_no_more, "a node to leave", LEAVE_SECONDS, interval=0.05)


def _state_of(node: GaleraNode) -> dict | None:
    try:
        return node.cluster_state()
    except (OSError, pymysql.Error):
        return None

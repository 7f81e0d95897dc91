"""Several MariaDB servers that all take writes: a Galera cluster, over one site or more."""

from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid1

import pymysql

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.lab.ssh.transfer import say
from labbook.systems.base import Described
from labbook.systems.cluster import each, together
from labbook.systems.galera import config
from labbook.systems.galera.node import NEEDS, NEW_CLUSTER, SST_SECONDS, GaleraNode, Left

LISTEN_SECONDS, LEAVE_SECONDS = 30, 10
STARTS = 3      # of a node that leaves while it joins


class Galera(Described):
    """`hosts` are a node each; the first leads a new cluster.

    segments, weights: one number (0 to 255) for each node. A write crosses once to each other
    segment, and is passed on within it. Of a cluster that falls apart, that part goes on whose
    weights are more than half. `data` as in GaleraNode.deploy, for all; without, the first makes
    an empty data directory and the others get it from the cluster.
    """

    NAME = "galera"
    NEEDS = NEEDS
    protocol = GaleraNode.protocol
    SETTINGS = {
        **config.SHARED,
        "segments": {"type": "array", "items": config.BYTE},
        "weights": {"type": "array", "items": config.BYTE},
    }

    def __init__(self, hosts, *, segments=None, weights=None, data: Path | None = None, **settings):
        if not hosts:
            raise InputError("no hosts for it", file=config.FILE, key="hosts")
        self.checked(settings)
        self.host, self.hosts, self.data = hosts[0], list(hosts), data
        self.segments = config.numbers_of_nodes("segments", segments, len(hosts), 0)
        self.weights = config.numbers_of_nodes("weights", weights, len(hosts), 1)
        if not any(self.weights):
            raise InputError("no node has any", file=config.FILE, key="weights")
        self.addresses = [host.address for host in hosts]
        self.nodes = [GaleraNode(host, peers=self.addresses, segment=segment, weight=weight,
                                 **settings)
                      for host, segment, weight in zip(hosts, self.segments, self.weights)]
        first = self.nodes[0]
        self.address, self.port = first.address, first.port

    @classmethod
    def checked(cls, settings: dict) -> dict:
        settings = super().checked(settings)
        config.check_windows(settings)
        return settings

    @property
    def processes(self) -> list:
        return [node.process for node in self.nodes]

    def node(self, name: str) -> GaleraNode:
        """The node on the host of this name."""
        for node in self.nodes:
            if node.host.name == name:
                return node
        raise InputError(f"no node on a host {name!r}", allowed=[h.name for h in self.hosts])

    def up(self) -> "Galera":
        """Take away what earlier runs left, deploy, and start."""
        self.destroy()
        each(self.nodes, lambda node: node.provide())
        each(self.nodes, lambda node: node.deploy(self.data, empty=node is not self.nodes[0]))
        if self.data:
            self._start_together()
        else:
            self.start()
        return self

    def start(self) -> None:
        """Start the nodes, first the one that was stopped last; returns when all are Synced."""
        leader = self._leader()
        with self._or_none():
            leader.begin(NEW_CLUSTER)
            leader.host.wait_for(leader.listens, "a node to join", LISTEN_SECONDS, leader.process)
            each([node for node in self.nodes if node is not leader], lambda node: node.begin())
            each(self.nodes, lambda node: self.await_joined(node, SST_SECONDS), self._kill)
            self.synced()

    def await_joined(self, node: GaleraNode, seconds: float | None = None) -> None:
        """Returns once a node that was started is Synced. One that leaves while it joins (seen once,
        on a busy machine) is started again; SystemFailure when that does not help."""
        for starts_left in reversed(range(STARTS)):
            try:
                return node.await_answer(seconds)
            except Left as left:
                if not starts_left or node.leads():
                    raise
                say(f"{left.message}; it is started again")
                node.begin()

    def stop(self) -> None:
        """One after the other: only a node that saw all others leave knows, when it is started
        again, that it has all there is."""
        left = [node for node in self.nodes if node.process and node.process.alive()]
        while left:
            left.pop().stop()
            if left:
                self._await_left(left[0], len(left))

    def destroy(self) -> None:
        each(self.nodes, lambda node: node.destroy())

    def synced(self, nodes=None, size: int | None = None, seconds=60) -> None:
        """Returns when these nodes (names; all) are Synced and each sees `size` nodes (as many as
        are asked) that may write; SystemFailure that tells how they stand if not."""
        asked = self.nodes if nodes is None else [self.node(name) for name in nodes]
        size, seen = size or len(asked), {}

        def all_are() -> bool:
            seen.update(self.status(asked))
            return all(s and s["primary"] and s["state"] == "Synced" and s["size"] == size
                       for s in seen.values())

        try:
            self.host.wait_for(all_are, f"{size} nodes to be Synced", seconds, interval=0.2)
        except SystemFailure as error:
            error.message += f"; they are {seen}"
            raise

    def status(self, nodes=None) -> dict:
        """By the name of its host, how each node stands (size, primary, state, committed); None for
        one that does not answer."""
        nodes = self.nodes if nodes is None else nodes
        return {node.host.name: found for node, found in zip(nodes, each(nodes, _standing))}

    def counters(self) -> dict:
        """Summed over the nodes, since their starts: flow_control_paused_s, flow_control_sent,
        cert_failures, bf_aborts, replicated, replicated_bytes, questions."""
        found = each(self.nodes, lambda node: node.counters())
        return {key: sum(counters[key] for counters in found) for key in found[0]}

    def query_each(self, statement: str, database=None) -> dict:
        """By the name of its host, the rows of one statement on each node, once it has applied all
        that was committed before."""
        rows = each(self.nodes, lambda node: node.query_in_step(statement, database))
        return {node.host.name: found for node, found in zip(self.nodes, rows)}

    def query(self, statement: str, database=None) -> tuple:
        """All rows of one statement on the first node, as `query_each` has them."""
        return self.nodes[0].query_in_step(statement, database)

    def bootstrap(self, name: str) -> None:
        """Let the part of a fallen-apart cluster that this node sees go on as the cluster."""
        self.node(name).query("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=1'")

    def facts(self) -> dict:
        """A node's facts; those in which the nodes differ are lists, in the order of the nodes."""
        found = together(each(self.nodes, lambda node: node.facts()))
        left_out = ("peers", "segment", "weight")
        return {**{key: value for key, value in found.items() if key not in left_out},
                "nodes": len(self.nodes), "segments": self.segments, "weights": self.weights}

    def _start_together(self) -> None:
        """Start nodes that all have the same. As none has missed anything, they are told that they
        were one cluster; one after the other, each would have to be given the news of those that
        came before, which takes three times as long."""
        ids = [uuid1() for _ in self.nodes]
        with self._or_none():
            for node, mine in zip(self.nodes, ids):
                node.put(config.last_view(ids, self.segments, mine), "data", "gvwstate.dat")
            each(self.nodes, lambda node: node.begin())
            each(self.nodes, self.await_joined, self._kill)
            self.synced()

    @contextmanager
    def _or_none(self):
        """No node is left running when they do not come up."""
        try:
            yield
        except BaseException:
            self._kill()
            raise

    def _leader(self) -> GaleraNode:
        """The node that was the last to stop, or the first when none has ever run."""
        able = each(self.nodes, lambda node: node.may_lead())
        for node, may in zip(self.nodes, able):
            if may:
                return node
        raise SystemFailure("no node of galera was the last to stop in order, so none can say "
                            "that it has all transactions")

    def _await_left(self, node, size: int) -> None:
        def sees_no_more() -> bool:
            found = _standing(node)
            return found is None or found["size"] <= size

        with suppress(SystemFailure):  # the others are to stop all the same
            node.host.wait_for(sees_no_more, "a node to leave", LEAVE_SECONDS, interval=0.05)

    def _kill(self) -> None:
        with suppress(LabbookError):  # what went wrong first is what must be told
            each(self.nodes, lambda node: node.process and node.process.kill())


def _standing(node: GaleraNode) -> dict | None:
    try:
        return node.standing()
    except (OSError, pymysql.Error):
        return None

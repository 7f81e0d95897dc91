"""Several Cassandra nodes as one system: their tokens, who knows whom, which nodes hold a row."""

from bisect import bisect_left
from contextlib import suppress

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.systems.cassandra.config import FILE, VERSIONS
from labbook.systems.cassandra.node import Cassandra
from labbook.systems.cluster import each, together

KEYSPACE, TABLE = "labbook", "pairs"
HEAP_MB = {"thrift": 256, "cql": 512}
MOST_ROWS = 10**6  # keys are in the order of their numbers as long as these have six digits
MEET_SECONDS = 120


class Ring:
    """`hosts` are a node each, the first is the seed. `settings` are a node's but token and seeds.

    placement hash: even parts of the hash. ordered: row i of `rows` lies on node i * n // rows,
    and its copies on the nodes after that one.
    """

    def __init__(self, hosts, *, version="0.7.0", replication=1, placement="hash", rows=1000,
                 **settings):
        check_ring(len(hosts), replication, placement, rows, settings)
        Cassandra.checked({**settings, "version": version})
        self.replication, self.rows = replication, rows
        tokens = (ordered_tokens(len(hosts), rows) if placement == "ordered"
                  else hash_tokens(len(hosts), version))
        settings = {"heap_mb": HEAP_MB[VERSIONS[version]["protocol"]], **settings}
        self.nodes = [Cassandra(host, version=version, placement=placement, token=token,
                                seeds=[hosts[0].address], **settings)
                      for host, token in zip(hosts, tokens)]
        self.host, self.hosts = hosts[0], list(hosts)
        first = self.nodes[0]
        self.address, self.port, self.protocol = first.address, first.port, first.protocol
        self.addresses = [node.address for node in self.nodes]

    @property
    def processes(self) -> list:
        return [node.process for node in self.nodes]

    def up(self) -> "Ring":
        """Take away what earlier runs left, deploy, and start."""
        self.destroy()
        each(self.nodes, lambda node: node.deploy())
        self.start()
        return self

    def start(self) -> None:
        """Start the nodes; returns when each has seen all others join and has them answer."""
        first, *others = self.nodes
        try:
            first.start()  # whom the others ask who is there
            each(others, lambda node: node.start(), self._end)
            self.meet()
        except BaseException:
            self._end()
            raise

    def meet(self) -> None:
        """Returns when each node has seen all others join and has them answer, such as after one
        was started again."""
        members = {node.address: node.range_end for node in self.nodes}
        self._all_give(lambda node: node.admin.members(), members, "know all nodes")

    def create_table(self, keyspace=KEYSPACE, table=TABLE) -> None:
        """Make the table; returns when each node tells the ranges that were asked for."""
        self.nodes[0].create_table(keyspace, table, self.replication)
        twice = self.addresses * 2
        ranges = sorted((node.range_end, twice[i:i + self.replication])
                        for i, node in enumerate(self.nodes))
        self._all_give(lambda node: node.admin.ranges(keyspace), ranges, "know who holds what")

    def stop(self) -> None:
        each(self.nodes, lambda node: node.stop())

    def destroy(self) -> None:
        each(self.nodes, lambda node: node.destroy())

    def facts(self) -> dict:
        """A node's facts; those in which the nodes differ are lists, in the order of the nodes."""
        return {**together(each(self.nodes, lambda node: node.facts())),
                "nodes": len(self.nodes), "replication": self.replication, "rows": self.rows}

    def owners(self, keyspace=KEYSPACE) -> list[str]:
        """For each row, the name of the host whose range it falls into, as the cluster tells."""
        return [held[0] for held in self._holders(range(self.rows), keyspace)]

    def holders(self, row: int, keyspace=KEYSPACE) -> list[str]:
        """Names of the hosts that hold a row, the owner of its range first."""
        return self._holders([row], keyspace)[0]

    def _end(self) -> None:
        with suppress(LabbookError):  # what went wrong first is what must be told
            self.stop()

    def _holders(self, rows, keyspace) -> list[list[str]]:
        admin = self.nodes[0].admin
        names = {node.address: node.host.name for node in self.nodes}
        ranges = admin.ranges(keyspace)
        ends = [end for end, _ in ranges]
        at = (bisect_left(ends, admin.token_of(row_key(row))) % len(ends) for row in rows)
        return [[names[address] for address in ranges[i][1]] for i in at]

    def _all_give(self, ask, wanted, what: str) -> None:
        each(self.nodes, lambda node: _await(node, ask, wanted, what), self._end)


def _await(node, ask, wanted, what: str) -> None:
    """Ask a node until it gives `wanted`; SystemFailure that tells what it gave last if not."""
    given = None

    def gives() -> bool:
        nonlocal given
        try:
            given = ask(node)
        except LabbookError:
            raise
        except Exception as error:  # whatever a driver makes of a ring that is still forming
            given = error
        return given == wanted

    try:
        node.host.wait_for(gives, f"Cassandra to {what}", MEET_SECONDS, node.process, 0.2)
    except SystemFailure as error:
        error.message += f"; asked for {wanted!r}, it gave {given!r}"
        raise


def check_ring(nodes: int, replication: int, placement: str, rows: int, settings: dict) -> None:
    """InputError for what cannot be a ring."""
    if nodes == 0:
        raise InputError("no hosts for it", file="ring of cassandra", key="hosts")
    if not 1 <= replication <= nodes:
        raise InputError(f"{replication} copies do not fit {nodes} nodes",
                         file="ring of cassandra", key="replication", allowed=f"1 to {nodes}")
    if placement == "ordered" and not nodes <= rows <= MOST_ROWS:
        raise InputError(f"{rows} rows cannot be placed on {nodes} nodes",
                         file="ring of cassandra", key="rows", allowed=f"{nodes} to {MOST_ROWS}")
    for key in {"token", "seeds"} & set(settings):
        raise InputError("is the ring's own to give", file=FILE, key=key)


def hash_tokens(nodes: int, version: str) -> list[int]:
    """Even parts of what the version's hash may be."""
    least, most = VERSIONS[version]["tokens"]
    return [least + (2 * i + 1) * (most - least) // (2 * nodes) for i in range(nodes)]


def ordered_tokens(nodes: int, rows: int) -> list[str]:
    """For each node the key of its last row: row i of `rows` lies on node i * nodes // rows."""
    return [row_key(((i + 1) * rows - 1) // nodes).decode() for i in range(nodes)]


def row_key(row: int) -> bytes:
    """The workloads' keys, which systems do not import."""
    return b"row%06d" % row

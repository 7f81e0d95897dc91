"""A ring of Cassandra nodes as one system: their tokens, and which nodes hold which row."""

from bisect import bisect_left

from labbook.errors import InputError
from labbook.systems.base import Needs, errors_of
from labbook.systems.cassandra.config import VERSIONS, check_read_repair
from labbook.systems.cassandra.node import Cassandra
from labbook.systems.cluster import Cluster, in_parallel, poll
from labbook.targets import DATABASE, MAX_ROWS, TABLE, key_of

HEAP_MB = {"thrift": 256, "cql": 512}
FORM_SECONDS = 120
GIVEN_BY_RING = ("token", "seeds")


class Ring(Cluster):
    """Each of `hosts` has a node; the first one is the seed, which the others ask who is there.

    replication: copies of each row. read_repair: the chance, 0 to 1, that a read at ONE has all of them compared and
    those that differ repaired (None: as shipped; 5.0.8 has no such chance). placement hash: the nodes own
    equal parts of the hash's range. ordered: row i of `rows` lies on node i * n // rows, and its copies on
    the nodes after it. All other settings are those of a node.
    """

    NAME = "cassandra_ring"
    SETTINGS = {
        "replication": {"type": "integer", "minimum": 1, "default": 1},
        "rows": {"type": "integer", "minimum": 1, "default": 1000},
        "read_repair": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        **{key: rule for key, rule in Cassandra.SETTINGS.items() if key not in GIVEN_BY_RING},
    }
    NEEDS = Cassandra.NEEDS

    @classmethod
    def checked(cls, settings: dict) -> dict:
        with errors_of(cls.NAME):
            for key in set(GIVEN_BY_RING) & set(settings):
                raise InputError("is set by the ring", key=key)
            settings = super().checked(settings)
            given = {key: value for key, value in settings.items() if key in Cassandra.SETTINGS and value is not None}
            Cassandra.checked(given | ({"token": "a row"} if settings["placement"] == "ordered" else {}))
            check_read_repair(settings["version"], settings["read_repair"])
        return settings

    @classmethod
    def needs(cls, **settings) -> Needs:
        return Cassandra.needs(version=cls.checked(settings)["version"])

    @classmethod
    def speaks(cls, **settings) -> str:
        return VERSIONS[cls.checked(settings)["version"]]["protocol"]

    def make_nodes(self) -> list[Cassandra]:
        s, count = self.settings, len(self.hosts)
        check_size(count, s.replication, s.placement, s.rows)
        tokens = (ordered_tokens(count, s.rows) if s.placement == "ordered"
                  else hash_tokens(count, s.version))
        shared = {key: value for key, value in vars(s).items()
                  if key in Cassandra.SETTINGS and value is not None}
        shared.setdefault("heap_mb", HEAP_MB[VERSIONS[s.version]["protocol"]])
        return [Cassandra(host, token=token, seeds=[self.hosts[0].address], **shared)
                for host, token in zip(self.hosts, tokens)]

    def await_formed(self) -> None:
        """Return when each node has seen all others join and has them answer; also after a node
        was started again."""
        members = {node.address: node.range_end for node in self.nodes}
        self._await_all(lambda node: node.admin.members(), members, "know all nodes")

    def create_table(self, keyspace=DATABASE, table=TABLE) -> None:
        """Make the table; return when each node reports the ranges as they are meant to be."""
        self.front.create_table(keyspace, table, self.settings.replication, read_repair=self.settings.read_repair)
        twice = self.addresses * 2
        ranges = sorted((node.range_end, twice[i:i + self.settings.replication])
                        for i, node in enumerate(self.nodes))
        self._await_all(lambda node: node.admin.ranges(keyspace), ranges, "know who holds what")

    def report(self) -> dict:
        return {key: vars(self.settings)[key] for key in ("replication", "rows", "read_repair")}

    def owners(self, keyspace=DATABASE) -> dict[str, int | bytes]:
        """{name of the host: token at which its range ends}, as the first node knows them."""
        return by_host(self.nodes, self.front.admin.owners(keyspace))

    def holders(self, row: int, keyspace=DATABASE) -> list[str]:
        """Names of the hosts that hold a row, the owner of its range first."""
        admin = self.front.admin
        names = {node.address: node.host.name for node in self.nodes}
        ranges = admin.ranges(keyspace)
        at = bisect_left([end for end, _ in ranges], admin.token_of(key_of(row))) % len(ranges)
        return [names[address] for address in ranges[at][1]]

    def _await_all(self, ask, wanted, what: str) -> None:
        """Return when each node's answer is `wanted`."""
        in_parallel(self.nodes, lambda node: poll(
            node.host, lambda: ask(node), lambda answer: answer == wanted,
            f"Cassandra to {what} ({wanted!r})", FORM_SECONDS, process=node.process), self.kill_all)


def by_host(nodes, by_address: dict) -> dict:
    """The same values by the names of the nodes' hosts; other addresses stay as they are."""
    names = {node.address: node.host.name for node in nodes}
    return {names.get(address, address): value for address, value in by_address.items()}


def check_size(nodes: int, replication: int, placement: str, rows: int) -> None:
    """InputError where a ring of so many nodes cannot have these copies or these rows."""
    if replication > nodes:
        raise InputError(f"{replication} copies do not fit {nodes} nodes",
                         file="settings of cassandra_ring", key="replication", allowed=f"1 to {nodes}")
    if placement == "ordered" and not nodes <= rows <= MAX_ROWS:
        raise InputError(f"{rows} rows cannot be placed on {nodes} nodes",
                         file="settings of cassandra_ring", key="rows", allowed=f"{nodes} to {MAX_ROWS}")


def hash_tokens(nodes: int, version: str) -> list[int]:
    """Tokens that divide the range of the version's hash evenly."""
    least, most = VERSIONS[version]["tokens"]
    return [least + (2 * i + 1) * (most - least) // (2 * nodes) for i in range(nodes)]


def ordered_tokens(nodes: int, rows: int) -> list[str]:
    """For each node the key of its last row: row i of `rows` lies on node i * nodes // rows."""
    return [key_of(((i + 1) * rows - 1) // nodes).decode() for i in range(nodes)]

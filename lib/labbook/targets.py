"""What a workload may assume of a system, and the names that both of them use.

Systems and workloads do not import each other. A workload is given a *target*: an object that has
the attributes of one of the protocols below. Every `System` and every `Cluster` has those of
`Servers`. Programs that run on hosts import this module too: standard library only.
"""

from typing import Protocol

# The wire protocols by which clients call a server.
THRIFT, CQL, MYSQL, HTTP, KEYSTONE, CEPHFS = "thrift", "cql", "mysql", "http", "keystone", "cephfs"

# Consistency levels, from Cassandra. A read has to be answered by a replica: ANY is for writes.
READ_LEVELS = ("ONE", "QUORUM", "ALL")
WRITE_LEVELS = (*READ_LEVELS, "ANY")

# The store of key-value pairs: keyspace or database, column family or table, and its user.
DATABASE, TABLE, USER = "labbook", "pairs", "labbook"
COLUMN = b"value"       # Cassandra's column of the value; the row's key is the pair's key
MAX_ROWS = 1_000_000    # up to here all keys have the same length, and sort like their numbers

# What a value is made of, after its key: dots, or random bytes, which no store can compress.
DOTS, RANDOM = "dots", "random"
VALUES = (DOTS, RANDOM)


def key_of(row: int) -> bytes:
    """The key of a row, by its number from 0 on."""
    return b"row%06d" % row


def row_of(key: bytes) -> int:
    """The number of the row with this key."""
    return int(key[3:])


class Process(Protocol):
    """A server's process on its host, as lab.host.process.Process."""

    host: object
    name: str
    pid: int
    log: str

    def alive(self) -> bool: ...
    def log_tail(self, lines: int = 40) -> str: ...


class Server(Protocol):
    """A server that clients call at one address, by the wire protocol `protocol`.

    One that asks USER for a password has it as `password`, which must not enter a record.
    """

    address: str
    port: int
    protocol: str


class Servers(Server, Protocol):
    """One server or several that answer the same calls at the same port; clients go round over
    `addresses`. `processes` are those whose CPU time counts as the servers'."""

    addresses: list[str]
    processes: list[Process]


class IdentityServer(Server, Protocol):
    """A server that clients have to log in to. `credentials` has auth_url, username, password,
    project and domain."""

    credentials: dict


def addresses(target: Server) -> list[str]:
    """All addresses at which a target is called: one for a target without `addresses`."""
    return [str(address) for address in getattr(target, "addresses", None) or [target.address]]


def password(target: Server) -> str:
    """The password of USER; "" for a target that asks for none."""
    return getattr(target, "password", "")


def processes(target: Server) -> list[Process]:
    """The processes of a target's servers; none for a target that does not know them."""
    one = getattr(target, "process", None)
    return list(getattr(target, "processes", None) or ([one] if one else []))

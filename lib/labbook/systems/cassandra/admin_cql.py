"""Administer today's version of Cassandra by CQL."""

from contextlib import contextmanager

PROTOCOL = 4
HEADER_BYTES = 9
EMPTY = "system_auth.network_permissions"  # one replica of each range; without logins no rows
# The thread pools that merge SSTables and write new ones.
MERGING_OR_FLUSHING = ("CompactionExecutor", "MemtableFlushWriter", "MemtablePostFlush")
BY_SIZE = "'class': 'SizeTieredCompactionStrategy'"
# Small SSTables, so that a range of a few percent of a gigabyte has many whole ones.
BY_RANGE = "'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '4'"


class CQLAdmin:
    """Questions and commands to a node; each takes an SSH round trip."""

    def __init__(self, node):
        self.node = node

    @contextmanager
    def client(self, timeout=30):
        """A connection for statements; TimeoutError when no answer comes in `timeout` seconds."""
        connection = Connection(self.node.channel(timeout))
        try:
            connection.begin()
            yield connection
        finally:
            connection.close()

    def answers(self) -> None:
        self._local("release_version")

    def facts(self) -> dict:
        version, cql = self._local("release_version", "cql_version")
        return {"version": version, "cql": cql}

    def create_table(self, keyspace: str, table: str, replication: int,
                     compression: bool | None = None) -> None:
        plain = " WITH compression = {'enabled': 'false'}" if compression is False else ""
        with self.client() as client:
            client.query(f"CREATE KEYSPACE {keyspace} WITH replication = "
                         f"{{'class': 'SimpleStrategy', 'replication_factor': {replication}}}")
            client.query(f"CREATE TABLE {keyspace}.{table} "
                         f"(name blob PRIMARY KEY, value blob){plain}")

    def compaction(self, keyspace: str, table: str, on: bool, by_range: bool = False) -> None:
        """Let SSTables of the table be merged by themselves or not, on all nodes, those to come
        included: by their sizes, or `by_range` into many of one range each."""
        strategy = BY_RANGE if by_range else BY_SIZE
        with self.client() as client:
            client.query(f"ALTER TABLE {keyspace}.{table} WITH compaction = "
                         f"{{{strategy}, 'enabled': '{str(on).lower()}'}}")

    def look_for_merges(self, keyspace: str, table: str) -> None:
        """Have the node check which SSTables are to be merged, as it does after a flush."""
        self.node.nodetool("enableautocompaction", keyspace, table)

    def busy(self) -> list[str]:
        """Compactions and flushes that the node has under way, in words."""
        with self.client() as client:
            tasks = client.query("SELECT kind, table_name FROM system_views.sstable_tasks")
            pools = client.query("SELECT name, active_tasks, pending_tasks "
                                 "FROM system_views.thread_pools")
        return [*(f"{kind} of {table}" for kind, table in tasks),
                *(f"{name}: {active} active, {waiting} waiting" for name, active, waiting in pools
                  if name in MERGING_OR_FLUSHING and (active or waiting))]

    def owners(self, keyspace: str) -> dict[str, int | bytes]:
        """{address: token} of the nodes that own ranges, as this node routes calls."""
        with self.client() as client:
            states = client.query("SELECT address, status_with_port FROM system_views.gossip_info")
            seen = [row[0] for row in client.query("SELECT peer FROM system.peers_v2")]
        normal = {address: status.partition(",") for address, status in states if status}
        return {address: self._token(token) for address, (status, _, token) in normal.items()
                if status == "NORMAL" and address in (*seen, self.node.address)}

    def agreed(self) -> bool:
        """Whether all nodes have the same schema."""
        with self.client() as client:
            versions = {*client.query("SELECT schema_version FROM system.local"),
                        *client.query("SELECT schema_version FROM system.peers_v2")}
        return len(versions) == 1

    def members(self) -> dict[str, int | bytes]:
        """{address: token} of the nodes that this node has seen join, if all of them answer it now."""
        with self.client() as client:
            known = client.query("SELECT listen_address, tokens FROM system.local")
            known += client.query("SELECT peer, tokens FROM system.peers_v2")
            # At level ALL, a scan of all ranges is refused unless this node sees all others up.
            client.query(f"SELECT role FROM {EMPTY}", level="ALL")
        return {address: self._token(*tokens) for address, tokens in known if tokens}

    def ranges(self, keyspace: str) -> list[tuple[int | bytes, list[str]]]:
        """(token at which a range ends, addresses of its replicas, the owner first), by token."""
        with self.client() as client:
            (copies,), = client.query("SELECT replication FROM system_schema.keyspaces "
                                      f"WHERE keyspace_name = '{keyspace}'")
        ring = sorted((token, address) for address, token in self.members().items())
        count = min(int(copies["replication_factor"]), len(ring))
        owners = [address for _, address in ring]
        return [(token, (owners + owners)[i:i + count]) for i, (token, _) in enumerate(ring)]

    def token_of(self, key: bytes) -> int | bytes:
        """The token of a key."""
        from cassandra.metadata import Murmur3Token

        return key if self.node.settings.placement == "ordered" else Murmur3Token.hash_fn(key)

    def _local(self, *columns):
        with self.client() as client:
            row, = client.query(f"SELECT {', '.join(columns)} FROM system.local")
        return row

    def _token(self, named: str):
        ordered = self.node.settings.placement == "ordered"
        return bytes.fromhex(named) if ordered else int(named)


class Connection:
    """One CQL connection over any socket, one call at a time, with the driver's own messages."""

    def __init__(self, socket):
        self._socket = socket

    def begin(self) -> None:
        from cassandra.protocol import StartupMessage

        self._call(StartupMessage(cqlversion="3.0.0", options={}))

    def query(self, statement: str, level="ONE") -> list[tuple]:
        """All rows of a statement; cassandra-driver's exceptions for what the server refuses."""
        from cassandra import ConsistencyLevel
        from cassandra.protocol import QueryMessage

        level = ConsistencyLevel.name_to_value[level]
        return getattr(self._call(QueryMessage(statement, level)), "parsed_rows", None) or []

    def close(self) -> None:
        self._socket.close()

    def _call(self, message):
        from cassandra.protocol import ErrorMessage, ProtocolHandler

        self._socket.sendall(ProtocolHandler.encode_message(message, 0, PROTOCOL, None, False))
        header = self._exactly(HEADER_BYTES)
        body = self._exactly(int.from_bytes(header[5:], "big"))
        answer = ProtocolHandler.decode_message(PROTOCOL, {}, 0, header[1], header[4], body, None, None)
        if isinstance(answer, ErrorMessage):
            raise answer.to_exception()
        return answer

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError("the server closed the connection")
            data += more
        return data

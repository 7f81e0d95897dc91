"""Administer the papers' versions of Cassandra by Thrift."""

import hashlib
from contextlib import contextmanager

from labbook.errors import InputError
from labbook.systems.cassandra.config import FILE, VERSIONS
from labbook.systems.cassandra.nodetool import parse_busy
from labbook.systems.cassandra.on_host.idl import idl

AS_SHIPPED = 4, 32  # how many SSTables of about one size are merged: at least, at most
FLUSH_SECONDS = 600
LOCATION = "LocationInfo"  # in keyspace system: rows L (the node itself) and Ring (the others)


class ThriftAdmin:
    """Questions and commands to a node; each takes an SSH round trip."""

    def __init__(self, node):
        self.node = node

    @contextmanager
    def client(self, timeout=30):
        """A Thrift client; TimeoutError when no answer comes within `timeout` seconds."""
        from thriftpy2.protocol import TCyBinaryProtocol
        from thriftpy2.thrift import TClient
        from thriftpy2.transport import TCyFramedTransport, TSocket

        socket = TSocket(self.node.address, self.node.port)
        socket.set_handle(self.node.channel(timeout))
        transport = TCyFramedTransport(socket)
        try:
            yield TClient(idl().Cassandra, TCyBinaryProtocol(transport))
        finally:
            transport.close()

    def answers(self) -> None:
        with self.client() as client:
            client.describe_version()

    def facts(self) -> dict:
        with self.client() as client:
            api = client.describe_version()
        line = self.node.run("grep", "-m", "1", "Cassandra version: ", self.node.process.log).stdout
        return {"version": line.split("Cassandra version:")[1].strip(), "thrift_api": api}

    def create_table(self, keyspace: str, table: str, replication: int,
                     compression: bool | None = None, read_repair: float | None = None) -> None:
        made = keyspace_definition(self.node.settings.version, keyspace, table, replication,
                                   compression, read_repair)
        with self.client() as client:
            client.system_add_keyspace(made)

    def compaction(self, keyspace: str, table: str, on: bool, by_range: bool = False) -> None:
        """Let SSTables of the table be merged by themselves or not, on all nodes, those to come
        included; always by their sizes (`by_range` is for today's version)."""
        with self.client() as client:
            client.set_keyspace(keyspace)
            definition, = (one for one in client.describe_keyspace(keyspace).cf_defs
                           if one.name == table)
            # 1.0.7 accepts a minimum above a maximum of 0, but does not start again with it.
            definition.min_compaction_threshold, definition.max_compaction_threshold = (
                AS_SHIPPED if on else (0, 0))
            client.system_update_column_family(definition)

    def look_for_merges(self, keyspace: str, table: str) -> None:
        """Have the node check which SSTables are to be merged. It does so after a flush only, so a
        row is written once more, unchanged, and flushed."""
        types = idl()
        everything = types.SlicePredicate(slice_range=types.SliceRange(b"", b"", False, 10))
        parent, one = types.ColumnParent(table), types.ConsistencyLevel.ONE
        with self.client() as client:
            client.set_keyspace(keyspace)
            for row in client.get_range_slices(parent, everything,
                                               types.KeyRange(b"", b"", count=1), one):
                for column in row.columns:
                    client.insert(row.key, parent, column.column, one)
        self.node.nodetool("flush", keyspace, seconds=FLUSH_SECONDS)

    def busy(self) -> list[str]:
        """Compactions and flushes that the node has under way, in words."""
        return parse_busy(self.node.nodetool("compactionstats"), self.node.nodetool("tpstats"))

    def agreed(self) -> bool:
        """Whether all nodes have the same schema."""
        with self.client() as client:
            return len(client.describe_schema_versions()) == 1

    def members(self) -> dict[str, int | bytes]:
        """{address: token} of the nodes that this node has seen join and that answer it now."""
        types = idl()
        everything = types.SlicePredicate(slice_range=types.SliceRange(b"", b"", False, 10_000))
        with self.client() as client:
            answering = set(sum((nodes for version, nodes in
                                 client.describe_schema_versions().items()
                                 if version != "UNREACHABLE"), []))
            client.set_keyspace("system")
            rows = client.multiget_slice([b"L", b"Ring"], types.ColumnParent(LOCATION),
                                         everything, types.ConsistencyLevel.ONE)
        own, others = ([(c.column.name, c.column.value) for c in rows[key]]
                       for key in (b"L", b"Ring"))
        known = {".".join(map(str, address)): token for token, address in others}
        known[self.node.address] = dict(own)[b"Token"]
        return {a: self._token(t) for a, t in known.items() if a in answering}

    def owners(self, keyspace: str) -> dict[str, int | bytes]:
        """{address: token} of the nodes that own ranges, as this node routes calls."""
        return {replicas[0]: token for token, replicas in self.ranges(keyspace)}

    def ranges(self, keyspace: str) -> list[tuple[int | bytes, list[str]]]:
        """(token at which a range ends, addresses of its replicas, the owner first), by token."""
        with self.client() as client:
            described = client.describe_ring(keyspace)
        return sorted((self._named_token(r.end_token), r.endpoints) for r in described)

    def token_of(self, key: bytes) -> int | bytes:
        """The token of a key; RandomPartitioner's is the absolute value of the MD5 sum."""
        if self.node.settings.placement == "ordered":
            return key
        return abs(int.from_bytes(hashlib.md5(key).digest(), "big", signed=True))

    def _token(self, raw: bytes):
        ordered = self.node.settings.placement == "ordered"
        return raw if ordered else int.from_bytes(raw, "big", signed=True)

    def _named_token(self, named: str):
        if self.node.settings.placement == "hash":
            return int(named)
        return bytes.fromhex(named.removeprefix("Token(bytes[").removesuffix("])"))


def keyspace_definition(version: str, keyspace: str, table: str, replication: int,
                        compression: bool | None = None, read_repair: float | None = None):
    """A KsDef with one column family of bytes."""
    types = idl()
    compressor = VERSIONS[version].get("compressor")
    if compression and not compressor:
        raise InputError(f"Cassandra {version} has none", file=FILE, key="compression",
                         allowed="false")
    options = {"compression_options": {"sstable_compression": compressor}} if compression else {}
    if read_repair is not None:
        options["read_repair_chance"] = float(read_repair)
    copies = {"replication_factor": replication}
    if VERSIONS[version]["replication"] == "option":
        copies = {"strategy_options": {"replication_factor": str(replication)}}
    return types.KsDef(name=keyspace, strategy_class="org.apache.cassandra.locator.SimpleStrategy",
                       cf_defs=[types.CfDef(keyspace=keyspace, name=table, **options)], **copies)

"""Pages in a column family of the papers' Cassandra versions, by Thrift."""

import time

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TClient, TException
from thriftpy2.transport import TCyFramedTransport, TSocket, TTransportException

from labbook.systems.cassandra.on_host.idl import idl
from labbook.systems.wiki.on_host.pages import CALL_SECONDS, PagesByThread
from labbook.targets import COLUMN, DATABASE

PART = 500  # names fetched by one call
LEVEL = "QUORUM"  # so that other servers see a page as soon as one has saved it


class ThriftPages(PagesByThread):
    ERRORS = (TException, OSError, EOFError)

    def connect(self, address):
        return _Connection(address, self.port, self.table)

    def lost(self, error) -> bool:
        """True for every error but those that Cassandra itself returned."""
        return isinstance(error, TTransportException) or type(error).__module__ != idl().__name__


class _Connection:
    def __init__(self, address, port, table):
        types = idl()
        socket = TSocket(address, port, connect_timeout=CALL_SECONDS * 1000,
                         socket_timeout=CALL_SECONDS * 1000)
        self._transport = TCyFramedTransport(socket)
        self._client = TClient(types.Cassandra, TCyBinaryProtocol(self._transport))
        self._types, self._level = types, getattr(types.ConsistencyLevel, LEVEL)
        self._path = types.ColumnPath(column_family=table, column=COLUMN)
        self._parent = types.ColumnParent(column_family=table)
        self._transport.open()
        self._client.set_keyspace(DATABASE)

    def fetch(self, name: str) -> bytes | None:
        try:
            return self._client.get(name.encode(), self._path, self._level).column.value
        except self._types.NotFoundException:
            return None

    def store(self, name: str, value: bytes) -> None:
        column = self._types.Column(name=COLUMN, value=value, timestamp=_now())
        self._client.insert(name.encode(), self._parent, column, self._level)

    def remove(self, name: str) -> None:
        self._client.remove(name.encode(), self._path, _now(), self._level)

    def names_after(self, name: str | None) -> list[str]:
        """Deleted rows remain for a while, without their column."""
        last, predicate = (name or "").encode(), self._types.SlicePredicate(column_names=[COLUMN])
        while True:
            rows = self._client.get_range_slices(
                self._parent, predicate,
                self._types.KeyRange(start_key=last, end_key=b"", count=PART), self._level)
            after = [row for row in rows if row.key != last]
            names = [row.key.decode(errors="replace") for row in after if row.columns]
            if names or not after:
                return names
            last = after[-1].key

    def close(self) -> None:
        self._transport.close()


def _now() -> int:
    return time.time_ns() // 1000

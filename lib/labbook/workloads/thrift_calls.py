"""Thrift calls to Cassandra (0.7 to 1.0) over one connection, encoded and decoded by thriftpy2."""

import struct
import time
from functools import cache
from importlib import resources

from labbook.workloads.pairs import COLUMN, DATABASE, TABLE, check_value, key_of, value_of
from labbook.workloads.prepared import MOST_BYTES, PreparedCalls, Template
from labbook.workloads.sockets import connected

STAMP = 0x0123456789ABCDEF  # stands in a write's template where its time goes


@cache
def idl():
    import thriftpy2

    with resources.as_file(resources.files("labbook") / "systems" / "cassandra.thrift") as path:
        return thriftpy2.load(str(path), module_name="labbook_workload_thrift")


class ThriftCalls(PreparedCalls):
    def __init__(self, spec: dict):
        from thriftpy2.protocol import TCyBinaryProtocol
        from thriftpy2.thrift import TClient
        from thriftpy2.transport import TCyFramedTransport

        super().__init__(spec)
        self._tape = _Tape()
        self._thrift = TClient(idl().Cassandra, TCyBinaryProtocol(TCyFramedTransport(self._tape)))
        self._level = getattr(idl().ConsistencyLevel, spec["consistency"])
        self._requests = {"read": self._get(0), "write": self._insert(0)}

    def connect(self) -> None:
        address = self.spec["address"], self.spec["port"]
        self._talk_through(connected(address, self.spec["call_seconds"]))
        self._send(self._encode("set_keyspace", keyspace=DATABASE))
        self._decode("set_keyspace", self._receive(MOST_BYTES))

    @staticmethod
    def keeps_connection(error: Exception) -> bool:
        return (PreparedCalls.keeps_connection(error)
                or type(error).__module__ == idl().__name__)

    def _get(self, row) -> Template:
        path = idl().ColumnPath(column_family=TABLE, column=COLUMN)
        return Template(self._encode("get", key=key_of(row), column_path=path,
                                     consistency_level=self._level), row)

    def _insert(self, row) -> Template:
        key, types = key_of(row), idl()
        column = types.Column(name=COLUMN, value=value_of(key, self.spec["value_bytes"]),
                              timestamp=STAMP)
        parent = types.ColumnParent(column_family=TABLE)
        return Template(self._encode("insert", key=key, column_parent=parent, column=column,
                                     consistency_level=self._level), row, _stamp(STAMP))

    def _now(self):
        return _stamp(time.time_ns() // 1000)

    def _checked(self, answer, row):
        found, answer = self._decode("get", answer)
        check_value(key_of(row), found.column.value, self.spec["value_bytes"])
        return Template(answer, row, _stamp(found.column.timestamp))

    def _done(self, op, answer):
        return self._decode("insert", answer)[1]

    def _encode(self, call, **arguments) -> bytes:
        self._thrift._send(call, **arguments)
        return self._tape.sent

    def _decode(self, call, answer):
        """The call's result and its whole frame; raises what the server raised."""
        while len(answer) < 4 or len(answer) < 4 + struct.unpack_from(">i", answer)[0]:
            more = self._receive(MOST_BYTES) if answer else b""
            if not more:
                raise ConnectionError("the server closed the connection")
            answer += more
        self._tape.unread = answer
        return self._thrift._recv(call), answer


def _stamp(microseconds: int) -> bytes:
    return struct.pack(">q", microseconds)


class _Tape:
    """Stands under thriftpy2's transport in place of a socket."""

    sent = unread = b""

    def write(self, data):
        self.sent = data

    def read(self, size):
        data, self.unread = self.unread[:size], self.unread[size:]
        return data

    def flush(self):
        pass

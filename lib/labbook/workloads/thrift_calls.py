"""Thrift calls to Cassandra (0.7 to 1.0) over one connection, cheap for the client.

thriftpy2 encodes each request once and decodes each *new* answer; in between the same bytes go
out again, and an answer that equals the one checked before needs no second look. So every value
is checked, at a tenth of the client's CPU that thriftpy2's own calls take.
"""

import socket
import struct
import time
from functools import cache
from importlib import resources

from labbook.workloads.pairs import COLUMN, DATABASE, TABLE, check_value, key_of, value_of

STAMP = 0x0123456789ABCDEF  # stands in a write's template where its time goes


@cache
def idl():
    import thriftpy2

    with resources.as_file(resources.files("labbook") / "systems" / "cassandra.thrift") as path:
        return thriftpy2.load(str(path), module_name="labbook_workload_thrift")


class ThriftCalls:
    """`read(row)` and `write(row)`; what goes wrong is raised."""

    def __init__(self, spec: dict):
        from thriftpy2.protocol import TCyBinaryProtocol
        from thriftpy2.thrift import TClient
        from thriftpy2.transport import TCyFramedTransport

        self.spec, self._tape, self._socket = spec, _Tape(), None
        self._thrift = TClient(idl().Cassandra, TCyBinaryProtocol(TCyFramedTransport(self._tape)))
        self._level = getattr(idl().ConsistencyLevel, spec["consistency"])
        self._reads, self._checked, self._writes, self._written = {}, {}, {}, None

    def connect(self) -> None:
        address, timeout = (self.spec["address"], self.spec["port"]), self.spec["call_seconds"]
        self._socket = connected(address, timeout)
        self._send, self._receive = self._socket.sendall, self._socket.recv
        self._send(self._encode("set_keyspace", keyspace=DATABASE))
        self._decode("set_keyspace", self._receive(65536))

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def read(self, row: int) -> None:
        request = self._reads.get(row) or self._read_request(row)
        self._send(request)
        answer = self._receive(65536)
        if answer != self._checked.get(row):
            found, answer = self._decode("get", answer)
            check_value(key_of(row), found.column.value, self.spec["value_bytes"])
            self._checked[row] = answer

    def write(self, row: int) -> None:
        request, at = self._writes.get(row) or self._write_request(row)
        struct.pack_into(">q", request, at, time.time_ns() // 1000)
        self._send(request)
        answer = self._receive(65536)
        if answer != self._written:
            _, self._written = self._decode("insert", answer)

    @staticmethod
    def keeps_connection(error: Exception) -> bool:
        """Whether the error is an answer, after which the connection goes on."""
        return type(error).__module__ in (idl().__name__, check_value.__module__)

    def _read_request(self, row):
        path = idl().ColumnPath(column_family=TABLE, column=COLUMN)
        self._reads[row] = self._encode("get", key=key_of(row), column_path=path,
                                        consistency_level=self._level)
        return self._reads[row]

    def _write_request(self, row):
        key = key_of(row)
        column = idl().Column(name=COLUMN, value=value_of(key, self.spec["value_bytes"]),
                              timestamp=STAMP)
        request = bytearray(self._encode(
            "insert", key=key, column_parent=idl().ColumnParent(column_family=TABLE),
            column=column, consistency_level=self._level))
        self._writes[row] = request, request.index(struct.pack(">q", STAMP))
        return self._writes[row]

    def _encode(self, call, **arguments) -> bytes:
        self._thrift._send(call, **arguments)
        return self._tape.sent

    def _decode(self, call, answer):
        """The call's result and its whole frame; raises what the server raised."""
        while len(answer) < 4 or len(answer) < 4 + struct.unpack_from(">i", answer)[0]:
            more = self._receive(65536) if answer else b""
            if not more:
                raise ConnectionError("the server closed the connection")
            answer += more
        self._tape.unread = answer
        return self._thrift._recv(call), answer


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


def connected(address, call_seconds: float) -> socket.socket:
    """A blocking socket whose waits the kernel ends: Python's own costs a `poll` a call."""
    connection = socket.create_connection(address, timeout=call_seconds)
    connection.settimeout(None)
    limit_waits(connection, call_seconds)
    return connection


def limit_waits(connection: socket.socket, call_seconds: float) -> None:
    limit = struct.pack("@ll", int(call_seconds), int(call_seconds % 1 * 1e6))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

"""Prepared statements to Cassandra (5.0) over one connection, by cassandra-driver's protocol code.

Native protocol v4, as the driver itself sends it: the answer without the metadata that the
statement's preparation gave, writes with the client's time. The driver's sessions, with their
threads and pools, stay out of it.
"""

import struct
import time

from labbook.workloads.pairs import DATABASE, TABLE, WrongValue, check_value, key_of, value_of
from labbook.workloads.prepared import MOST_BYTES, PreparedCalls, Template
from labbook.workloads.sockets import connected

VERSION, CQL_VERSION = 4, "3.0.0"
HEADER = struct.Struct(">BBhBi")  # version, flags, stream, opcode, length of the body
STAMP = 0x0123456789ABCDEF  # stands in a write's template where its time goes
STATEMENTS = {
    "read": f"SELECT value FROM {DATABASE}.{TABLE} WHERE name=?",
    "write": f"INSERT INTO {DATABASE}.{TABLE} (name, value) VALUES (?, ?)",
}


class CQLCalls(PreparedCalls):
    def __init__(self, spec: dict):
        from cassandra import ConsistencyLevel, protocol

        super().__init__(spec)
        self._cql, self._level = protocol, ConsistencyLevel.name_to_value[spec["consistency"]]
        self._columns = None  # of a read's answer

    def connect(self) -> None:
        address = self.spec["address"], self.spec["port"]
        self._talk_through(connected(address, self.spec["call_seconds"]))
        started = self._ask(self._cql.StartupMessage(cqlversion=CQL_VERSION, options={}))
        if not isinstance(started, self._cql.ReadyMessage):
            raise ConnectionError(f"the server asks for more: {started!r}")
        prepared = {op: self._ask(self._cql.PrepareMessage(text))
                    for op, text in STATEMENTS.items()}
        self._columns = prepared["read"].column_metadata
        key = key_of(0)
        value = value_of(key, self.spec["value_bytes"])
        self._requests = {"read": self._execute(prepared["read"], [key], skip_meta=True),
                          "write": self._execute(prepared["write"], [key, value], timestamp=STAMP)}

    @staticmethod
    def keeps_connection(error: Exception) -> bool:
        """Not where a statement is no longer prepared: the next connection prepares it anew."""
        from cassandra import protocol

        if isinstance(error, protocol.ErrorMessage):
            return not isinstance(error, (protocol.PreparedQueryNotFound, protocol.BadCredentials,
                                          protocol.ProtocolException))
        return PreparedCalls.keeps_connection(error)

    def _execute(self, prepared, values, timestamp=None, skip_meta=False) -> Template:
        message = self._cql.ExecuteMessage(prepared.query_id, values, self._level,
                                           timestamp=timestamp, skip_meta=skip_meta)
        return Template(self._encode(message), 0, _stamp(timestamp) if timestamp else b"")

    def _now(self):
        return _stamp(time.time_ns() // 1000)

    def _checked(self, answer, row):
        result, answer = self._decode(answer, self._columns)
        rows = result.parsed_rows
        check_value(key_of(row), rows[0][0] if rows else None, self.spec["value_bytes"])
        return Template(answer, row)

    def _done(self, op, answer):
        return self._decode(answer)[1]

    def _ask(self, message):
        self._send(self._encode(message))
        return self._decode(self._receive(MOST_BYTES))[0]

    def _encode(self, message) -> bytes:
        return self._cql.ProtocolHandler.encode_message(
            message, stream_id=0, protocol_version=VERSION, compressor=None,
            allow_beta_protocol_version=False)

    def _decode(self, answer, columns=None):
        """The driver's message and its whole frame; raises an error that the server sent."""
        while len(answer) < HEADER.size or len(answer) < _frame_bytes(answer):
            more = self._receive(MOST_BYTES) if answer else b""
            if not more:
                raise ConnectionError("the server closed the connection")
            answer += more
        version, flags, stream, opcode, _ = HEADER.unpack_from(answer)
        message = self._cql.ProtocolHandler.decode_message(
            version & 0x7F, {}, stream, flags, opcode, answer[HEADER.size:], None, columns)
        if isinstance(message, self._cql.ErrorMessage):
            raise message
        return message, answer


def _frame_bytes(begun: bytes) -> int:
    return HEADER.size + HEADER.unpack_from(begun)[4]


def _stamp(microseconds: int) -> bytes:
    return struct.pack(">q", microseconds)

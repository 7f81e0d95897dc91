"""Prepared statements to Cassandra (5.0) over one connection, by cassandra-driver's protocol code.

Native protocol v4, as the driver sends it: answers without the metadata that the statement's
preparation returned, writes with the client's time. The driver's sessions, with their threads and
pools, are not used.
"""

import struct
import time

from labbook.targets import DATABASE, READ_LEVELS, TABLE, WRITE_LEVELS, key_of
from labbook.workloads.keyvalue.wire.pairs import check_value
from labbook.workloads.keyvalue.wire.prepared import (
    MOST_BYTES,
    PreparedCalls,
    Template,
    connected,
)

VERSION, CQL_VERSION = 4, "3.0.0"
HEADER = struct.Struct(">BBhBi")  # version, flags, stream, opcode, length of the body
STREAM, NO_STREAM = slice(2, 4), b"\0\0"  # the request that a frame belongs to
STAMP = 0x0123456789ABCDEF  # marks the place of the time in a write's template
STATEMENTS = {
    "read": f"SELECT value FROM {DATABASE}.{TABLE} WHERE name=?",
    "write": f"INSERT INTO {DATABASE}.{TABLE} (name, value) VALUES (?, ?)",
}


class Calls(PreparedCalls):
    LEVELS = {"read": READ_LEVELS, "write": WRITE_LEVELS}
    LEVEL, STRONGEST, ANY_BYTES, BATCHES = "ONE", "ALL", True, True
    REGISTERS, NULL_SERVER = True, "cql"

    def __init__(self, spec: dict):
        from cassandra import ConsistencyLevel, protocol

        super().__init__(spec)
        self._cql, self._level = protocol, ConsistencyLevel.name_to_value[spec["consistency"]]
        self._columns = None  # of a read's answer
        self._prepared = {}   # of each op, the answer to its preparation

    def connect(self) -> None:
        address = self.spec["address"], self.spec["port"]
        self._talk_through(connected(address, self.spec["call_seconds"]))
        started = self._ask(self._cql.StartupMessage(cqlversion=CQL_VERSION, options={}))
        if not isinstance(started, self._cql.ReadyMessage):
            raise ConnectionError(f"the server requires more than a startup message: {started!r}")
        prepared = self._prepared = {op: self._ask(self._cql.PrepareMessage(text))
                                    for op, text in STATEMENTS.items()}
        self._columns = prepared["read"].column_metadata
        pair = [key_of(0), self._value(0)]
        self._requests = {"read": self._execute(prepared["read"], pair[:1], skip_meta=True),
                          "write": self._execute(prepared["write"], pair, timestamp=STAMP)}

    def write_many(self, rows, microseconds) -> None:
        """One statement a row, since batches of many partitions are refused by default; all are sent
        before the first answer is awaited. Raises the first error once all are answered."""
        template, messages = self._requests["write"], []
        template.at_time(_stamp(microseconds))
        for number, row in enumerate(rows):
            messages.append(bytearray(template.of(row)))
            messages[-1][STREAM] = number.to_bytes(2, "big")
        self._send(b"".join(messages))
        self._await(len(rows))

    def put(self, row, value, microseconds) -> None:
        self._ask(self._cql.ExecuteMessage(self._prepared["write"].query_id, [key_of(row), value],
                                           self._level, timestamp=microseconds))

    def get(self, row):
        found = self._ask(self._cql.ExecuteMessage(self._prepared["read"].query_id, [key_of(row)],
                                                   self._level)).parsed_rows
        return found[0][0] if found else None

    def _await(self, count) -> None:
        """Receive `count` answers to writes, in any order."""
        unread, failed = b"", None
        for _ in range(count):
            unread = self._completed(unread or self._receive(MOST_BYTES))
            size = _frame_bytes(unread)
            answer, unread = unread[:size], unread[size:]
            try:
                self._acknowledge("write", answer[:STREAM.start] + NO_STREAM + answer[STREAM.stop:])
            except self._cql.ErrorMessage as error:
                failed = failed or error
        if failed:
            raise failed

    @staticmethod
    def keeps_connection(error: Exception) -> bool:
        """False when a statement is no longer prepared: the next connection prepares it again."""
        from cassandra import protocol

        if isinstance(error, protocol.ErrorMessage):
            return not isinstance(error, (protocol.PreparedQueryNotFound, protocol.BadCredentials,
                                          protocol.ProtocolException))
        return PreparedCalls.keeps_connection(error)

    def _execute(self, prepared, values, timestamp=None, skip_meta=False) -> Template:
        message = self._cql.ExecuteMessage(prepared.query_id, values, self._level,
                                           timestamp=timestamp, skip_meta=skip_meta)
        time, noise = (_stamp(timestamp), self._noise_bytes) if timestamp else (b"", 0)
        return Template(self._encode(message), 0, time, noise)

    def _now(self):
        return _stamp(time.time_ns() // 1000)

    def _checked(self, answer, row):
        result, answer = self._decode(answer, self._columns)
        rows = result.parsed_rows
        check_value(key_of(row), rows[0][0] if rows else None, self.spec["value_bytes"],
                    self._values)
        return Template(answer, row, noise=self._noise_bytes)

    def _done(self, op, answer):
        return self._decode(answer)[1]

    def _ask(self, message):
        self._send(self._encode(message))
        return self._decode(self._receive(MOST_BYTES))[0]

    def _encode(self, message) -> bytes:
        return self._cql.ProtocolHandler.encode_message(
            message, stream_id=0, protocol_version=VERSION, compressor=None,
            allow_beta_protocol_version=False)

    def _completed(self, answer):
        while len(answer) < HEADER.size or len(answer) < _frame_bytes(answer):
            more = self._receive(MOST_BYTES) if answer else b""
            if not more:
                raise ConnectionError("the server closed the connection")
            answer += more
        return answer

    def _decode(self, answer, columns=None):
        """(the driver's message, its whole frame); raises an error that the server sent."""
        answer = self._completed(answer)
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

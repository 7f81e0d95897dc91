"""Thrift calls to Cassandra (0.7 to 1.0) over one connection, encoded and decoded by thriftpy2."""

import struct
import time
from functools import cache
from importlib import resources

from labbook.targets import COLUMN, DATABASE, READ_LEVELS, TABLE, WRITE_LEVELS, key_of
from labbook.workloads.keyvalue.wire.pairs import check_value
from labbook.workloads.keyvalue.wire.prepared import (
    MOST_BYTES,
    PreparedCalls,
    Template,
    connected,
)

STAMP = 0x0123456789ABCDEF  # marks the place of the time in a write's template
COUNT_BYTES = 4  # of a length, and of a map's number of entries


@cache
def idl():
    import thriftpy2

    with resources.as_file(resources.files("labbook") / "systems" / "cassandra" / "on_host"
                           / "cassandra.thrift") as path:
        return thriftpy2.load(str(path), module_name="labbook_workload_thrift")


class Calls(PreparedCalls):
    LEVELS = {"read": READ_LEVELS, "write": WRITE_LEVELS}
    LEVEL, STRONGEST, ANY_BYTES, BATCHES = "ONE", "ALL", True, True
    REGISTERS, NULL_SERVER = True, "thrift"

    def __init__(self, spec: dict):
        from thriftpy2.protocol import TCyBinaryProtocol
        from thriftpy2.thrift import TClient
        from thriftpy2.transport import TCyFramedTransport

        super().__init__(spec)
        self._tape = _Tape()
        self._thrift = TClient(idl().Cassandra, TCyBinaryProtocol(TCyFramedTransport(self._tape)))
        self._level = getattr(idl().ConsistencyLevel, spec["consistency"])
        self._requests = {"read": self._get(0), "write": self._insert(0)}
        self._batch = None

    def connect(self) -> None:
        address = self.spec["address"], self.spec["port"]
        self._talk_through(connected(address, self.spec["call_seconds"]))
        self._send(self._encode("set_keyspace", keyspace=DATABASE))
        self._decode("set_keyspace", self._receive(MOST_BYTES))

    def write_many(self, rows, microseconds) -> None:
        """One batch_mutate."""
        before, entry, after = self._batch = self._batch or self._mutations()
        entry.at_time(_stamp(microseconds))
        body = b"".join([before, struct.pack(">i", len(rows)),
                         *(bytes(entry.of(row)) for row in rows), after])
        self._send(struct.pack(">i", len(body)) + body)
        self._decode("batch_mutate", self._receive(MOST_BYTES))

    def put(self, row, value, microseconds) -> None:
        column = idl().Column(name=COLUMN, value=value, timestamp=microseconds)
        self._send(self._encode("insert", key=key_of(row), column_parent=idl().ColumnParent(
            column_family=TABLE), column=column, consistency_level=self._level))
        self._decode("insert", self._receive(MOST_BYTES))

    def get(self, row):
        self._send(self._encode("get", key=key_of(row), column_path=idl().ColumnPath(
            column_family=TABLE, column=COLUMN), consistency_level=self._level))
        try:
            found, _ = self._decode("get", self._receive(MOST_BYTES))
        except idl().NotFoundException:
            return None
        return found.column.value

    @staticmethod
    def keeps_connection(error: Exception) -> bool:
        return (PreparedCalls.keeps_connection(error)
                or type(error).__module__ == idl().__name__)

    def _get(self, row) -> Template:
        path = idl().ColumnPath(column_family=TABLE, column=COLUMN)
        return Template(self._encode("get", key=key_of(row), column_path=path,
                                     consistency_level=self._level), row)

    def _insert(self, row) -> Template:
        parent = idl().ColumnParent(column_family=TABLE)
        message = self._encode("insert", key=key_of(row), column_parent=parent,
                               column=self._column(row), consistency_level=self._level)
        return Template(message, row, _stamp(STAMP), self._noise_bytes)

    def _mutations(self) -> tuple[bytes, Template, bytes]:
        """(head, entry, tail) of a batch_mutate's frame: the bytes between its length and the number
        of its entries; one entry (a row's key and its mutations); the bytes after the last one."""
        types = idl()
        mutation = types.Mutation(types.ColumnOrSuperColumn(self._column(0)))
        none, one = (self._encode("batch_mutate", mutation_map=entries,
                                  consistency_level=self._level)
                     for entries in ({}, {key_of(0): {TABLE: [mutation]}}))
        first = one.index(key_of(0)) - COUNT_BYTES  # a key's length comes before it
        last = first + len(one) - len(none)
        entry = Template(one[first:last], 0, _stamp(STAMP), self._noise_bytes)
        return one[COUNT_BYTES:first - COUNT_BYTES], entry, one[last:]

    def _column(self, row):
        return idl().Column(name=COLUMN, value=self._value(row), timestamp=STAMP)

    def _now(self):
        return _stamp(time.time_ns() // 1000)

    def _checked(self, answer, row):
        found, answer = self._decode("get", answer)
        check_value(key_of(row), found.column.value, self.spec["value_bytes"], self._values)
        return Template(answer, row, _stamp(found.column.timestamp), self._noise_bytes)

    def _done(self, op, answer):
        return self._decode("insert", answer)[1]

    def _encode(self, call, **arguments) -> bytes:
        self._thrift._send(call, **arguments)
        return self._tape.sent

    def _completed(self, answer):
        while (len(answer) < COUNT_BYTES
               or len(answer) < COUNT_BYTES + struct.unpack_from(">i", answer)[0]):
            more = self._receive(MOST_BYTES) if answer else b""
            if not more:
                raise ConnectionError("the server closed the connection")
            answer += more
        return answer

    def _decode(self, call, answer):
        """The call's result and its whole frame; raises what the server raised."""
        self._tape.unread = answer = self._completed(answer)
        return self._thrift._recv(call), answer


def _stamp(microseconds: int) -> bytes:
    return struct.pack(">q", microseconds)


class _Tape:
    """Takes the place of a socket under thriftpy2's transport."""

    sent = unread = b""

    def write(self, data):
        self.sent = data

    def read(self, size):
        data, self.unread = self.unread[:size], self.unread[size:]
        return data

    def flush(self):
        pass

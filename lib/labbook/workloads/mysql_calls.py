"""SQL to MySQL over one connection, cheap for the client in the way of thrift_calls.

PyMySQL connects and reads each *new* answer; a query is one packet, made once, and an answer
that equals the one checked before needs no second look.
"""

import io
import struct
import time

from labbook.workloads.thrift_calls import limit_waits
from labbook.workloads.pairs import DATABASE, TABLE, check_value, key_of, value_of

USER = "labbook"
QUERY = b"\x03"  # COM_QUERY


class MySQLCalls:
    """`read(row)` and `write(row)`, a REPLACE; what goes wrong is raised."""

    def __init__(self, spec: dict):
        import pymysql  # here, so that clients made by a fork need not each do it

        self._connect = pymysql.connect
        self.spec, self._connection = spec, None
        self._reads, self._checked, self._writes, self._written = {}, {}, {}, set()

    def connect(self) -> None:
        seconds = self.spec["call_seconds"]
        self._connection = self._connect(
            host=self.spec["address"], port=self.spec["port"], user=USER, database=DATABASE,
            autocommit=True, connect_timeout=max(1, seconds),
            ssl_disabled=True)  # reading the CA certificates took 90 % of a client's start
        self._socket = self._connection._sock
        self._socket.settimeout(None)
        limit_waits(self._socket, seconds)
        self._send, self._receive = self._socket.sendall, self._socket.recv

    def close(self) -> None:
        if self._connection is not None:
            self._connection._force_close()
            self._connection = None

    def read(self, row: int) -> None:
        request = self._reads.get(row) or self._read_request(row)
        self._send(request)
        answer = self._receive(65536)
        if answer != self._checked.get(row):
            rows, answer = self._decode(answer)
            key = key_of(row)
            check_value(key, rows[0][0].encode() if rows else None, self.spec["value_bytes"])
            self._checked[row] = answer

    def write(self, row: int) -> None:
        start = self._writes.get(row) or self._write_request(row)
        self._send(packet(b"%b%d)" % (start, time.time_ns() // 1000)))
        answer = self._receive(65536)
        if answer not in self._written:
            _, answer = self._decode(answer)
            self._written.add(answer)  # a first REPLACE of a row answers differently

    @staticmethod
    def keeps_connection(error: Exception) -> bool:
        """Whether the error is the server's answer; PyMySQL's own have numbers of 2000 and more."""
        import pymysql

        if isinstance(error, pymysql.MySQLError):
            return bool(error.args) and isinstance(error.args[0], int) and error.args[0] < 2000
        return type(error).__module__ == check_value.__module__

    def _read_request(self, row):
        self._reads[row] = packet(b"SELECT VALUE FROM %b WHERE NAME='%b'"
                                  % (TABLE.encode(), key_of(row)))
        return self._reads[row]

    def _write_request(self, row):
        key = key_of(row)
        self._writes[row] = (b"REPLACE INTO %b (NAME, VALUE, TIMEUUID) VALUES ('%b', '%b', "
                             % (TABLE.encode(), key, value_of(key, self.spec["value_bytes"])))
        return self._writes[row]

    def _decode(self, answer):
        """The rows of the answer and the whole of its bytes; raises what the server raised."""
        source = _Source(answer, self._socket)
        self._connection._rfile = io.BufferedReader(source)
        self._connection._next_seq_id = 1
        self._connection._read_query_result()
        return self._connection._result.rows, source.read_so_far


def packet(statement: bytes) -> bytes:
    return struct.pack("<I", len(statement) + 1) + QUERY + statement


class _Source(io.RawIOBase):
    """What was received, and after it the socket."""

    def __init__(self, received, connection):
        self.read_so_far, self._unread, self._socket = b"", received, connection

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self._unread[:len(buffer)] or self._socket.recv(len(buffer))
        self._unread = self._unread[len(data):]
        self.read_so_far += data
        buffer[:len(data)] = data
        return len(data)

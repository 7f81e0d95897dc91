"""SQL to MySQL and MariaDB over one connection, which PyMySQL opens and whose answers it reads."""

import io
import struct
import time

from labbook.targets import DATABASE, TABLE, USER, key_of
from labbook.workloads.keyvalue.wire.pairs import WrongValue, check_value, value_of
from labbook.workloads.keyvalue.wire.prepared import MOST_BYTES, PreparedCalls, Template, limit_waits

QUERY = b"\x03"  # COM_QUERY
STAMP = b"%016d%03d"  # microseconds and the client's number: no two writes have the same
STATEMENTS = {
    "read": "SELECT VALUE FROM {table} WHERE NAME='{key}'",
    "write": "REPLACE INTO {table} (NAME, VALUE, TIMEUUID) VALUES ('{key}', '{value}', {time})",
    "update": "UPDATE {table} SET VALUE='{value}', TIMEUUID={time} WHERE NAME='{key}'",
    "insert": "INSERT INTO {table} (NAME, VALUE, TIMEUUID) VALUES ('{key}{time}', '{value}', {time})",
}
# A table of the old rows takes the place of the one with the new rows: deleted rows would have to be purged
# while later calls are measured.
WITHOUT_NEW = (
    "CREATE TABLE {table}_old LIKE {table}",
    "INSERT INTO {table}_old SELECT * FROM {table} WHERE LENGTH(NAME) = {key_bytes}",
    "DROP TABLE {table}",
    "RENAME TABLE {table}_old TO {table}",
)


class Calls(PreparedCalls):
    """A write is the paper's REPLACE; an update has to find its row and to change it. An insert adds a row each
    time: its key is that of a row, and after it the time and the client's number."""

    OPS = (*PreparedCalls.OPS, "update", "insert")
    ADDS = ("insert",)
    NULL_SERVER = "mysql"

    def __init__(self, spec: dict):
        import pymysql  # once, before clients are forked

        super().__init__(spec)
        self._connect, self._connection = pymysql.connect, None
        self._requests = {op: self._request(op, 0) for op in STATEMENTS}
        self._new_key = self._requests["insert"].first_time

    def connect(self) -> None:
        seconds = self.spec["call_seconds"]
        self._connection = self._connect(
            host=self.spec["address"], port=self.spec["port"], user=USER,
            password=self.spec.get("password", ""), database=DATABASE, autocommit=True,
            connect_timeout=max(1, seconds), read_timeout=seconds, write_timeout=seconds,   # of the handshake
            ssl_disabled=True)  # reading the CA certificates took 90 % of a client's start
        connection = self._connection._sock
        connection.settimeout(None)
        limit_waits(connection, seconds)
        self._talk_through(connection)

    def close(self) -> None:
        if self._connection is not None:
            self._connection._force_close()
            self._connection = self._socket = None

    def update(self, row: int) -> None:
        self._store("update", row)

    def insert(self, row: int) -> None:
        request, now = self._requests["insert"], self._now()
        request.of(row)
        message = request.at_time(now)
        message[self._new_key] = now
        self._send(message)
        self._acknowledge("insert", self._receive(MOST_BYTES))

    def remove_added(self) -> None:
        with self._connection.cursor() as cursor:
            for statement in WITHOUT_NEW:
                cursor.execute(statement.format(table=TABLE, key_bytes=len(key_of(0))))

    @staticmethod
    def keeps_connection(error: Exception) -> bool:
        """PyMySQL's own errors, which no server sent, have numbers from 2000 on."""
        import pymysql

        if isinstance(error, pymysql.MySQLError):
            return bool(error.args) and isinstance(error.args[0], int) and error.args[0] < 2000
        return PreparedCalls.keeps_connection(error)

    def _request(self, op, row) -> Template:
        key, stamp = key_of(row), self._now()
        value = value_of(key, self.spec["value_bytes"])
        statement = STATEMENTS[op].format(table=TABLE, key=key.decode(), value=value.decode(),
                                          time=stamp.decode())
        return Template(packet(statement.encode()), row, b"" if op == "read" else stamp)

    def _now(self):
        return STAMP % (time.time_ns() // 1000, self.spec["client"] % 1000)

    def _checked(self, answer, row):
        result, answer = self._decode(answer)
        key, rows = key_of(row), result.rows
        check_value(key, rows[0][0].encode() if rows else None, self.spec["value_bytes"])
        return Template(answer, row)

    def _done(self, op, answer):
        result, answer = self._decode(answer)  # a first REPLACE of a row answers differently
        if not result.affected_rows:
            raise WrongValue(f"no row changed by this {op}")
        return answer

    def _decode(self, answer):
        """(PyMySQL's result, all of its bytes); raises the server's errors."""
        source = _Source(answer, self._socket)
        self._connection._rfile = io.BufferedReader(source)
        self._connection._next_seq_id = 1
        self._connection._read_query_result()
        return self._connection._result, source.read_so_far


def packet(statement: bytes) -> bytes:
    return struct.pack("<I", len(statement) + 1) + QUERY + statement


class _Source(io.RawIOBase):
    """A raw stream of what was received, and then of the socket."""

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

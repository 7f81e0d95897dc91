"""Pages in the study's table of a MySQL or MariaDB.

The table compares names as MySQL does by default, ignoring case: FrontPage and Frontpage are one page
here, but two in Cassandra.
"""

import time

import pymysql

from labbook.systems.wiki.on_host.pages import CALL_SECONDS, PagesByThread
from labbook.targets import DATABASE, USER

PART = 500  # names fetched by one call


class MySQLPages(PagesByThread):
    ERRORS = (pymysql.MySQLError, OSError)
    longest_bytes = 100  # VALUE VARCHAR(100); a server of 2010 would cut it silently

    def connect(self, address):
        return _Connection(address, self.port, self.table, self.password)

    def lost(self, error) -> bool:
        """The server's errors have numbers from 1 to 1999, PyMySQL's own 0 and 2000 and above."""
        number = error.args[0] if error.args else None
        answered = isinstance(error, pymysql.MySQLError) and isinstance(number, int)
        return not (answered and 0 < number < 2000)


class _Connection:
    """Values are passed as bytes, so that the table's character set does not change them."""

    def __init__(self, address, port, table, password):
        self._table = table
        self._connection = pymysql.connect(
            host=address, port=port, user=USER, password=password, database=DATABASE,
            autocommit=True, connect_timeout=CALL_SECONDS, read_timeout=CALL_SECONDS, write_timeout=CALL_SECONDS,
            ssl_disabled=True)
        self._cursor = self._connection.cursor()

    def fetch(self, name: str) -> bytes | None:
        self._execute("SELECT CAST(VALUE AS BINARY) FROM {} WHERE NAME = %s", name)
        row = self._cursor.fetchone()
        return row[0] if row else None

    def store(self, name: str, value: bytes) -> None:
        self._execute("REPLACE INTO {} (NAME, VALUE, TIMEUUID) VALUES (%s, %s, %s)",
                      name, value, time.time_ns() // 1000)

    def remove(self, name: str) -> None:
        self._execute("DELETE FROM {} WHERE NAME = %s", name)

    def names_after(self, name: str | None) -> list[str]:
        self._execute(f"SELECT NAME FROM {{}} WHERE NAME > %s ORDER BY NAME LIMIT {PART}",
                      name or "")
        return [row[0] for row in self._cursor.fetchall()]

    def close(self) -> None:
        self._connection._force_close()

    def _execute(self, statement, *values):
        self._cursor.execute(statement.format(self._table), values)

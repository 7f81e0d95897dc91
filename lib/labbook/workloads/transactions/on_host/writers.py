"""Clients of one host that commit: `python -m labbook.workloads.transactions.on_host.writers OUT`.

A client opens a connection, which a proxy may give to any of its servers, and makes a call on it:
`writes` transactions one after the other, each an INSERT of one row and a COMMIT. The connection is
no part of the call. The results have no rows but, of each client, `calls`: [call, step, started_s,
seconds, error], where the step is "insert", "commit", or "" for the call as a whole. A call that fails
is a row with its error, and so is the statement that failed.
"""

import sys
import time
import uuid
from functools import partial

import pymysql

from labbook.targets import DATABASE, USER
from labbook.workloads.clients.on_host.memory import Memory
from labbook.workloads.clients.on_host.runner import Runner, cpu_seconds, main, save_part, sleep_until

FAILURES = (pymysql.Error, OSError)
INSERT = "INSERT INTO {table} (name, content) VALUES ('{name}', '{content}')"


class Writer:
    """Makes calls until `spec["seconds"]` after the start."""

    def __init__(self, spec: dict, number: int, part: str):
        self.spec, self.number, self._part, self._calls = spec, number, part, []
        self._content = "." * spec["value_bytes"]

    def measure(self, start: float) -> None:
        zero, cpu, number = sleep_until(start), cpu_seconds(), 0
        memory = Memory(self.spec["clients"])

        def now():
            return (time.perf_counter_ns() - zero) / 1e9

        while now() < self.spec["seconds"]:
            self._call(number, now)
            memory.look()
            number += 1
        save_part(self._part, client=self.number, cpu_s=cpu_seconds() - cpu, calls=self._calls,
                  collections=memory.collections)

    def _call(self, number: int, now) -> None:
        begun, error, connection = now(), "", None
        try:
            connection = self._connect()
            begun = now()
            with connection.cursor() as cursor:
                for _ in range(self.spec["writes"]):
                    for step, statement in (("insert", self._insert()), ("commit", "COMMIT")):
                        self._step(number, step, partial(cursor.execute, statement), now)
        except FAILURES as failed:
            error = words_of(failed)
        self._calls.append((number, "", begun, now() - begun, error))
        if connection is not None:
            connection._force_close()

    def _step(self, number: int, step: str, act, now) -> None:
        at, error = now(), ""
        try:
            act()
        except FAILURES as failed:
            error = words_of(failed)
            raise
        finally:
            self._calls.append((number, step, at, now() - at, error))

    def _insert(self) -> str:
        return INSERT.format(table=self.spec["table"], name=uuid.uuid4().hex, content=self._content)

    def _connect(self):
        spec = self.spec
        return pymysql.connect(
            host=spec["address"], port=spec["port"], user=USER, password=spec["password"], database=DATABASE,
            autocommit=False, connect_timeout=spec["call_seconds"], read_timeout=spec["call_seconds"],
            ssl_disabled=True)  # reading the CA certificates takes longer than a commit


def words_of(failure: Exception) -> str:
    return f"{type(failure).__name__}: {failure}"


class Writers(Runner):
    def client(self, number):
        return Writer(self.spec, number, self.part(number))


if __name__ == "__main__":
    sys.exit(main(Writers))

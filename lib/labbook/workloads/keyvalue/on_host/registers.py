"""Clients of registers: `python -m labbook.workloads.keyvalue.on_host.registers OUT`.

Client i of the first `keys` ones writes row i, and nobody else does: two writers of a row would be
ordered by their clocks. All other clients read rows drawn at random. Each call is a step of the
client's history: [op, row, value, begun_s, ended_s, outcome, error]. Who loses its connection calls
the next address.
"""

import mmap
import random
import sys
import time

from labbook.workloads.clients.on_host.memory import Memory
from labbook.workloads.clients.on_host.runner import (
    Runner,
    cpu_seconds,
    main,
    save_part,
    sleep_until,
    until_input_closes,
)
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.on_host.callers import load_code

WRITE, READ = "write", "read"
OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
ERROR_LETTERS = 160


class NotSent(Exception):
    """There was no connection, so the call was not sent."""


class Client:
    """`number` counts over all hosts."""

    def __init__(self, spec: dict, number: int, part: str, stopped):
        self.spec, self.number, self._part, self._stopped = spec, number, part, stopped
        self._op = WRITE if number < spec["keys"] else READ
        self._draw = random.Random(f"{spec['seed']} {number}")
        self._calls, self._losses, self._stamp, self.history = None, 0, 0, []

    def measure(self, start: float) -> None:
        zero, cpu = sleep_until(start), cpu_seconds()
        memory, every, count = Memory(self.spec["clients"]), 1 / self.spec["calls_per_s"], 0

        def now():
            return (time.perf_counter_ns() - zero) / 1e9

        due = every * self.number / self.spec["all_clients"]
        while now() < self.spec["seconds_at_most"] and not self._stopped[0]:
            time.sleep(max(0, due - now()))
            due = max(due + every, now())       # calls that were missed are not made up for
            self.call(count, now)
            memory.look()
            count += 1
        save_part(self._part, client=self.number, cpu_s=cpu_seconds() - cpu, history=self.history)

    def call(self, count: int, now) -> None:
        """Make one call, and add its step."""
        row = self.number if self._op == WRITE else self._draw.randrange(self.spec["keys"])
        value = f"{self.number}.{count}" if self._op == WRITE else None
        begun, error, outcome = now(), "", OK
        try:
            self._connect()
            if self._op == WRITE:
                self._calls.put(row, value.encode(), self._time())
            else:
                found = self._calls.get(row)
                value = None if found is None else found.decode(errors="backslashreplace")
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"[:ERROR_LETTERS]
            outcome = outcome_of(self._op, raised)
            self._recover(raised)
        self.history.append((self._op, row, value, begun, now(), outcome, error))

    def _connect(self) -> None:
        if self._calls is not None:
            return
        level = self.spec[f"{self._op}_level"]
        calls = protocols.calls(protocols.of_client(
            dict(self.spec, consistency=level), self.number + self._losses))
        try:
            calls.connect()
        except Exception as error:
            calls.close()
            raise NotSent(f"{type(error).__name__}: {error}") from error
        self._calls = calls

    def _recover(self, error: Exception) -> None:
        if self._calls is not None and self._calls.keeps_connection(error):
            return
        if self._calls is not None:
            self._calls.close()
        self._calls, self._losses = None, self._losses + 1

    def _time(self) -> int:
        """The time of a write in µs, later than that of this client's write before."""
        self._stamp = max(self._stamp + 1, time.time_ns() // 1000)
        return self._stamp


def outcome_of(op: str, error: Exception) -> str:
    """How a call ended that raised this error.

    A write that was sent may have reached a replica whatever the answer was: after a timeout, a lost
    connection, and also where the coordinator found too few replicas alive, since not every version
    is known to find that before the first replica has the value.
    """
    return UNKNOWN if op == WRITE and not isinstance(error, NotSent) else FAILED


def values_of(spec: dict) -> list[str | None]:
    """The value of each row, read at the spec's level: called in a host's engine."""
    calls = protocols.calls(protocols.of_client(spec, 0))
    try:
        calls.connect()
        found = [calls.get(row) for row in range(spec["rows"])]
    finally:
        calls.close()
    return [None if value is None else value.decode(errors="backslashreplace") for value in found]


class Registers(Runner):
    """A host's clients."""

    def __init__(self, spec: dict, out: str):
        super().__init__(spec, out)
        load_code(spec)
        self._stopped = mmap.mmap(-1, 1)

    def client(self, number):
        return Client(self.spec, number, self.part(number), self._stopped)

    def lead(self, forks) -> bool:
        until_input_closes()
        self._stopped[0] = 1
        return forks.wait()


if __name__ == "__main__":
    sys.exit(main(Registers))

"""The clients of one host: `python -m labbook.workloads.keyvalue_runner SPEC OUT`.

Forks `clients` processes, one connection each. All connect and warm up; then "ready" is printed,
a start time (seconds since the epoch) is read, and all start there. OUT holds the sheet's fields
without more (no NumPy here: its import costs a small point a third of a second).
A call that fails is a row with its error; so is each call of a client that cannot connect.
"""

import gc
import json
import mmap
import os
import random
import resource
import select
import struct
import sys
import time
from array import array
from bisect import bisect_left

from labbook.workloads import stores

WAIT_FOR_START_SECONDS = 900  # for the slowest host; an engine that ends closes our input sooner
KINDS_OF_ERRORS, ERROR_BYTES = 8, 160  # distinct texts kept a client, the last one for the rest
OF_CALLS = ("started", "seconds", "error")
NOT_MADE = -1  # seconds of a call that was not made, because the time was up


class Sheet:
    """Results that all processes of the host share: fields over (client, request), flat."""

    def __init__(self, clients: int, requests: int):
        self.clients, self.requests = clients, requests
        self.started, self.seconds, self.error, self.texts, self.cpu_seconds = (
            _shared(clients * columns, code) for _, code, columns in sheet_fields(requests))
        self.seconds[:] = array("d", [NOT_MADE]) * len(self.seconds)

    def save(self, path) -> None:
        """As many columns as the fastest client made calls, and before all their number."""
        made = max(self._calls(client) for client in range(self.clients))
        with open(path, "wb") as file:
            file.write(struct.pack("q", made))
            for name, _, columns in sheet_fields(self.requests):
                width = made if name in OF_CALLS else columns
                for first in range(0, self.clients * columns, columns):
                    file.write(getattr(self, name)[first:first + width])

    def _calls(self, client) -> int:
        first = client * self.requests
        return bisect_left(range(self.requests), True,
                           key=lambda i: self.seconds[first + i] == NOT_MADE)


def sheet_fields(calls: int):
    """Name, type code and columns (a row is a client) of each field, in the file's order."""
    return [("started", "d", calls), ("seconds", "d", calls), ("error", "B", calls),
            ("texts", "B", KINDS_OF_ERRORS * ERROR_BYTES), ("cpu_seconds", "d", 1)]


def _shared(count: int, code: str):
    size = count * struct.calcsize(code)
    return memoryview(mmap.mmap(-1, size))[:size].cast(code)


class Client:
    def __init__(self, spec: dict, number: int, sheet: Sheet):
        """`number` counts over all hosts; the sheet's rows from this host's first."""
        self.spec, self.sheet, self.at = spec, sheet, number - spec["first_client"]
        self.texts = []
        self.calls, self.connected = stores.calls(stores.of_client(spec, number)), False
        self.call = getattr(self.calls, spec["op"])
        chosen = random.Random(f"{spec['seed']} {number}")
        self.warmup = chosen.choices(range(spec["rows"]), k=spec["warmup_requests"])
        self.rows = chosen.choices(range(spec["rows"]), k=spec["requests"])

    def warm_up(self) -> None:
        until = time.monotonic() + self.spec["seconds_at_most"]
        for row in self.warmup or [None]:
            try:
                self._reconnect() if row is None else self.once(row)
            except Exception as error:
                self.recover(error)
            if time.monotonic() > until:
                return

    def once(self, row) -> None:
        if not self.connected:
            self._reconnect()
        self.call(row)

    def recover(self, error) -> None:
        if not (self.connected and self.calls.keeps_connection(error)):
            self.connected = False

    def measure(self, start: float) -> None:
        """`start`: when the clients of all hosts start, seconds since the epoch."""
        first, clock = self.at * len(self.rows), time.perf_counter_ns
        time.sleep(max(0, start - time.time()))
        zero = clock() + int((start - time.time()) * 1e9)
        deadline = zero + int(self.spec["seconds_at_most"] * 1e9)
        started, took = array("d"), array("d")
        cpu, once, call = _cpu_seconds(), self.once, self.call
        for i, row in enumerate(self.rows):
            begin = clock()
            if begin > deadline:
                break
            try:
                call(row) if self.connected else once(row)
            except Exception as error:
                self.sheet.error[first + i] = self.note(error)
                self.recover(error)
            took.append((clock() - begin) / 1e9)
            started.append((begin - zero) / 1e9)
        self.sheet.cpu_seconds[self.at] = _cpu_seconds() - cpu
        self.sheet.started[first:first + len(started)] = started
        self.sheet.seconds[first:first + len(took)] = took

    def note(self, error) -> int:
        """The number, from 1, under which this error's text is kept."""
        text = f"{type(error).__name__}: {error}".encode()[:ERROR_BYTES]
        if text not in self.texts:
            if len(self.texts) == KINDS_OF_ERRORS:
                text = self.texts[-1]
            else:
                text = text if len(self.texts) < KINDS_OF_ERRORS - 1 else b"other errors"
                self.texts.append(text)
                place = (self.at * KINDS_OF_ERRORS + len(self.texts) - 1) * ERROR_BYTES
                self.sheet.texts[place:place + len(text)] = text
        return self.texts.index(text) + 1

    def _reconnect(self):
        self.calls.close()
        self.calls.connect()
        self.connected = True


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _fork(spec, number, sheet, ready, go) -> int:
    """`ready` and `go` are pipes (read end, write end)."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.close(go[1])
        client = Client(spec, number, sheet)
        client.warm_up()
        os.write(ready[1], b".")
        os.close(ready[1])
        if start := os.read(go[0], 8):  # empty: the parent is gone
            client.measure(*struct.unpack("d", start))
            os._exit(0)
    except BaseException as error:
        print(f"client {number}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def main(spec_json: str, out: str) -> int:
    spec = json.loads(spec_json)
    sheet = Sheet(spec["clients"], spec["requests"])
    sys.modules.setdefault("numpy", None)  # cassandra-driver would load it, and nobody use it
    stores.calls(stores.of_client(spec, 0))  # what all need is loaded once, before the fork
    gc.disable()  # no pauses of our own making, and no pages copied for its marks
    ready, go = os.pipe(), os.pipe()
    numbers = range(spec["first_client"], spec["first_client"] + spec["clients"])
    pids = [_fork(spec, number, sheet, ready, go) for number in numbers]
    os.close(ready[1])
    while os.read(ready[0], len(pids)):  # until each has said so and closed its end, or died
        pass
    print("ready", flush=True)
    if not select.select([sys.stdin], [], [], WAIT_FOR_START_SECONDS)[0]:
        return 1
    start = float(sys.stdin.readline())
    os.write(go[1], struct.pack("d", start) * len(pids))
    failed = sum(os.waitpid(pid, 0)[1] != 0 for pid in pids)
    sheet.save(out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Writes a host's share of the rows: `python -m labbook.workloads.keyvalue.on_host.loader SPEC OUT`.

Forks `clients` processes, one connection each, which start together (see forks). While they are at
work it prints how many rows are written; OUT is JSON: of each client its number, when it started
(from the common start) and how long it took, rows, batches that it had to write again, CPU seconds.
"""

import gc
import json
import mmap
import os
import sys
import time

from labbook.workloads.clients.on_host.forks import Forks, cpu_seconds
from labbook.workloads.keyvalue.on_host.client import load_code
from labbook.workloads.keyvalue.protocols import registry as stores

PAUSE_SECONDS = 0.1    # after a failure; twice as long after each further one
TOLD_SECONDS = 0.5
FAILED = -1            # in place of how many rows a client has written


class Loader:
    """Client n of N writes the n-th part of all rows, batch after batch."""

    def __init__(self, spec: dict, number: int, done: memoryview, part: str):
        """`done`: how many rows are written, for all of the host's clients to tell."""
        self._spec, self._number, self._part = spec, number, part
        self._done, self._at = done, number - spec["first_client"]
        self._calls, self._connected = stores.calls(stores.of_client(spec, number)), False
        self._again = 0
        self._insist(self._connect)
        self._again = 0

    def measure(self, start: float) -> None:
        time.sleep(max(0, start - time.time()))
        began, used = time.time() - start, cpu_seconds()
        rows = share_of(self._number, self._spec)
        try:
            self._write_all(rows)
        except BaseException:
            self._done[self._at] = FAILED
            raise
        took = time.time() - start - began
        with open(self._part, "w") as file:
            json.dump([self._number, began, took, len(rows), self._again, cpu_seconds() - used],
                      file)

    def _write_all(self, rows: range) -> None:
        size, due = self._spec["rows_a_batch"], 0.0
        for first in range(rows.start, rows.stop, size):
            batch = range(first, min(first + size, rows.stop))
            due = self._held_back(due, len(batch))
            written = time.time_ns() // 1000  # the same again, so that a store has no second value
            self._insist(lambda: self._write(batch, written))
            self._done[self._at] += len(batch)

    def _held_back(self, due: float, rows: int) -> float:
        """Wait until the batch is due: when the one after it is; what was late is not made up for."""
        rate = self._spec.get("client_bytes_per_s")
        if rate is None:
            return due
        time.sleep(max(0, due - time.monotonic()))
        return time.monotonic() + rows * self._spec["value_bytes"] / rate

    def _insist(self, what) -> None:
        """A server that is short of something, or not yet there, gets more time."""
        pause = PAUSE_SECONDS
        for left in reversed(range(self._spec["tries"])):
            try:
                return what()
            except Exception as error:
                if not left:
                    raise
                self._connected = self._connected and self._calls.keeps_connection(error)
            self._again += 1
            time.sleep(pause)
            pause *= 2

    def _write(self, batch, written) -> None:
        if not self._connected:
            self._connect()
        self._calls.write_many(batch, written)

    def _connect(self) -> None:
        self._calls.close()
        self._calls.connect()
        self._connected = True


def share_of(number: int, spec: dict) -> range:
    """The rows of one of all clients."""
    rows, clients = spec["rows"], spec["all_clients"]
    return range(rows * number // clients, rows * (number + 1) // clients)


def main(spec_json: str, out: str) -> int:
    spec = json.loads(spec_json)
    load_code(spec)
    gc.freeze()
    done = memoryview(mmap.mmap(-1, 8 * spec["clients"])).cast("q")
    numbers = range(spec["first_client"], spec["first_client"] + spec["clients"])
    parts = {number: f"{out}.{number}" for number in numbers}
    clients = Forks(numbers, lambda number: Loader(spec, number, done, parts[number]))
    if not clients.start():
        return 1
    if not _told_until_end(clients, done):
        clients.kill()
    if not clients.wait():
        return 1
    found = []
    for part in parts.values():
        with open(part) as file:
            found.append(json.load(file))
    with open(out, "w") as file:
        json.dump(found, file)
    return 0


def _told_until_end(clients: Forks, done) -> bool:
    """Tell how far they are until all have ended; False when one has failed, or nobody listens."""
    while FAILED not in done:
        ended, closed = clients.watch(TOLD_SECONDS)
        if ended or closed:
            return ended
        try:
            os.write(1, b"%d\n" % sum(done))
        except BrokenPipeError:
            return False
    clients.watch(TOLD_SECONDS)  # time to say why
    return False


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

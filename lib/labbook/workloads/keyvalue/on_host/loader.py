"""Clients that write all rows of a table: `python -m labbook.workloads.keyvalue.on_host.loader OUT`.

Each writes its share of the rows in batches, and writes again what was not acknowledged. While they
work the program prints how many rows the host's clients have written.
"""

import mmap
import sys
import time

from labbook.workloads.clients.on_host.memory import Memory
from labbook.workloads.clients.on_host.runner import Runner, cpu_seconds, main, save_part, say
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.on_host.callers import load_code

PAUSE_SECONDS = 0.1    # after a failure; twice as long after each further one
SAY_SECONDS = 0.5      # between two prints of progress
FAILED = -1            # in place of how many rows a client has written


class Loader:
    """Client n of N writes the n-th share of all rows, batch after batch."""

    def __init__(self, spec: dict, number: int, done: memoryview, part: str):
        """`done`: how many rows each of the host's clients has written; shared memory."""
        self._spec, self._number, self._part = spec, number, part
        self._done, self._at = done, number - spec["first_client"]
        self._calls, self._connected = protocols.calls(protocols.of_client(spec, number)), False
        self._again = 0
        self._retry(self._connect)
        self._again = 0

    def measure(self, start: float) -> None:
        time.sleep(max(0, start - time.time()))
        began, zero, used = time.time() - start, time.monotonic(), cpu_seconds()
        rows = share_of(self._number, self._spec)
        try:
            self._write_all(rows)
        except BaseException:
            self._done[self._at] = FAILED
            raise
        took = time.monotonic() - zero
        save_part(self._part, client=self._number, started_s=began, seconds=took, rows=len(rows),
                  again=self._again, cpu_s=cpu_seconds() - used)

    def _write_all(self, rows: range) -> None:
        size, due, memory = self._spec["rows_a_batch"], 0.0, Memory(self._spec["clients"])
        for first in range(rows.start, rows.stop, size):
            batch = range(first, min(first + size, rows.stop))
            due = self._wait_for_turn(due, len(batch))
            written = time.time_ns() // 1000  # kept in retries, so that a store has one value
            self._retry(lambda: self._write(batch, written))
            self._done[self._at] += len(batch)
            memory.look()

    def _wait_for_turn(self, due: float, rows: int) -> float:
        """Wait until the batch is due: when the next one is. A late batch is not made up for."""
        rate = self._spec.get("client_bytes_per_s")
        if rate is None:
            return due
        time.sleep(max(0, due - time.monotonic()))
        return time.monotonic() + rows * self._spec["value_bytes"] / rate

    def _retry(self, call) -> None:
        """Try again after a pause: the server may be overloaded, or not there yet."""
        pause = PAUSE_SECONDS
        for left in reversed(range(self._spec["tries"])):
            try:
                return call()
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


class Loaders(Runner):
    """A host's loaders, which count in shared memory what they have written."""

    def __init__(self, spec: dict, out: str):
        super().__init__(spec, out)
        load_code(spec)
        self._done = memoryview(mmap.mmap(-1, 8 * spec["clients"])).cast("q")

    def client(self, number):
        return Loader(self.spec, number, self._done, self.part(number))

    def lead(self, forks) -> bool:
        if not self._say_until_end(forks):
            forks.kill()
        return forks.wait()

    def _say_until_end(self, forks) -> bool:
        """Print progress until all have ended; False when one has failed, or nobody listens."""
        while FAILED not in self._done:
            ended, closed = forks.watch(SAY_SECONDS)
            if ended or closed:
                return ended
            if not say(sum(self._done)):
                return False
        forks.watch(SAY_SECONDS)  # time to print its error
        return False


if __name__ == "__main__":
    sys.exit(main(Loaders))

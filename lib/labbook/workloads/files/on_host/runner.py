"""Metadata clients of one host: `python -m labbook.workloads.files.on_host.runner SPEC OUT`.

Forks a process a client. They start together (see forks); when all are ready for a further phase
its number is printed, and they begin it at the time that is read then; AT_END is printed when
there is none to wait for any more. They stop when our input is closed. OUT has the length of a
header (8 bytes), the header (JSON: of each client its number, how many rows, CPU seconds) and
their rows, client after client. A client whose call does not come back is left behind.
"""

import gc
import json
import mmap
import os
import select
import struct
import sys
import time
from contextlib import suppress

from labbook.workloads.clients.on_host.forks import Forks
from labbook.workloads.files.on_host.client import Client
from labbook.workloads.files.on_host.sheet import ROW, Sheet

LENGTH = struct.Struct("<q")
AT_END = -1
LOOK_SECONDS = 0.01
KILLED_SECONDS = 0.5   # for what SIGKILL can end to be gone


class Clients:
    """The host's, and what they share."""

    def __init__(self, spec: dict, out: str):
        self.spec, self.out = spec, out
        count = spec["clients"]
        self.numbers = range(spec["first_client"], spec["first_client"] + count)
        self._stopped = mmap.mmap(-1, 1)
        self._gates = memoryview(mmap.mmap(-1, 8 * len(spec["phases"]))).cast("d")
        self._arrived = memoryview(mmap.mmap(-1, 8 * count)).cast("q")
        self._parts = [f"{out}.{number}" for number in self.numbers]
        self.sheets = [Sheet(part) for part in self._parts]
        self.cut_s = 0.0
        self._forks = Forks(self.numbers, self._client)

    def _client(self, number: int) -> Client:
        sheet = self.sheets[number - self.spec["first_client"]]
        return Client(self.spec, number, sheet, self._gates, self._arrived, self._stopped)

    def start(self) -> bool:
        return self._forks.start()

    def lead(self) -> None:
        """Say when all are ready for a phase, and pass on when it begins; returns once there is no
        further one."""
        for number in range(1, len(self.spec["phases"])):
            while min(self._arrived) < number:
                if self._over(any):
                    return
            _say(number)
            if not (line := sys.stdin.buffer.raw.readline()):
                return
            self._gates[number] = float(line)
        while not self._over(all):
            pass

    def _over(self, of_clients) -> bool:
        """Whether nobody leads any more, or so many clients have ended; said in the second case."""
        ended, told = self._forks.watch(LOOK_SECONDS)
        ended = ended or of_clients(sheet.done for sheet in self.sheets)
        if ended and not told:
            _say(AT_END)
        return ended or told

    def stop(self) -> bool:
        """Stop after the calls under way: whether all clients ended well, or are blocked."""
        select.select([0], [], [])   # until it is closed
        self._stopped[0] = 1
        if self._let_end(self.spec["call_seconds"]):
            return self._forks.wait()
        self.cut_s = time.time() - self._gates[0]
        self._forks.kill()
        self._let_end(KILLED_SECONDS)   # those that are not blocked for ever
        return all(sheet.done or sheet.at() for sheet in self.sheets)

    def _let_end(self, seconds: float) -> bool:
        """Give the clients so much time: whether all have ended."""
        until = time.monotonic() + seconds
        while not (ended := self._forks.watch(0)[0]) and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        return ended

    def write(self) -> None:
        found = [sheet.rows(self.cut_s) for sheet in self.sheets]
        heads = [[number, len(rows) // ROW.size, sheet.cpu_s]
                 for number, rows, sheet in zip(self.numbers, found, self.sheets)]
        header = json.dumps(heads).encode()
        with open(self.out, "wb") as file:
            file.write(LENGTH.pack(len(header)) + header)
            for rows in found:
                file.write(rows)
        for part in self._parts:
            os.unlink(part)


def _say(number: int) -> None:
    with suppress(BrokenPipeError):
        os.write(1, b"%d\n" % number)


def main(spec_json: str, out: str) -> int:
    gc.freeze()
    clients = Clients(json.loads(spec_json), out)
    if not clients.start():
        return 1
    clients.lead()
    if not clients.stop():
        return 1
    clients.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

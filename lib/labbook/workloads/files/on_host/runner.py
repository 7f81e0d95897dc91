"""Metadata clients of one host: `python -m labbook.workloads.files.on_host.runner OUT`.

When all clients are ready for a further phase its number is printed, and they begin it at the time
that is read then; AT_END is printed when no further phase comes. They stop when the program's input
is closed. A client whose call does not return is left behind, and that call is its last row.
"""

import io
import mmap
import sys
import time

from labbook.workloads.clients.on_host.runner import (
    Runner,
    main,
    read_time,
    say,
    until_input_closes,
)
from labbook.workloads.files.on_host.client import ROW, Client, Sheet

AT_END = -1
LOOK_SECONDS = 0.01
KILLED_SECONDS = 0.5   # for what SIGKILL can end to be gone


class Clients(Runner):
    """The host's clients, and the memory that they share: when each phase begins (`gates`), how
    many phases each client has finished (`arrived`), whether to stop, and a sheet each."""

    def __init__(self, spec: dict, out: str):
        super().__init__(spec, out)
        self._stopped = mmap.mmap(-1, 1)
        self._gates = memoryview(mmap.mmap(-1, 8 * len(spec["phases"]))).cast("d")
        self._arrived = memoryview(mmap.mmap(-1, 8 * spec["clients"])).cast("q")
        self._sheets = {number: Sheet(self.part(number)) for number in self.numbers}
        self._rows = {}

    def client(self, number: int) -> Client:
        return Client(self.spec, number, self._sheets[number], self._gates, self._arrived,
                      self._stopped)

    def lead(self, forks) -> bool:
        self._lead_phases(forks)
        until_input_closes()
        well, cut_s = self._stop(forks)
        self._rows = {number: sheet.rows(cut_s) for number, sheet in self._sheets.items()}
        return well

    def head(self, number):
        return {"client": number, "rows": len(self._rows[number]) // ROW.size,
                "cpu_s": self._sheets[number].cpu_s}

    def rows(self, number):
        return io.BytesIO(self._rows[number])

    def _lead_phases(self, forks) -> None:
        """Print when all are ready for a phase, and pass on when it begins; returns once there is
        no further one."""
        for number in range(1, len(self.spec["phases"])):
            while min(self._arrived) < number:
                if self._over(forks, any):
                    return
            say(number)
            if (start := read_time()) is None:
                return
            self._gates[number] = start
        while not self._over(forks, all):
            pass

    def _over(self, forks, of_clients) -> bool:
        """Whether the input was closed, or any or all clients have ended, which is printed."""
        ended, closed = forks.watch(LOOK_SECONDS)
        ended = ended or of_clients(sheet.done for sheet in self._sheets.values())
        if ended and not closed:
            say(AT_END)
        return ended or closed

    def _stop(self, forks) -> tuple[bool, float]:
        """Stop after the calls under way: (whether each client ended well or is blocked, when
        blocked calls were given up, seconds since the start)."""
        self._stopped[0] = 1
        cut_s = leave(forks, self.spec["call_seconds"])
        if cut_s is None:
            return forks.wait(), 0.0
        return all(sheet.done or sheet.at() for sheet in self._sheets.values()), cut_s


def leave(forks, call_seconds: float) -> float | None:
    """Wait up to `call_seconds` for all clients to end. Those that have not are killed, and left behind
    where a call blocks them for ever: when that was, seconds since the start. None when all ended."""
    if _ended(forks, call_seconds):
        return None
    cut_s = forks.since_start()
    forks.kill()
    _ended(forks, KILLED_SECONDS)   # those that are not blocked for ever
    return cut_s


def _ended(forks, seconds: float) -> bool:
    """Wait up to `seconds` for all clients: whether they have ended."""
    until = time.monotonic() + seconds
    while not (ended := forks.watch(0)[0]) and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    return ended


if __name__ == "__main__":
    sys.exit(main(Clients))

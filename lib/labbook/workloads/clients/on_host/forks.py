"""A host's clients, each a forked process: all get ready, then all start as one.

What starts them reads "ready" from our output, and gives a start time (seconds since the epoch)
as a line of our input.
"""

import os
import resource
import select
import struct
import sys

WAIT_FOR_START_SECONDS = 900  # for the slowest host; an engine that ends closes our input sooner


class Forks:
    """`make(number)` gives a client that is ready to `measure(start)`; each is made and metrics
    in a process of its own, of which nothing but what it writes is left."""

    def __init__(self, numbers, make):
        self._ready, self._go = os.pipe(), os.pipe()
        self._ended = os.pipe()
        self._pids = [self._fork(number, make) for number in numbers]
        for pipe in (self._ready, self._ended):
            os.close(pipe[1])
        said = 0
        while more := len(os.read(self._ready[0], len(self._pids))):  # until each has, or died
            said += more
        self._all_ready = said == len(self._pids)

    def start(self) -> bool:
        """Say that all are ready, and let them start when told to; False when one has died, or
        nobody tells."""
        if not self._all_ready:
            return False
        print("ready", flush=True)
        if not select.select([0], [], [], WAIT_FOR_START_SECONDS)[0]:
            return False
        line = sys.stdin.buffer.raw.readline()
        if not line:
            return False
        os.write(self._go[1], struct.pack("d", float(line)) * len(self._pids))
        return True

    def watch(self, seconds: float) -> tuple[bool, bool]:
        """Wait so long at most: whether all clients have ended, whether our input was closed."""
        found = select.select([self._ended[0], 0], [], [], seconds)[0]
        return self._ended[0] in found, 0 in found

    def until_input_closes(self) -> None:
        """Whether clients are still at work or have ended before."""
        select.select([0], [], [])

    def wait(self) -> bool:
        """Until all have ended: whether all went well."""
        return not any([os.waitpid(pid, 0)[1] for pid in self._pids])

    def kill(self) -> None:
        for pid in self._pids:
            os.kill(pid, 9)  # ours until we have waited for it

    def _fork(self, number, make) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            os.close(self._go[1])
            client = make(number)
            os.write(self._ready[1], b".")
            os.close(self._ready[1])
            if start := os.read(self._go[0], 8):  # empty: the parent is gone
                client.measure(*struct.unpack("d", start))
                os._exit(0)
        except BaseException as error:
            print(f"client {number}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)


def cpu_seconds() -> float:
    """Of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

"""The program that runs one host's clients: a skeleton that each kind of client completes.

A kind of client is a module with a subclass of Runner and, at its end,

    if __name__ == "__main__":
        sys.exit(main(MyRunner))

The engine starts it (see engine). It forks a process for each client, so that none waits for
another's interpreter lock. All get ready; then all start together, at the time that the engine
writes. They end with the program, however it ends. No garbage is collected by itself (see memory).
The results are a file: the length of a header (8 bytes), the header (JSON: a dict of each client),
and the clients' rows, as bytes, one client after the other.
"""

import ctypes
import gc
import json
import os
import resource
import select
import shutil
import signal
import struct
import sys
import time
from contextlib import suppress

LOOKS_AT_CLOCKS = 5
WAIT_FOR_START_SECONDS = 900  # for the slowest host; an engine that ends closes our input sooner
LENGTH = struct.Struct("<q")
PR_SET_PDEATHSIG = 1    # prctl's, of linux/prctl.h


class Runner:
    """What a kind of client does on its host. `spec`: this host's, with `clients` (how many),
    `first_client` (number of the first one; numbers count over all hosts) and what its clients
    need. Memory that the clients share is made in the constructor, before the fork."""

    def __init__(self, spec: dict, out: str):
        self.spec, self._out = spec, out
        self.numbers = range(spec["first_client"], spec["first_client"] + spec["clients"])

    def client(self, number: int):
        """Called in the client's own process: an object, ready to start, with `measure(start)`,
        `start` in seconds since the epoch. It writes its results with `save_part`."""
        raise NotImplementedError

    def lead(self, forks: "Forks") -> bool:
        """Called after the start: returns when all clients have ended, whether all went well."""
        return forks.wait()

    def part(self, number: int) -> str:
        """Path of a client's own results, until they are put together."""
        return f"{self._out}.{number}"

    def head(self, number: int) -> dict:
        """A client's part of the header."""
        with open(f"{self.part(number)}.head") as file:
            return json.load(file)

    def rows(self, number: int):
        """A client's rows: a binary file, open."""
        return open(self.part(number), "rb")

    def save(self) -> None:
        """Put all clients' results together."""
        header = json.dumps([self.head(number) for number in self.numbers]).encode()
        with open(self._out, "wb") as out:
            out.write(LENGTH.pack(len(header)) + header)
            for number in self.numbers:
                with self.rows(number) as rows:
                    shutil.copyfileobj(rows, out)
                os.unlink(self.part(number))


class Forks:
    """The clients' processes. `make(number)`, called in each, gives the client."""

    def __init__(self, numbers, make):
        self._ready, self._go, self._ended = os.pipe(), os.pipe(), os.pipe()
        self._pids = [self._fork(number, make) for number in numbers]
        for pipe in (self._ready, self._ended):
            os.close(pipe[1])
        ready = 0
        while more := len(os.read(self._ready[0], len(self._pids))):  # until each is, or has died
            ready += more
        self._all_ready = ready == len(self._pids)

    def start(self) -> bool:
        """Print "ready", read the start time, pass it on; False when a client has died, or no time
        comes."""
        if not self._all_ready:
            return False
        print("ready", flush=True)
        if not select.select([0], [], [], WAIT_FOR_START_SECONDS)[0]:
            return False
        at = read_time()
        if at is None:
            return False
        self._zero = moment(at)
        os.write(self._go[1], struct.pack("d", at) * len(self._pids))
        return True

    def since_start(self) -> float:
        """Seconds since the clients started, also if the clock was set meanwhile."""
        return (time.perf_counter_ns() - self._zero) / 1e9

    def watch(self, seconds: float) -> tuple[bool, bool]:
        """Wait up to `seconds` for either: whether all clients have ended, whether our input was
        closed or has something to read."""
        found = select.select([self._ended[0], 0], [], [], seconds)[0]
        return self._ended[0] in found, 0 in found

    def wait(self) -> bool:
        """Until all have ended: whether all went well."""
        return not any([os.waitpid(pid, 0)[1] for pid in self._pids])

    def kill(self) -> None:
        for pid in self._pids:
            os.kill(pid, 9)  # none can be another's: we have not waited for it

    def _fork(self, number, make) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            end_with(parent)
            os.dup2(2, 1)  # the engine reads our parent's output to its end, which comes with ours
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


def main(kind: type[Runner]) -> int:
    """Run the host's clients; the exit code. sys.argv: the path for the results."""
    runner = kind(json.loads(sys.stdin.buffer.raw.readline()), sys.argv[1])
    gc.disable()  # see memory
    gc.freeze()  # so that a collection in a client copies no pages for its marks
    forks = Forks(runner.numbers, runner.client)
    if not forks.start() or not runner.lead(forks):
        return 1
    runner.save()
    return 0


def save_part(part: str, raw: bytes | None = b"", /, **head) -> None:
    """Write a client's results: its rows as bytes (None: they are in the file `part` already) and
    its part of the header."""
    if raw is not None:
        with open(part, "wb") as file:
            file.write(raw)
    with open(f"{part}.head", "w") as file:
        json.dump(head, file)


def results(raw: bytes) -> tuple[list[dict], memoryview]:
    """(heads, rows) of a file of results: for the driver."""
    begin = LENGTH.size + LENGTH.unpack_from(raw)[0]
    return json.loads(bytes(raw[LENGTH.size:begin])), memoryview(raw)[begin:]


def end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, even by SIGKILL."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # it has ended before
        os._exit(1)


def until_input_closes(seconds: float | None = None) -> bool:
    """Wait for it, up to `seconds` or without a limit: whether it was closed."""
    return bool(select.select([0], [], [], seconds)[0])


def read_time() -> float | None:
    """A time that the engine writes; None once our input is closed."""
    line = sys.stdin.buffer.raw.readline()
    return float(line) if line else None


def say(number: int) -> bool:
    """Print progress for the engine; False when nobody reads it any more."""
    with suppress(BrokenPipeError):
        os.write(1, b"%d\n" % number)
        return True
    return False


def sleep_until(start: float) -> int:
    """Sleep until `start`, seconds since the epoch: that moment on time.perf_counter_ns's clock."""
    time.sleep(max(0, start - time.time()))
    return moment(start)


def moment(at: float) -> int:
    """A moment, seconds since the epoch, on time.perf_counter_ns's clock.

    Of several looks at both clocks that with the least time between counts. All clients wake at once, and one that
    waits for a core between two looks would take its calls for later ones than they are.
    """
    _, ahead = min(_look() for _ in range(LOOKS_AT_CLOCKS))
    return int(at * 1e9) + ahead


def _look() -> tuple[int, int]:
    """ns that a look at both clocks took, and how far that of perf_counter_ns is ahead of the other."""
    before, wall, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
    return after - before, (before + after) // 2 - wall


def cpu_seconds() -> float:
    """Of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

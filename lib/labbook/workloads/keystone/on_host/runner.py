"""Keystone's clients of one host: `python -m labbook.workloads.keystone.on_host.runner OUT`.

The spec is read as a line of JSON, since it holds a password, which a command line would show. A
process is forked for each client; when all are there "ready" is printed, a start time (seconds
since the epoch) is read, and all start there. With `times` in the spec they share that many calls,
each taking one when it is free; without, they call until our input is closed. OUT is a JSON list:
of each client its rows (call, step, started_s, seconds, error, user) and the CPU seconds it used.
A call that fails is a row with its error, and so is the step that failed.
"""

import gc
import json
import mmap
import os
import resource
import select
import signal
import struct
import sys
import time
from contextlib import contextmanager

from labbook.workloads.keystone.on_host.calls import STEPS, KeystoneCall

WAIT_FOR_START_SECONDS = 900  # for the slowest host; an engine that ends closes our input sooner
MOST_TIMES = 50_000           # what a pipe holds, a byte each
ERROR_LETTERS = 240            # half of them the first, half the last, where the cause is told
AGAIN_SECONDS = 0.2           # an interruption may come where it is not heard


class OutOfTime(BaseException):  # so that no library takes it for one of its own
    """The call has taken as long as one may."""


class Client:
    """`turns` gives the calls to be made; `clock` says what a row's time is."""

    def __init__(self, spec: dict):
        self.spec, self.steps = spec, STEPS[spec["scenario"]]
        self.rows = []

    def call(self, number: int, now) -> None:
        """Make one call; add its row and, before it, its steps'."""
        call, begun = KeystoneCall(self.spec["credentials"]), now()
        error = ""
        try:
            with at_most(self.spec["call_seconds"]):
                for step in self.steps:
                    at = now()
                    try:
                        getattr(call, step)()
                    except BaseException as failed:
                        error = said(failed, self.spec["call_seconds"])
                        raise
                    finally:
                        self.rows.append((number, step, at, now() - at, error, call.user))
        except (Exception, OutOfTime) as failed:
            error = error or said(failed, self.spec["call_seconds"])
        self.rows.append((number, "", begun, now() - begun, error, call.user))

    def measure(self, start: float, turn) -> float:
        """Calls from `start` (seconds since the epoch) on, while `turn()`: CPU seconds they took."""
        time.sleep(max(0, start - time.time()))
        ahead, cpu = time.time() - start - time.monotonic(), cpu_seconds()

        def now():
            return time.monotonic() + ahead

        number = 0
        while now() < self.spec["seconds_at_most"] and turn():
            self.call(number, now)
            number += 1
        return cpu_seconds() - cpu


@contextmanager
def at_most(seconds: float):
    """OutOfTime in what runs within, once it has run that long, and again until it is heard."""
    within = True

    def interrupt(*_):
        if within:
            raise OutOfTime

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        within = False
        signal.setitimer(signal.ITIMER_REAL, 0)


def said(error: BaseException, call_seconds: float) -> str:
    """A row's error, its type first, never empty."""
    text = f"no answer within {call_seconds:g} s" if isinstance(error, OutOfTime) else str(error)
    text, half = f"{type(error).__name__}: {text}", ERROR_LETTERS // 2
    return text if len(text) <= ERROR_LETTERS else f"{text[:half]} ... {text[-half:]}"


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Turns:
    """Which calls are made: `times` shared by all clients, or any number until `stop`."""

    def __init__(self, times: int | None):
        self._stopped, self._left = mmap.mmap(-1, 1), None
        if times is not None:
            self._left, given = os.pipe()
            os.write(given, bytes(times))
            os.close(given)

    def __call__(self) -> bool:
        return not self._stopped[0] and (self._left is None or bool(os.read(self._left, 1)))

    def stop(self) -> None:
        self._stopped[0] = 1


def client_of(number: int, spec: dict, turns: Turns, ready, go, part: str) -> int:
    """Fork a client; `ready` and `go` are pipes (read end, write end), `part` where it writes."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.close(go[1])
        client = Client(spec)
        os.write(ready[1], b".")
        os.close(ready[1])
        if start := os.read(go[0], 8):  # empty: the parent is gone
            cpu = client.measure(*struct.unpack("d", start), turns)
            with open(part, "w") as file:
                json.dump([number, client.rows, cpu], file)
            os._exit(0)
    except BaseException as error:
        print(f"client {number}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def main(out: str) -> int:
    for name in [n for n in os.environ if n.lower().endswith("_proxy")]:
        del os.environ[name]  # the lab's servers are not reached by way of others
    spec = json.loads(sys.stdin.buffer.raw.readline())
    gc.freeze()
    turns, ready, go = Turns(spec["times"]), os.pipe(), os.pipe()
    numbers = range(spec["first_client"], spec["first_client"] + spec["clients"])
    parts = [f"{out}.{number}" for number in numbers]
    pids = [client_of(number, spec, turns, ready, go, part)
            for number, part in zip(numbers, parts)]
    os.close(ready[1])
    while os.read(ready[0], len(pids)):  # until each has said so and closed its end, or died
        pass
    print("ready", flush=True)
    if not select.select([0], [], [], WAIT_FOR_START_SECONDS)[0]:
        return 1
    start = float(sys.stdin.buffer.raw.readline())
    os.write(go[1], struct.pack("d", start) * len(pids))
    failed = wait(pids, turns if spec["times"] is None else None)
    if not failed:
        found = []
        for part in parts:
            with open(part) as file:
                found.append(json.load(file))
        with open(out, "w") as file:
            json.dump(found, file)
    return 1 if failed else 0


def wait(pids, stopped_by_input: Turns | None) -> bool:
    """Until all clients have ended; whether one failed."""
    if stopped_by_input is not None:
        select.select([0], [], [])
        stopped_by_input.stop()
    return any([os.waitpid(pid, 0)[1] != 0 for pid in pids])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

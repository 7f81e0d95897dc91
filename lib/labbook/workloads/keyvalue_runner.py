"""The clients of one host: `python -m labbook.workloads.keyvalue_runner SPEC OUT`.

Forks `clients` processes, one connection each. All connect and warm up; then "ready" is printed,
a start time (seconds since the epoch) is read, and all start there. OUT is an .npz.
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

import numpy as np

from labbook.workloads import stores

WAIT_FOR_START_SECONDS = 60
KINDS_OF_ERRORS, ERROR_BYTES = 8, 160  # distinct texts kept a client, the last one for the rest
NOT_MADE = -1  # seconds of a call that was not made, because the time was up


class Sheet:
    """Results that all processes of the host share: arrays over (client, request)."""

    def __init__(self, clients: int, requests: int):
        self.started = _shared((clients, requests), np.float64)
        self.seconds = _shared((clients, requests), np.float64)
        self.error = _shared((clients, requests), np.uint8)
        self.texts = _shared((clients, KINDS_OF_ERRORS), f"S{ERROR_BYTES}")
        self.cpu_seconds = _shared((clients,), np.float64)
        self.seconds[:] = NOT_MADE

    def save(self, path) -> None:
        with open(path, "wb") as file:
            np.savez(file, **vars(self))


def _shared(shape, dtype):
    dtype = np.dtype(dtype)
    size = max(1, int(np.prod(shape)) * dtype.itemsize)
    return np.frombuffer(mmap.mmap(-1, size), dtype)[:int(np.prod(shape))].reshape(shape)


class Client:
    def __init__(self, spec: dict, number: int, sheet: Sheet):
        """`number` counts over all hosts; the sheet's rows from this host's first."""
        self.spec, self.sheet, self.at = spec, sheet, number - spec["first_client"]
        self.calls, self.connected = stores.calls(spec), False
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
        sheet, at, clock = self.sheet, self.at, time.perf_counter_ns
        time.sleep(max(0, start - time.time()))
        zero = clock() + int((start - time.time()) * 1e9)
        deadline = zero + int(self.spec["seconds_at_most"] * 1e9)
        started, took = [], []
        cpu, once, call = _cpu_seconds(), self.once, self.call
        for i, row in enumerate(self.rows):
            begin = clock()
            if begin > deadline:
                break
            try:
                call(row) if self.connected else once(row)
            except Exception as error:
                sheet.error[at, i] = self.note(error)
                self.recover(error)
            took.append(clock() - begin)
            started.append(begin - zero)
        sheet.cpu_seconds[at] = _cpu_seconds() - cpu
        sheet.started[at, :len(started)] = np.array(started) / 1e9
        sheet.seconds[at, :len(took)] = np.array(took) / 1e9

    def note(self, error) -> int:
        """The number, from 1, under which this error's text is kept."""
        text = f"{type(error).__name__}: {error}".encode()[:ERROR_BYTES]
        texts = self.sheet.texts[self.at]
        for i in range(KINDS_OF_ERRORS - 1):
            if texts[i] in (b"", text):
                texts[i] = text
                return i + 1
        texts[-1] = b"other errors"
        return KINDS_OF_ERRORS

    def _reconnect(self):
        self.calls.close()
        self.calls.connect()
        self.connected = True


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _fork(spec, number, sheet, ready, go) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        client = Client(spec, number, sheet)
        client.warm_up()
        os.write(ready, b".")
        start = os.read(go, 8)  # empty: the parent is gone
        if start:
            client.measure(*struct.unpack("d", start))
            os._exit(0)
    except BaseException as error:
        print(f"client {number}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def main(spec_json: str, out: str) -> int:
    spec = json.loads(spec_json)
    sheet = Sheet(spec["clients"], spec["requests"])
    stores.calls(spec)  # what all clients need is loaded once, before they are forked
    gc.freeze()
    (ready, say_ready), (go, say_go) = os.pipe(), os.pipe()
    numbers = range(spec["first_client"], spec["first_client"] + spec["clients"])
    pids = [_fork(spec, number, sheet, say_ready, go) for number in numbers]
    os.close(say_ready)
    os.close(go)
    waiting = len(pids)
    while waiting and (said := os.read(ready, waiting)):
        waiting -= len(said)
    print("ready", flush=True)
    if not select.select([sys.stdin], [], [], WAIT_FOR_START_SECONDS)[0]:
        return 1
    start = float(sys.stdin.readline())
    os.write(say_go, struct.pack("d", start) * len(pids))
    failed = sum(os.waitpid(pid, 0)[1] != 0 for pid in pids)
    sheet.save(out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

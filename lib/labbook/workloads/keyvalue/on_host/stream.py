"""Clients of one host that call until they are stopped:
`python -m labbook.workloads.keyvalue.on_host.stream SPEC OUT`.

They start together (see forks) and stop when our input is closed. Each writes its calls to a file
of its own as it goes, so that their number does not matter; OUT has them all: the length of a
header (8 bytes), the header (JSON: of each client its number, how many calls, CPU seconds, texts
of errors), and a ROW a call, client after client.
"""

import gc
import json
import mmap
import os
import shutil
import struct
import sys
import time

from labbook.workloads.clients.on_host.forks import Forks, cpu_seconds
from labbook.workloads.keyvalue.on_host.client import Client, load_code

ROW = struct.Struct("<ddB")  # when it started, seconds it took, 0 or the number of its error's text
LENGTH = struct.Struct("<q")
KEPT_BYTES = 1 << 16   # of rows, before they are written to the file
NAP_NS = 200_000_000   # how long a client that is ahead of its times does not look whether to stop
LOST_SECONDS = 0.05    # after a lost connection: refusals come faster than anybody wants rows


class StreamClient(Client):
    """Its own times, where there is a rate: call i of client n of N at (n + i N) / rate_per_s."""

    def __init__(self, spec: dict, number: int, stopped: mmap.mmap, part: str):
        super().__init__(spec, number)
        self._stopped, self._part, self._count = stopped, part, 0
        rate = spec["rate_per_s"]
        self._every = spec["all_clients"] / rate * 1e9 if rate else 0
        self._due = number / rate * 1e9 if rate else 0
        self.warm_up()

    def measure(self, start: float) -> None:
        """`start`: when the clients of all hosts start, seconds since the epoch."""
        time.sleep(max(0, start - time.time()))
        zero = time.perf_counter_ns() + int((start - time.time()) * 1e9)
        used = cpu_seconds()
        with open(self._part, "wb", buffering=0) as file:
            self._call(zero, file)
        with open(f"{self._part}.head", "w") as file:
            json.dump([self.number, self._count, cpu_seconds() - used,
                       [text.decode(errors="replace") for text in self.texts]], file)

    def _call(self, zero: int, file) -> None:
        clock, once, call, draw = time.perf_counter_ns, self.once, self.call, self.chosen.random
        rows, every, due = self.spec["rows"], self._every, zero + self._due
        deadline = zero + int(self.spec["seconds_at_most"] * 1e9)
        kept, pack, stopped = bytearray(), ROW.pack, self._stopped
        while not stopped[0]:
            begin, error = clock(), 0
            if begin > deadline:
                break
            if every:
                if begin < due:
                    time.sleep(min(due - begin, NAP_NS) / 1e9)
                    continue
                due += every
            row = int(draw() * rows)
            try:
                call(row) if self.connected else once(row)
            except Exception as raised:
                error = self.note(raised)
                self.recover(raised)
            kept += pack((begin - zero) / 1e9, (clock() - begin) / 1e9, error)
            if error and not self.connected:
                time.sleep(LOST_SECONDS)
            if len(kept) > KEPT_BYTES:
                self._write(kept, file)
        self._write(kept, file)

    def _write(self, kept: bytearray, file) -> None:
        self._count += len(kept) // ROW.size
        left = memoryview(bytes(kept))
        kept.clear()
        while left:  # a full disk raises, a signal may cut a write short
            left = left[file.write(left):]


def merge(parts: list[str], out: str) -> None:
    heads = []
    for part in parts:
        with open(f"{part}.head") as file:
            heads.append(json.load(file))
    header = json.dumps(heads).encode()
    with open(out, "wb") as whole:
        whole.write(LENGTH.pack(len(header)) + header)
        for part in parts:
            with open(part, "rb") as file:
                shutil.copyfileobj(file, whole)
            os.unlink(part)


def main(spec_json: str, out: str) -> int:
    spec = json.loads(spec_json)
    load_code(spec)
    gc.freeze()  # so that the collector copies no pages for its marks
    stopped = mmap.mmap(-1, 1)
    numbers = range(spec["first_client"], spec["first_client"] + spec["clients"])
    parts = {number: f"{out}.{number}" for number in numbers}
    clients = Forks(numbers, lambda number: StreamClient(spec, number, stopped, parts[number]))
    if not clients.start():
        return 1
    clients.until_input_closes()
    stopped[0] = 1
    if not clients.wait():
        return 1
    merge(list(parts.values()), out)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

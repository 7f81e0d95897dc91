"""The tracer: writes down what the kernel says of every request of one disk, in a file.

It needs Python and nothing else, so that it can be put on any host: run as root, where tracefs is
mounted, `python3 -I -S tracer.py --instance NAME --device 7:0 --out FILE`. The kernel's words go into
the file as they are, packed, and are read later elsewhere: it is the measured machine's time.

It prints `ready {...}` when requests are recorded, and on SIGTERM, once all that was recorded is in
the file, `done {...}`. Its tracing instance goes with it, unless it is killed.
"""

import argparse
import json
import os
import signal
import sys
import time
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

INSTANCES = Path("/sys/kernel/tracing/instances")
EVENTS = ("block_rq_issue", "block_bio_queue")   # given to the disk; asked for, by whom
CLOCK = "mono"          # CLOCK_MONOTONIC, which Python can read too
PAUSE_S = 0.05          # between two looks: the kernel's buffer holds what comes meanwhile
READ_BYTES = 1 << 16
LOST = ("overrun", "commit overrun", "dropped events")
ENDINGS = (signal.SIGTERM, signal.SIGINT)


class Instance:
    """One instance of the kernel's tracing. OSError when it cannot be had."""

    def __init__(self, name, device, buffer_kb):
        """`device`: (major, minor); `buffer_kb` for each processor."""
        self.folder = INSTANCES / name
        self.remove()       # of a tracer that was killed
        self.folder.mkdir()
        try:
            self._set_up(device, buffer_kb)
        except OSError:
            self.remove()
            raise

    def _set_up(self, device, buffer_kb):
        self._set("tracing_on", 0)
        self._set("trace_clock", CLOCK)
        self._set("buffer_size_kb", buffer_kb)
        major, minor = device
        for event in EVENTS:
            # the kernel's own dev_t, which is not the one of stat
            self._set(f"events/block/{event}/filter", f"dev == {major << 20 | minor}")
            self._set(f"events/block/{event}/enable", 1)
        self._set("tracing_on", 1)

    def stop(self):
        self._set("tracing_on", 0)

    def lost(self):
        """Events that found no room; told by the kernel for each processor."""
        lines = [line for stats in self.folder.glob("per_cpu/cpu*/stats")
                 for line in stats.read_text().splitlines()]
        counts = (line.split(": ") for line in lines)
        return sum(int(count) for name, count in counts if name in LOST)

    @contextmanager
    def opened(self):
        """What is recorded, as text, to be read once."""
        pipe = os.open(self.folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        try:
            yield pipe
        finally:
            os.close(pipe)

    def remove(self):
        with suppress(FileNotFoundError):
            self.folder.rmdir()

    def _set(self, name, value):
        try:
            (self.folder / name).write_text(str(value))
        except OSError as error:
            raise OSError(error.errno, f"{name}: {error.strerror}") from None


class Copy:
    """What comes out of a pipe goes into a file, packed, up to `most_bytes` of it."""

    def __init__(self, pipe, file, most_bytes):
        self.pipe, self.file, self.most_bytes = pipe, file, most_bytes
        self.packer = zlib.compressobj(1)
        self.written = 0

    @property
    def full(self):
        return self.written >= self.most_bytes

    def all_there_is(self):
        """Returns when nothing more is there."""
        while not self.full:
            try:
                text = os.read(self.pipe, READ_BYTES)
            except BlockingIOError:
                return
            if not text:
                return
            self._write(self.packer.compress(text))

    def close(self):
        self._write(self.packer.flush())
        self.file.flush()

    def _write(self, packed):
        self.file.write(packed)
        self.written += len(packed)


def offset_s():
    """What is to be added to the trace's clock for seconds since 1970."""
    found = []
    for _ in range(20):
        before, now, after = time.monotonic(), time.time(), time.monotonic()
        found.append((after - before, now - (before + after) / 2))
    return min(found)[1]    # the reading that took least


def record(instance, copy):
    """Copy until told to end, or full; when it was full (seconds since 1970), or None."""
    while not signal.sigtimedwait(ENDINGS, PAUSE_S):
        copy.all_there_is()
        if copy.full:
            return time.time()
    instance.stop()
    copy.all_there_is()
    return None


def _device(text):
    major, minor = text.split(":")
    return int(major), int(minor)


def _settings(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instance", required=True, help="name of the tracing instance to make")
    parser.add_argument("--device", type=_device, required=True, help="the disk's major:minor")
    parser.add_argument("--out", required=True, help="the file")
    parser.add_argument("--buffer-kb", type=int, default=4096, help="the kernel's, a processor")
    parser.add_argument("--most-mb", type=float, default=512, help="the file's size at most")
    return parser.parse_args(arguments)


def main(arguments=None):
    asked = _settings(arguments)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)   # waited for, so that none cuts a line
    told = {"clock": CLOCK, "offset_s": offset_s()}
    instance = Instance(asked.instance, asked.device, asked.buffer_kb)
    try:
        with instance.opened() as pipe, open(asked.out, "wb") as file:
            copy = Copy(pipe, file, asked.most_mb * 1e6)
            print("ready", json.dumps(told), flush=True)
            told["full_s"] = record(instance, copy)
            instance.stop()
            copy.close()
        told["lost"] = instance.lost()
    finally:
        instance.remove()
    told["offset_moved_s"] = offset_s() - told["offset_s"]
    print("done", json.dumps(told), flush=True)
    if told["full_s"]:      # what was recorded waits to be asked for
        signal.sigwait(ENDINGS)


if __name__ == "__main__":
    try:
        main()
    except OSError as refusal:
        sys.exit(f"tracer: {refusal}")

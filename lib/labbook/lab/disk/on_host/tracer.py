"""The tracer: records the kernel's events for every request of one disk in a file.

Standard library only, so that it runs on any host with Python: as root, where tracefs is mounted,
`python3 -I -S tracer.py --instance NAME --device 7:0 --out FILE`. The kernel's text goes into the
file compressed but unparsed: parsing would cost time on the measured machine.

It prints `ready {...}` when requests are recorded and, upon SIGTERM, `done {...}` once the file is
complete. It removes its tracing instance, unless it is killed.
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
EVENTS = ("block_rq_issue", "block_bio_queue")   # sent to the disk; requested, with the thread
CLOCK = "mono"          # CLOCK_MONOTONIC, which Python can read too
PAUSE_S = 0.05          # between two reads of the kernel's buffer
READ_BYTES = 1 << 16
LOST = ("overrun", "commit overrun", "dropped events")
ENDINGS = (signal.SIGTERM, signal.SIGINT)


class Instance:
    """One instance of the kernel's tracing. OSError when it cannot be made."""

    def __init__(self, name, device, buffer_kb):
        """`device`: (major, minor); `buffer_kb` for each processor."""
        self.folder = INSTANCES / name
        self.remove()       # left by a tracer that was killed
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
        """Events that the kernel dropped, on all processors."""
        lines = [line for stats in self.folder.glob("per_cpu/cpu*/stats")
                 for line in stats.read_text().splitlines()]
        counts = (line.split(": ") for line in lines)
        return sum(int(count) for name, count in counts if name in LOST)

    @contextmanager
    def opened(self):
        """A pipe of the recorded events as text."""
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
    """Copies a pipe into a file, compressed, up to `most_bytes`."""

    def __init__(self, pipe, file, most_bytes):
        self.pipe, self.file, self.most_bytes = pipe, file, most_bytes
        self.packer = zlib.compressobj(1)
        self.written = 0

    @property
    def full(self):
        return self.written >= self.most_bytes

    def drain(self):
        """Copy until the pipe is empty."""
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
    """Seconds to be added to the trace's clock to get seconds since 1970."""
    readings = []
    for _ in range(20):
        before, now, after = time.monotonic(), time.time(), time.monotonic()
        readings.append((after - before, now - (before + after) / 2))
    return min(readings)[1]    # the quickest reading


def record(instance, copy):
    """Copy until a signal or a full file; return when it was full (seconds since 1970), or None."""
    while not signal.sigtimedwait(ENDINGS, PAUSE_S):
        copy.drain()
        if copy.full:
            return time.time()
    instance.stop()
    copy.drain()
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
    settings = _settings(arguments)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)   # so that no signal cuts a line
    facts = {"clock": CLOCK, "offset_s": offset_s()}
    instance = Instance(settings.instance, settings.device, settings.buffer_kb)
    try:
        with instance.opened() as pipe, open(settings.out, "wb") as file:
            copy = Copy(pipe, file, settings.most_mb * 1e6)
            print("ready", json.dumps(facts), flush=True)
            facts["full_s"] = record(instance, copy)
            instance.stop()
            copy.close()
        facts["lost"] = instance.lost()
    finally:
        instance.remove()
    facts["offset_moved_s"] = offset_s() - facts["offset_s"]
    print("done", json.dumps(facts), flush=True)
    if facts["full_s"]:      # keep the file until it is asked for
        signal.sigwait(ENDINGS)


if __name__ == "__main__":
    try:
        main()
    except OSError as refusal:
        sys.exit(f"tracer: {refusal}")

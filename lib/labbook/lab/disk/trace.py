"""Trace a disk's requests: run the tracer on the host, and parse its file into a DataFrame."""

import json
import re
import shlex
import zlib
from contextlib import suppress
from pathlib import Path, PurePosixPath

from labbook.errors import LabbookError, LabError, SystemFailure
from labbook.lab.disk import tracefs
from labbook.lab.ssh.transfer import say

TRACER = Path(__file__).with_name("on_host") / "tracer.py"
NAME = "trace"          # of its process, one a host
READY_SECONDS, END_SECONDS = 20, 60
SECTOR_BYTES = 512      # the kernel's, whatever the disk's own
CHUNK_BYTES = 16 << 20
TEXTS = ("thread", "event", "io_class")
EVENTS = {"rq_issue": "issue", "bio_queue": "queue"}
# The I/O class (none,0,0) is printed by newer kernels only:
#  java-812 [001] d..1. 46.135: block_rq_issue: 7,0 RA 131072 () 2048 + 256 none,0,0 [ReadStage:1]
#  java-812 [001] ..... 46.134: block_bio_queue: 7,0 RA 2048 + 256 [ReadStage:1]
LINE = re.compile(
    r"^.*?-(?P<tid>\d+) +\[\d+\] +\S+ +(?P<t>\d+\.\d+): block_(?P<event>rq_issue|bio_queue): "
    r"\d+,\d+ (?P<flags>\w+) (?:\d+ \(.*?\) )?(?P<sector>\d+) \+ (?P<count>\d+) "
    r"(?:(?P<io_class>\w+),\d+,\d+ )?\[(?P<thread>.*)\]$", re.M)


class Trace:
    """Every request of one disk from `begin()` to `end()`; then `requests` is a DataFrame.

    Columns: see frame. Times are seconds since 1970 by the host's clock; the kernel records
    CLOCK_MONOTONIC, whose offset is measured when the trace begins.

    `facts` after the end: requests (rows), lost (events that the kernel dropped, which are also
    reported to the user), clock, offset_moved_s (how far the host's clock was set meanwhile), full_s
    (when the file was full and the tracer stopped, else None). The tracer costs about 3 us of one
    core a request, and memory of the host for its file, about 1 MB for 50 000 requests.
    """

    def __init__(self, host, number: str, write_down):
        self.host, self.number, self._write_down = host, number, write_down
        self.requests, self.facts, self._process = None, {}, None

    def begin(self) -> "Trace":
        """Start to trace; return when requests are recorded. Ends an earlier trace that still runs.

        LabError when the host's owner does not allow it or the kernel cannot do it.
        """
        host = self.host
        if not host.may("trace"):
            raise LabError(f"{host.name}: requests cannot be traced there: trace is not allowed",
                           remedy="Add trace to the host's `allow` if you agree, and bring the lab "
                                  "up anew")
        left = host.process(NAME)
        if left is not None and left.alive():
            left.stop(END_SECONDS)
        host.put(TRACER, TRACER.name)
        instance = self._write_down(host)
        self._process = host.start(NAME, self._command(instance), root=True)
        try:
            host.wait_for(lambda: self._report("ready"), "the tracer", READY_SECONDS,
                          process=self._process, interval=0.02)
        except BaseException as error:
            self._give_up()
            if isinstance(error, SystemFailure):
                raise LabError(f"{error.message}: {error.log}",
                               remedy="`labbook doctor` tries what it needs") from None
            raise
        return self

    def end(self):
        """Stop to trace; return the requests. LabError when the tracer ended before."""
        self._process.stop(END_SECONDS)
        try:
            report = self._report("done")
            if report is None:
                raise LabError(f"{self.host.name}: the tracer ended early: {self._process.log_tail(5)}")
            self.requests = frame(self.host.get(self._file), report.pop("offset_s"))
        finally:
            self._remove_file()     # its memory would count as the host's
        self.facts = {"requests": len(self.requests), **report}
        if report["lost"]:
            say(f"{self.host.name}: the trace lacks {report['lost']} events: too many for its buffer")
        if report["full_s"]:
            say(f"{self.host.name}: the trace stopped before its end: its file was full")
        return self.requests

    def __enter__(self):
        return self.begin()

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()
            return
        self._give_up()

    def _give_up(self):
        with suppress(LabbookError):    # it would hide the error of the block
            self._process.stop(END_SECONDS)
            self._remove_file()

    @property
    def _file(self) -> PurePosixPath:
        """The tracer's file, not on the traced disk: in memory, or on a user's host beside the disk's file."""
        if not self.host.is_remote:
            return PurePosixPath("/tmp/trace")
        return self.host.root.parent / f"{self.host.name}.trace"

    def _remove_file(self):
        self.host.run(f"rm -f {shlex.quote(str(self._file))}", root=True)

    def _command(self, instance) -> str:
        tracer = shlex.join([self.host.python, "-I", "-S", str(self.host.root / TRACER.name),
                             f"--instance={instance}", f"--device={self.number}",
                             f"--out={self._file}"])
        return shlex.join(["unshare", "--mount", "sh", "-c",
                           f"{{ {tracefs.MOUNT}; }} && exec {tracer}"])

    def _report(self, word) -> dict | None:
        """The JSON after the tracer's last `word`; None when it has not printed that."""
        lines = self._process.log_tail(5).splitlines()
        reports = [line for line in lines if line.startswith(f"{word} ")]
        return json.loads(reports[-1].partition(" ")[2]) if reports else None


def frame(packed: bytes, offset_s: float = 0.0):
    """Parse the tracer's compressed file: a DataFrame of requests, one row an event, in time order.

    t_s (the trace's clock + offset_s), event ("issue": sent to the disk; "queue": requested, before
    requests are merged or split), sector (of 512 bytes), size_bytes, write, ahead (a read-ahead),
    thread (its name, at most 15 characters; on an issue often one of the kernel's), tid (the
    machine's number), io_class ("rt"; "be", also for threads without a class; "idle" or "none"; ""
    on a queue, or where the kernel does not print it). Flushes and discards are left out.
    """
    import numpy as np
    import pandas as pd

    parts = [_columns(text) for text in _texts(packed)] or [_columns("")]
    joined = {name: [value for part in parts for value in part[name]] if name in TEXTS
              else np.concatenate([part[name] for part in parts]) for name in parts[0]}
    joined["t_s"] = joined["t_s"] + offset_s
    requests = pd.DataFrame(joined).astype(dict.fromkeys(TEXTS, object))
    requests = requests.astype(dict.fromkeys(TEXTS, "category"))
    # pages of the processors' buffers are read in turns, so that events may be out of order
    return requests.sort_values("t_s", kind="stable", ignore_index=True)


def _columns(text: str) -> dict:
    import numpy as np

    lines = [line for line in LINE.findall(text) if _moves_data(line[3], line[5])]
    tid, t, event, flags, sector, count, io_class, thread = zip(*lines) if lines else [()] * 8
    return {
        "t_s": np.array(t, float), "event": [EVENTS[one] for one in event],
        "sector": np.array(sector, np.int64),
        "size_bytes": np.array(count, np.int64) * SECTOR_BYTES,
        "write": np.array(["W" in one for one in flags], bool),
        "ahead": np.array(["A" in one for one in flags], bool),
        "thread": list(thread), "tid": np.array(tid, np.int32), "io_class": list(io_class),
    }


def _moves_data(flags, count):
    return count != "0" and ("R" in flags or "W" in flags)


def _texts(packed):
    """The file's text in chunks that end with a line."""
    unpacker, rest = zlib.decompressobj(), b""
    while packed or unpacker.unconsumed_tail:
        piece = unpacker.decompress(packed, CHUNK_BYTES)
        packed = unpacker.unconsumed_tail
        whole, line, rest = (rest + piece).rpartition(b"\n")
        yield (whole + line).decode(errors="replace")
        if not piece and not packed:
            break
    yield rest.decode(errors="replace")

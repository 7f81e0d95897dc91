"""A trace of a disk's requests: the tracer put on the host, ended, and what it wrote read."""

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
# The I/O class (none,0,0) is told by newer kernels only:
#  java-812 [001] d..1. 46.135: block_rq_issue: 7,0 RA 131072 () 2048 + 256 none,0,0 [ReadStage:1]
#  java-812 [001] ..... 46.134: block_bio_queue: 7,0 RA 2048 + 256 [ReadStage:1]
LINE = re.compile(
    r"^.*?-(?P<tid>\d+) +\[\d+\] +\S+ +(?P<t>\d+\.\d+): block_(?P<event>rq_issue|bio_queue): "
    r"\d+,\d+ (?P<flags>\w+) (?:\d+ \(.*?\) )?(?P<sector>\d+) \+ (?P<count>\d+) "
    r"(?:(?P<io_class>\w+),\d+,\d+ )?\[(?P<thread>.*)\]$", re.M)


class Trace:
    """Every request of one disk from `begin()` to `end()`, which gives it as `requests`, a DataFrame
    (columns: see frame). Times are seconds since 1970: the trace's clock is the kernel's
    CLOCK_MONOTONIC, and what it was behind is measured on the host when it begins.

    `facts` after the end: requests (rows), lost (events for which the kernel had no room; told when
    there are any), clock, offset_moved_s (how far the host's clock was set meanwhile), full_s (when
    the tracer's file was full and it stopped; None). The tracer takes one core for some 3 us a
    request and memory of the host for its file, 1 MB for 50 000 requests or so.
    """

    def __init__(self, host, number: str, write_down):
        self.host, self.number, self._write_down = host, number, write_down
        self.requests, self.facts, self._process = None, {}, None

    def begin(self) -> "Trace":
        """Returns when requests are recorded. LabError where the host does not take it; what an
        earlier trace left running ends."""
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
            host.wait_for(lambda: self._said("ready"), "the tracer", READY_SECONDS,
                          process=self._process, interval=0.02)
        except SystemFailure as error:
            raise LabError(f"{error.message}: {error.log}",
                           remedy="`labbook doctor` tries what it needs") from None
        return self

    def end(self):
        """The requests. LabError when the tracer ended before it was asked to."""
        self._process.stop(END_SECONDS)
        said, file = self._said("done"), self._file
        if said is None:
            raise LabError(f"{self.host.name}: the tracer ended early: {self._process.log_tail(5)}")
        self.requests = frame(self.host.get(file), said.pop("offset_s"))
        self._forget()
        self.facts = {"requests": len(self.requests), **said}
        if said["lost"]:
            say(f"{self.host.name}: the trace lacks {said['lost']} events: too many for its buffer")
        if said["full_s"]:
            say(f"{self.host.name}: the trace stopped before its end: its file was full")
        return self.requests

    def __enter__(self):
        return self.begin()

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()
            return
        with suppress(LabbookError):    # which would hide what went wrong
            self._process.stop(END_SECONDS)
            self._forget()

    @property
    def _file(self) -> PurePosixPath:
        """Not on the traced disk: in memory, or beside the disk's own file on a user's host."""
        if not self.host.is_remote:
            return PurePosixPath("/tmp/trace")
        return self.host.root.parent / f"{self.host.name}.trace"

    def _forget(self):
        self.host.run(f"rm -f {shlex.quote(str(self._file))}", root=True)

    def _command(self, instance) -> str:
        tracer = shlex.join([self.host.python, "-I", "-S", str(self.host.root / TRACER.name),
                             f"--instance={instance}", f"--device={self.number}",
                             f"--out={self._file}"])
        return shlex.join(["unshare", "--mount", "sh", "-c",
                           f"{{ {tracefs.MOUNT}; }} && exec {tracer}"])

    def _said(self, word) -> dict | None:
        """What followed a word of the tracer's own."""
        lines = self._process.log_tail(5).splitlines()
        found = [line for line in lines if line.startswith(f"{word} ")]
        return json.loads(found[-1].partition(" ")[2]) if found else None


def frame(packed: bytes, offset_s: float = 0.0):
    """DataFrame of requests in the order of their times, one row an event.

    t_s (the trace's clock + offset_s), event ("issue": given to the disk; "queue": asked for, which
    is before it was merged with others or split), sector (of 512 bytes), size_bytes, write, ahead
    (a read that nobody waits for yet), thread (its name, at most 15 characters; on an issue often
    one of the kernel's own), tid (as the machine numbers it), io_class ("rt", "be", which is
    also who has none of their own, "idle" or "none"; "" on a queue or where the kernel does not tell). Flushes and discards are left out.
    """
    import numpy as np
    import pandas as pd

    parts = [_columns(text) for text in _texts(packed)] or [_columns("")]
    joined = {name: [value for part in parts for value in part[name]] if name in TEXTS
              else np.concatenate([part[name] for part in parts]) for name in parts[0]}
    joined["t_s"] = joined["t_s"] + offset_s
    made = pd.DataFrame(joined).astype(dict.fromkeys(TEXTS, object))
    made = made.astype(dict.fromkeys(TEXTS, "category"))
    # processors' buffers are read one page after the other, so that two events may be the wrong way
    return made.sort_values("t_s", kind="stable", ignore_index=True)


def _columns(text: str) -> dict:
    import numpy as np

    found = [line for line in LINE.findall(text) if _moves(line[3], line[5])]
    tid, t, event, flags, sector, count, io_class, thread = zip(*found) if found else [()] * 8
    return {
        "t_s": np.array(t, float), "event": [EVENTS[one] for one in event],
        "sector": np.array(sector, np.int64),
        "size_bytes": np.array(count, np.int64) * SECTOR_BYTES,
        "write": np.array(["W" in one for one in flags], bool),
        "ahead": np.array(["A" in one for one in flags], bool),
        "thread": list(thread), "tid": np.array(tid, np.int32), "io_class": list(io_class),
    }


def _moves(flags, count):
    return count != "0" and ("R" in flags or "W" in flags)


def _texts(packed):
    """The file's text in pieces that end with a line."""
    unpacker, rest = zlib.decompressobj(), b""
    while packed or unpacker.unconsumed_tail:
        piece = unpacker.decompress(packed, CHUNK_BYTES)
        packed = unpacker.unconsumed_tail
        whole, line, rest = (rest + piece).rpartition(b"\n")
        yield (whole + line).decode(errors="replace")
        if not piece and not packed:
            break
    yield rest.decode(errors="replace")

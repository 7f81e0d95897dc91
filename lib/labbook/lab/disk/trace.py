"""A trace of a disk's requests: the tracer put on the host, ended, and what it wrote read."""

import json
import shlex
from contextlib import suppress
from pathlib import Path, PurePosixPath

from labbook.errors import LabbookError, LabError, SystemFailure
from labbook.lab.disk import trace_text
from labbook.lab.local import tracing
from labbook.lab.ssh.transfer import say

TRACER = Path(__file__).with_name("on_host") / "tracer.py"
NAME = "trace"          # of its process, one a host
READY_SECONDS, END_SECONDS = 20, 60


class Trace:
    """Every request of one disk from `begin()` to `end()`, which gives it as `requests`, a DataFrame
    (columns: trace_text.frame). Times are seconds since 1970: the trace's clock is the kernel's
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
        self.requests = trace_text.frame(self.host.get(file), said.pop("offset_s"))
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
                           f"{{ {tracing.MOUNT}; }} && exec {tracer}"])

    def _said(self, word) -> dict | None:
        """What followed a word of the tracer's own."""
        lines = self._process.log_tail(5).splitlines()
        found = [line for line in lines if line.startswith(f"{word} ")]
        return json.loads(found[-1].partition(" ")[2]) if found else None

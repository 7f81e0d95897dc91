"""Reads the progress file of a run, and shows it as a bar.

The driver begins the file with {event: begin, at_s, profile, plan}. The kernel, to which
LABBOOK_PROGRESS names the file, appends JSON lines: {event: plan | start | done | failed | paused |
complete | note | warning, text, experiment, point, done, total, seconds, message}.
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path

from labbook.atomic_files import disk_errors

LINE_EVERY_S = 60   # where there is no terminal
REASONS = 5         # of failures, shown while a study runs


def beside(partial: Path) -> Path:
    """The progress file of a run that writes its page to `partial`."""
    return partial.with_name(partial.name.replace(".partial.ipynb", "") + ".progress")


def tell(**event) -> None:
    """Append one event, if there is a progress file. One write, so that lines never mix."""
    if path := os.environ.get("LABBOOK_PROGRESS"):
        with disk_errors(Path(path)), open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")


class RunState:
    """The state of one run, from the events in its progress file."""

    def __init__(self, path: Path):
        self.path, self._offset = Path(path), 0
        self.experiments = {}   # name -> {"done", "total", "seconds", ...}, of its last event
        self.complete = self.paused = False
        self.begun = {}         # at_s, since the epoch, and profile
        self.kernel_pid = None
        self.point = self.note = None  # note: other work, until the next point starts
        self.failures = []      # (point, message), of this run
        self.warnings = []
        self.measured = 0
        self._seconds = 0.0     # spent on points in this run

    def read_on(self) -> bool:
        """Read the events written since the last call; True if there were any."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return False
        whole = data[: data.rfind(b"\n") + 1]  # the last line may be incomplete
        self._offset += len(whole)
        for line in whole.splitlines():
            self._take(json.loads(line))
        return bool(whole)

    def _take(self, event: dict) -> None:
        kind, experiment = event.get("event"), event.get("experiment")
        if kind == "begin":
            self.begun = event
        elif kind == "kernel":
            self.kernel_pid = event["pid"]
        elif kind in ("complete", "paused"):
            setattr(self, kind, True)
        if experiment is not None:
            self.experiments.setdefault(experiment, {}).update(
                {k: v for k, v in event.items() if k not in ("event", "experiment")})
        if kind == "warning":
            self.warnings.append(event["message"])
        elif kind == "note":
            self.note = event.get("text")
        elif kind == "start":
            self.point, self.note = event.get("point"), None
        elif kind in ("done", "failed"):
            self.measured += kind == "done"
            if kind == "failed":
                self.failures.append((event.get("point"), event.get("message")))
            self._seconds += event.get("seconds") or 0

    @property
    def failed(self) -> int:
        return len(self.failures)

    def points(self) -> dict:
        return {"done": self.done, "total": self.total, "measured": self.measured, "failed": self.failed}

    @property
    def done(self) -> int:
        return sum(e.get("done") or 0 for e in self.experiments.values())

    @property
    def total(self) -> int:
        return sum(e.get("total") or 0 for e in self.experiments.values())

    def seconds_left(self) -> float | None:
        """Estimate from the points of this run; None before the first one."""
        tried = self.measured + self.failed
        return self._seconds / tried * max(self.total - self.done, 0) if tried else None


class Bar:
    """A study's progress: a line that is redrawn on a terminal; elsewhere a line at the start, one a
    minute and one at the end."""

    def __init__(self, study: str, stream=None):
        self.study, self.stream = study, stream or sys.stderr
        self.live = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self._started = self._printed = time.monotonic()
        self._failures, self._reasons = 0, set()    # how many were looked at; reasons shown
        self._warnings = 0                          # how many were shown
        if not self.live:
            print(f"{study}: started", file=self.stream, flush=True)

    def show(self, story: RunState) -> None:
        self._show_failures(story)
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r\033[K" + self.line(story)[:width])
            self.stream.flush()
        elif time.monotonic() - self._printed >= LINE_EVERY_S:
            self._printed = time.monotonic()
            print(self.line(story, cells=0), file=self.stream, flush=True)

    def _show_failures(self, story: RunState) -> None:
        """Print at once why a point failed: each reason once, and REASONS of them at most. And warnings."""
        start = "\r\033[K" if self.live else ""
        for message in story.warnings[self._warnings:]:
            print(f"{start}{self.study}: {message}", file=self.stream, flush=True)
        self._warnings = len(story.warnings)
        for point, message in story.failures[self._failures:]:
            if message not in self._reasons and len(self._reasons) < REASONS:
                self._reasons.add(message)
                print(f"{start}{self.study}: {point} failed: {message}", file=self.stream, flush=True)
        self._failures = story.failed

    def line(self, story: RunState, cells: int = 20) -> str:
        elapsed = duration(time.monotonic() - self._started)
        if not story.total:
            return f"{self.study}  {elapsed}" + (f"  {story.note}" if story.note else "")
        full = round(cells * story.done / story.total)
        left = story.seconds_left()
        parts = [f"{self.study}  {'█' * full}{'░' * (cells - full)}".rstrip(),
                 f"{story.done}/{story.total} points", elapsed]
        if left is not None:
            parts.append(f"about {duration(left)} left")
        if story.failed:
            parts.append(f"{story.failed} failed")
        if story.note:
            parts.append(story.note)
        return "  ".join(parts)

    def end(self, text: str, story: RunState | None = None) -> None:
        if story:
            self._show_failures(story)
        if self.live:
            self.stream.write("\r\033[K")
        elapsed = duration(time.monotonic() - self._started)
        print(f"{self.study}: {text} ({elapsed})", file=self.stream, flush=True)


def duration(seconds: float) -> str:
    """A duration in words: "42 s", "3 min 20 s", "4 h 05 min"."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        minutes, rest = divmod(seconds, 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(seconds, 3600)
    return f"{hours} h {rest // 60:02d} min"


def parse_duration(text: str) -> float:
    """Seconds in "40m", "1h30m", "90s"; ValueError for anything else."""
    import re

    match = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text)
    if not text or not match:
        raise ValueError(text)
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds

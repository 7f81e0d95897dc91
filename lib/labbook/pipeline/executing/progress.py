"""Reads the progress file of a run, and shows it as a bar.

The driver begins the file with {event: begin, at_s, profile, plan, board and since (see
labbook.pipeline.running.asking), totals (see labbook.pipeline.running.totals)}. The kernel, to which
LABBOOK_PROGRESS names the file, appends JSON lines: {event: plan | arms | start | done | failed | paused |
complete | note | warning | survey | hand_out, text, experiment, point, done, total, seconds, set_up_s, message,
found, hand_out, guessed}.
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path

from labbook.atomic_files import disk_errors

LINE_EVERY_S = 60   # where there is no terminal
FEW = 5             # points of an experiment, by which its time is not known yet: the first has the set-up
REASONS = 5         # of failures, shown while a study runs


def beside(partial: Path) -> Path:
    """The progress file of a run that writes its page to `partial`."""
    return partial.with_name(partial.name.replace(".partial.ipynb", "") + ".progress")


def append_event(**event) -> None:
    """Append one event, if there is a progress file. One write, so that lines never mix."""
    if path := os.environ.get("LABBOOK_PROGRESS"):
        with disk_errors(Path(path)), open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")


class RunState:
    """The state of one run, from the events in its progress file."""

    def __init__(self, path: Path):
        self.path, self._offset = Path(path), 0
        self.experiments = {}   # name -> {"done", "total", "seconds", ...}, of its last event
        self.complete = False
        self.begun = {}         # at_s, since the epoch, and profile
        self.kernel_pid = None
        self.point = self.note = None  # note: other work, until the next point starts
        self.survey = None      # where the asked claims stand
        self.failures = []      # (point, message) of each attempt of this run
        self._failed = set()    # (experiment, point): whose last attempt failed
        self.warnings = []
        self.measured = 0
        self.points_s = self.set_up_s = 0.0     # of the points that this run measured; of that for set-ups
        self._took = {}        # experiment -> [points, seconds] of this run
        self._under_way = None  # (experiment, since the epoch) of the point that is being measured

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
            self.experiments = {name: dict(one) for name, one in (event.get("totals") or {}).get(
                "experiments", {}).items()}
        elif kind == "kernel":
            self.kernel_pid = event["pid"]
        elif kind == "complete":
            self.complete = True
        if experiment is not None:
            if kind == "plan" and event.get("seconds") and event["total"] > event["done"]:
                event["seconds_before"] = event["seconds"] / (event["total"] - event["done"])
            self.experiments.setdefault(experiment, {}).update(
                {k: v for k, v in event.items() if k not in ("event", "experiment")})
        if kind == "survey":
            self.survey = event["found"]
        elif kind == "warning":
            self.warnings.append(event["message"])
        elif kind == "note":
            self.note = event.get("text")
        elif kind == "start":
            self.point, self.note = event.get("point"), None
            self._under_way = (experiment, event["time"]) if "time" in event else None
        elif kind in ("done", "failed"):
            self._take_attempt(event, experiment)

    def _take_attempt(self, event: dict, experiment: str) -> None:
        self._under_way = None
        point, seconds = (experiment, event.get("point")), event.get("seconds") or 0
        if event["event"] == "done":
            self.measured += event.get("new", True)
            self.points_s += seconds
            self.set_up_s += event.get("set_up_s") or 0
            self._failed.discard(point)
            took = self._took.setdefault(experiment, [0, 0.0])
            took[0] += 1
            took[1] += seconds
        else:
            self.failures.append((event.get("point"), event.get("message")))
            self._failed.add(point)

    @property
    def board(self) -> dict:
        """The state of an ask when this execution began; {} without one."""
        return self.begun.get("board") or {}

    @property
    def began_at_s(self) -> float | None:
        """When the run began, since the epoch: of an ask its first round."""
        return self.begun.get("since", self.begun.get("at_s"))

    @property
    def failed(self) -> int:
        """Points whose last attempt failed."""
        return len(self._failed)

    def points(self) -> dict:
        return {"done": self.done, "total": self.total, "measured": self.measured, "failed": self.failed}

    def lab_time(self) -> dict:
        """What the points of this run took: {points_s, set_up_s of it}."""
        return {"points_s": round(self.points_s, 1), "set_up_s": round(self.set_up_s, 1)}

    @property
    def done(self) -> int:
        return sum(e.get("done") or 0 for e in self.experiments.values())

    @property
    def total(self) -> int:
        return sum(e.get("total") or 0 for e in self.experiments.values())

    def seconds_left(self) -> float | None:
        """Of an ask, as its planner estimates. Otherwise from the experiment's points in this run, or else from
        earlier ones, from this run's other points or from lab.yml; None where nothing is known. What the point under
        way has taken is done, up to what it is estimated to take."""
        if self.board:
            return max(self.board["at_s"] + self.board["seconds"] - time.time(), 0.0)
        left = [self._seconds_left_of(name, one) for name, one in self.experiments.items()]
        return sum(left) - self._spent_under_way() if left and None not in left else None

    def _spent_under_way(self) -> float:
        experiment, since = self._under_way or (None, 0.0)
        one = self.experiments.get(experiment, {})
        if (one.get("done") or 0) >= (one.get("total") or 0):
            return 0.0
        a_point = self._seconds_left_of(experiment, one | {"done": one["total"] - 1})
        return min(max(time.time() - since, 0.0), a_point)

    def seconds_of_point(self, name: str) -> float | None:
        """Of an experiment: the mean of this run's points, or else what is known from before."""
        count, seconds = self._took.get(name, (0, 0.0))
        return seconds / count if count else self.experiments[name].get("seconds_before")

    def _seconds_left_of(self, name: str, one: dict) -> float | None:
        points, before = max((one.get("total") or 0) - (one.get("done") or 0), 0), one.get("seconds_before")
        count, seconds = self._took.get(name, (0, 0.0))
        if not points or (before is not None and count < (1 if one.get("guessed") else FEW)):
            return (before or 0.0) * points
        if not count:
            count, seconds = map(sum, zip(*self._took.values())) if self._took else (0, 0.0)
        a_point = seconds / count if count else (self.begun.get("totals") or {}).get("point_s")
        return None if a_point is None else a_point * points


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
        self._failures = len(story.failures)

    def line(self, story: RunState, cells: int = 20) -> str:
        elapsed = duration(time.monotonic() - self._started)
        if not story.total:
            return f"{self.study}  {elapsed}" + (f"  {story.note}" if story.note else "")
        full = round(cells * story.done / story.total)
        left, board = story.seconds_left(), story.board
        parts = [f"{self.study}  {'█' * full}{'░' * (cells - full)}".rstrip()]
        if board:
            parts.append(f"{board['decided']}/{board['asked']} claims decided")
        parts += [f"{story.done}/{story.total} points" + f" of {', '.join(board.get('now', ()))}" * bool(board),
                  elapsed]
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

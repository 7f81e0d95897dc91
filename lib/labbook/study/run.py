"""One run of a study: its options, the remaining points, and the outcomes."""

import os
import statistics
import time

from labbook.atomic_files import make_folder, write_whole
from labbook.errors import InputError, LabbookError, Stopped
from labbook.study.judging import check_grids
from labbook.study.progress import Progress

PROFILES = ("quick", "full")
# Consecutive failures with the same message that end the run: in an experiment with records, and in
# one without any.
ALIKE, ALIKE_AT_FIRST = 10, 2


class PointsFailed(LabbookError):
    """Points of a study failed; the message says which and why."""


class Run:
    """State of this process's run.

    Options are environment variables: LABBOOK_PROFILE (quick or full), LABBOOK_REMEASURE (measure
    stale points again), LABBOOK_UNTIL (epoch s: no point starts later), LABBOOK_PLAN (list what
    would be measured, and stop), LABBOOK_PUBLISHED (read data/published, measure nothing).
    """

    def __init__(self, study):
        self.study = study
        self.profile = os.environ.get("LABBOOK_PROFILE") or "quick"
        if self.profile not in PROFILES:
            raise InputError(f"no profile {self.profile!r}", key="LABBOOK_PROFILE",
                             allowed=PROFILES)
        self.published = _asked("LABBOOK_PUBLISHED")
        self.plan_only = _asked("LABBOOK_PLAN")
        self.until = _epoch("LABBOOK_UNTIL")
        self.remeasure = self.profile == "quick" or _asked("LABBOOK_REMEASURE")
        self.progress = Progress(study.name)
        self.paused = False
        self._outcomes = {}     # point key -> "done" | "failed", of this run's attempts
        self._alike = []        # equal messages of consecutive failures
        self._open = set()      # keys of points that the plan counted as to do
        self._works = set()     # names of experiments of which a point was ever recorded

    def begin(self, experiment) -> list:
        """The remaining points in order; none for published results or a plan.
        InputError for claims that do not fit the experiments."""
        check_grids(self.study, all_declared=False)
        if self.published:
            self.progress.plan(experiment.name, [], len(experiment), 0.0)
            return []
        records = self.study.records(experiment.name)
        if not self.plan_only:
            records.clean()
        metas = {p.key: records.meta(p.key) for p in experiment.points()}
        self._works |= {experiment.name} if any(metas.values()) else set()
        todo = [p for p in experiment.points() if not self._valid(metas[p.key])]
        self._open |= {p.key for p in todo}
        self.progress.plan(experiment.name, todo, len(experiment), _estimate(metas, len(todo)))
        return [] if self.plan_only else todo

    def _valid(self, meta) -> bool:
        return meta is not None and not (self.remeasure and self.is_stale(meta))

    def is_stale(self, meta: dict) -> bool:
        """Whether the code or the versions have changed since a record was made."""
        return bool(self.changed(meta))

    def changed(self, meta: dict) -> list[str]:
        """What is not as it was when a record was made: see Fingerprint.differs."""
        versions = meta["provenance"].get("versions", {})
        return self.study.fingerprint.differs(meta.get("fingerprint"), versions)

    def time_is_up(self, experiment) -> bool:
        if self.until is None or time.time() < self.until:
            return False
        self.paused = True
        self.progress.pause(experiment.name)
        return True

    def failed_now(self, point) -> bool:
        return self._outcomes.get(point.key) == "failed"

    def came_out(self, point, seconds: float) -> None:
        self._outcomes[point.key] = "done"
        self._alike = []
        self._works.add(point.experiment)
        self.progress.done(point, seconds, new=point.key in self._open)
        self._open.discard(point.key)

    def failed(self, point, seconds: float, message: str) -> None:
        self._outcomes[point.key] = "failed"
        self.progress.fail(point, seconds, message)
        self._alike = [m for m in self._alike if m == message] + [message]

    def is_hopeless(self, experiment: str) -> bool:
        """Whether to give up: ALIKE equal failures in a row, or ALIKE_AT_FIRST in an experiment
        without any record."""
        return len(self._alike) >= (ALIKE if experiment in self._works else ALIKE_AT_FIRST)

    def failures(self, experiment) -> list[dict]:
        records = self.study.records(experiment.name)
        found = ((p, records.failure(p.key)) for p in experiment.points())
        return [f for p, f in found if f and not self._valid(records.meta(p.key))]

    def check_complete(self) -> None:
        """Raise PointsFailed or Stopped when a planned point has no record."""
        if self.plan_only:
            raise Stopped("only the plan was requested")
        failures = [f for e in self.study.experiments.values() for f in self.failures(e)]
        if failures:
            raise PointsFailed(_listing(failures))
        missing = sum(not self._valid(self.study.records(e.name).meta(p.key))
                      for e in self.study.experiments.values() for p in e.points())
        if missing and self.paused:
            raise Stopped(f"the time is up with {missing} points to go; run again to go on")
        if missing:
            raise LabbookError(f"{missing} points were not measured: a loop over remaining() "
                               "ended early; run it again to go on")

    def write_grids(self) -> None:
        """Write which records this profile's last complete run used, for publishing."""
        for experiment in self.study.experiments.values():
            path = self.study.records(experiment.name).folder / f"{self.profile}.grid"
            text = "".join(f"{p.key}\n" for p in experiment.points())
            if not path.exists() or path.read_text() != text:
                make_folder(path.parent)
                write_whole(path, lambda file, text=text: file.write(text.encode()))


def _listing(failures) -> str:
    points = {}
    for failure in failures:
        points.setdefault(failure.get("message"), []).append(failure.get("label") or failure.get("key"))
    lines = [f"{message}\n  at {labels[0]}" + (f" and {len(labels) - 1} more" * (len(labels) > 1))
             for message, labels in points.items()]
    traces = [f"whole tracebacks: {f['traceback']}" for f in failures[:1] if f.get("traceback")]
    count = "1 point" if len(failures) == 1 else f"{len(failures)} points"
    return "\n".join([f"{count} failed", *lines, *traces])


def _estimate(metas: dict, todo: int) -> float | None:
    """Estimated seconds, from the duration of the experiment's earlier points."""
    took = [m["took_s"] for m in metas.values() if m and m.get("took_s") is not None]
    return statistics.median(took) * todo if took and todo else None if todo else 0.0


def _asked(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


def _epoch(name: str) -> float | None:
    text = os.environ.get(name)
    try:
        return float(text) if text else None
    except ValueError:
        raise InputError(f"{text!r} is no time", key=name, allowed="seconds since 1970") from None

"""One run of a study: its options, remaining points and outcomes."""

import os
import statistics
import time
from dataclasses import replace

from labbook.atomic_files import make_folder, write_whole
from labbook.claims.decisions import DECIDED
from labbook.errors import InputError, LabbookError, Stopped
from labbook.study import costs, fleet
from labbook.study.ask import Ask, survey
from labbook.study.judging import check_grids
from labbook.study.noise import Noise
from labbook.study.options import PROFILES, is_set
from labbook.study.progress import Progress
from labbook.study.publication import completed
from labbook.study.records.record import grid_text

# Numbers of consecutive failures with the same message after which a run stops: in an experiment with
# records, and in one without.
EQUAL_FAILURES, EQUAL_FAILURES_AT_FIRST = 10, 2


class PointsFailed(LabbookError):
    """Points of a study failed. The message lists them with their reasons."""


class Run:
    """State of this process's run.

    Options are environment variables: LABBOOK_PROFILE (quick or full), LABBOOK_REMEASURE (measure
    stale points again), LABBOOK_UNTIL (epoch s: no point starts later), LABBOOK_OVERTIME (epoch s: an
    experiment under way goes on after LABBOOK_UNTIL where it is expected to be complete by then), LABBOOK_PLAN
    (list the remaining points and stop), LABBOOK_PUBLISHED (read data/published, measure nothing), LABBOOK_ASK
    (measure a round of what claims need; see labbook.study.ask), LABBOOK_POINTS and LABBOOK_FLEET (of a machine
    of a fleet and of who drives it; see labbook.study.fleet).
    """

    def __init__(self, study):
        self.study = study
        self.profile = os.environ.get("LABBOOK_PROFILE") or "quick"
        if self.profile not in PROFILES:
            raise InputError(f"no profile {self.profile!r}", key="LABBOOK_PROFILE",
                             allowed=PROFILES)
        self.published = is_set("LABBOOK_PUBLISHED")
        self.plan_only = is_set("LABBOOK_PLAN")
        self.until, self.overtime = _epoch("LABBOOK_UNTIL"), _epoch("LABBOOK_OVERTIME")
        self.remeasure = self.profile == "quick" or is_set("LABBOOK_REMEASURE")
        self.ask = Ask.of_environment(study.name, [entry["id"] for entry in study.claim_entries])
        self.fleet, self.only = fleet.folder_of_environment(), fleet.points_of_environment()
        self.setups = {}        # of a run whose notebook is not executed here; see completed.setups
        self.progress = Progress(study.name)
        self.paused, self.noise = False, Noise()
        self._outcomes = {}     # point key -> "done" | "failed", of this run's attempts
        self._messages = []     # of consecutive failures, all equal
        self._planned = {}      # key of a point that the plan counted as remaining -> its experiment
        self._took = {}         # experiment -> seconds of the points that were measured now, without set-ups
        self._recorded = set()  # names of experiments with at least one record

    def begin(self, experiment) -> list:
        """The experiment's remaining points, in order; empty for published results or a plan.

        InputError for claims that do not fit the experiments.
        """
        check_grids(self.study, all_declared=False)
        if self.published:
            self.progress.plan(experiment.name, [], len(experiment), 0.0)
            return []
        records = self.study.records(experiment.name)
        if not self.plan_only:
            records.clean()
        wanted = self.wanted(experiment)
        metas = {p.key: records.meta(p.key) for p in wanted}
        for message in records.set_aside:
            self.progress.warn(message)
        self._recorded |= {experiment.name} if any(metas.values()) else set()
        todo = self._left(experiment, wanted, metas)
        self._planned |= dict.fromkeys((p.key for p in todo), experiment.name)
        self.progress.plan(experiment.name, todo, len(wanted), *self._seconds(experiment, todo, metas))
        if self.fleet and self.plan_only:
            self.progress.hand_out(experiment.name, fleet.to_hand_out(self.study, experiment, todo))
        if self.plan_only and todo and experiment.is_paired:
            self.progress.arms(experiment.name, experiment.arm_hosts.words())
        if self.fleet and todo:
            self.time_is_up(experiment)     # who drives a fleet measures nothing, so the loop does not ask
        return [] if self.plan_only or self.fleet else todo

    def _left(self, experiment, wanted, metas) -> list:
        """The points of `wanted` that are still to be measured. metas: {key: of a record, or None}."""
        left = [p for p in wanted if not self.is_valid(metas[p.key])]
        return fleet.with_mixed(self.study, experiment, wanted, left) if self.fleet else left

    def _missing(self, experiment) -> int:
        wanted, records = self.wanted(experiment), self.study.records(experiment.name)
        return len(self._left(experiment, wanted, {p.key: records.meta(p.key) for p in wanted}))

    def _seconds(self, experiment, todo, metas) -> tuple[float | None, bool]:
        """Estimated seconds of the remaining points, None if unknown, and whether they are of other parameters."""
        return costs.of_points(self.study, experiment, todo, metas) if todo else (0.0, False)

    def wanted(self, experiment) -> list:
        """The points of an experiment that this run is to have: the declared ones, a round's, or those of a machine
        of a fleet."""
        if self.only is not None:
            return fleet.chosen(experiment, self.only)
        return self.ask.wanted(experiment, self.study.claim_entries) if self.ask else experiment.declared()

    @property
    def makes_page(self) -> bool:
        """Whether the notebook goes on after study.complete(): not in a plan, a round, or on a machine of a fleet."""
        return not self.plan_only and self.only is None and (self.ask is None or self.ask.page)

    def is_valid(self, meta) -> bool:
        """Whether a record's metadata, or None, spare this run its measurement."""
        return meta is not None and not (self.remeasure and self.is_stale(meta))

    def is_stale(self, meta: dict) -> bool:
        """Whether the code or the versions have changed since a record was made."""
        return bool(self.changed(meta))

    def changed(self, meta: dict) -> list[str]:
        """What has changed since a record was made; see Fingerprint.differs. It is "code", too, where the notebook
        restarts systems for other parameters now, and of a damaged failure record, which does not say of which code
        it is."""
        versions = meta.get("provenance", {}).get("versions", {})
        found = self.study.fingerprint.differs(meta.get("fingerprint"), versions)
        return ["code", *found] if "code" not in found and self._is_set_up_otherwise(meta) else found

    def _is_set_up_otherwise(self, meta) -> bool:
        """Whether the set-up has other parameters than when a record was made: a point's key does not say which."""
        name = meta.get("experiment")
        experiment = self.study.experiments.get(name)
        names = completed.setup_names(experiment) if experiment else self.setups.get(name)
        return names is not None and set(meta.get("setup", names)) != set(names)

    def time_is_up(self, experiment) -> bool:
        """Whether LABBOOK_UNTIL has passed, and the experiment is not expected to be complete by LABBOOK_OVERTIME
        either; if so, the run is marked as paused."""
        if self.until is None or time.time() < self.until or self._ends_in_overtime(experiment.name):
            return False
        self.paused = True
        self.progress.pause(experiment.name)
        return True

    def _ends_in_overtime(self, experiment: str) -> bool:
        took, left = self._took.get(experiment), list(self._planned.values()).count(experiment)
        return bool(self.overtime and took) and time.time() + left * statistics.median(took) <= self.overtime

    def failed_now(self, point) -> bool:
        """Whether this run's latest attempt at the point failed."""
        return self._outcomes.get(point.key) == "failed"

    def succeeded(self, point, seconds: float, set_up_s: float = 0.0) -> None:
        """Count a point whose record was written; `seconds`: duration of its attempt; set_up_s: of that for the
        lab and the set-up."""
        self._outcomes[point.key] = "done"
        self._messages = []
        self._recorded.add(point.experiment)
        self.progress.done(point, seconds, new=point.key in self._planned, set_up_s=set_up_s)
        self._planned.pop(point.key, None)
        self._took.setdefault(point.experiment, []).append(seconds - set_up_s)

    def failed(self, point, seconds: float, message: str) -> None:
        """Count a failed attempt."""
        self._outcomes[point.key] = "failed"
        self.progress.fail(point, seconds, message)
        self._messages = [m for m in self._messages if m == message] + [message]

    def gives_up(self, experiment: str) -> bool:
        """Whether to stop: after EQUAL_FAILURES consecutive equal failures, or EQUAL_FAILURES_AT_FIRST
        in an experiment without any record."""
        return len(self._messages) >= (
            EQUAL_FAILURES if experiment in self._recorded else EQUAL_FAILURES_AT_FIRST)

    def failures(self, experiment, tried: bool = False) -> list[dict]:
        """The failure records of those points of an experiment without a valid record that this run is
        to have. tried: only of those that this run tried last. Another run's failures of earlier code or versions are
        left out."""
        records = self.study.records(experiment.name)
        each = ((p, records.failure(p.key)) for p in self.wanted(experiment) if not tried or self.failed_now(p))
        return [f for p, f in each if f and not self.is_valid(records.meta(p.key))
                and (self.failed_now(p) or not self.is_stale(f))]

    def check_complete(self) -> None:
        """Raise PointsFailed, Stopped or LabbookError when a planned point has no valid record, and
        Stopped at the end of a plan or a round."""
        if self.plan_only:
            if self.ask:
                self.progress.survey(survey(self.study)[0])
            raise Stopped("only the plan was requested")
        failures = [f for e in self.study.experiments.values() for f in self.failures(e, tried=self.paused)]
        if failures:
            raise PointsFailed(_listing(failures))
        missing = sum(map(self._missing, self.study.experiments.values()))
        if not self.makes_page and (self.paused or not missing):
            self._end_round(missing)
        if missing and self.paused:
            raise Stopped(f"the time limit passed with {missing} points left; run again to continue")
        if missing:
            why = ("no machine of the fleet has measured them" if self.fleet
                   else "a loop over remaining() ended early")
            raise LabbookError(f"{missing} points were not measured, since {why}; run it again to continue")

    def _end_round(self, missing: int):
        """Store the verdicts of the round's claims, report where they stand, and stop; after the last round go
        on to the page."""
        if self.only is not None:
            raise Stopped("the points are measured")
        found, verdicts = survey(self.study)
        self.study.store(verdicts)
        self.progress.survey(found)
        if missing or not self.ask.last or not all(one["verdict"] in DECIDED for one in verdicts):
            raise Stopped("the round is over")
        self.ask = replace(self.ask, page=True)

    def write_grids(self) -> None:
        """Write the keys of the points of this profile's complete run, of an ask those that it measured, and then
        which run it was; publishing reads them."""
        for experiment in self.study.experiments.values():
            records = self.study.records(experiment.name)
            path = records.folder / f"{self.profile}.grid"
            points = [p for p in experiment.points() if not self.ask or self.is_valid(records.meta(p.key))]
            text = grid_text([p.key for p in points])
            if not path.exists() or path.read_text() != text:
                make_folder(path.parent)
                write_whole(path, lambda file, text=text: file.write(text.encode()))
        completed.write(self.study)


def _listing(failures) -> str:
    points = {}
    for failure in failures:
        points.setdefault(failure.get("message"), []).append(failure.get("label") or failure.get("key"))
    lines = [f"{message}\n  at {labels[0]}" + (f" and {len(labels) - 1} more" * (len(labels) > 1))
             for message, labels in points.items()]
    traces = [f"full tracebacks: {f['traceback']}" for f in failures[:1] if f.get("traceback")]
    count = "1 point" if len(failures) == 1 else f"{len(failures)} points"
    return "\n".join([f"{count} failed", *lines, *traces])


def _epoch(name: str) -> float | None:
    text = os.environ.get(name)
    try:
        return float(text) if text else None
    except ValueError:
        raise InputError(f"{text!r} is not a time", key=name, allowed="seconds since 1970") from None

"""The machines of a fleet at work: jobs are handed out as machines get free, and their records come home.

One thread calls `step` again and again; others submit a study's jobs and wait for them.
"""

import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass, field

from labbook.errors import LabbookError
from labbook.pipeline.executing import pages
from labbook.pipeline.fleet import on_machine
from labbook.pipeline.fleet.scheduler import Scheduler
from labbook.pipeline.fleet.shown import in_a_line

POLL_S = 1.0            # between two looks at a machine that measures
LOST_FACTOR = 1.5       # of the patience: by then the machine has stopped what it did
ASKED_AGAIN = 3         # times, for a record that comes damaged
FULL = "disk is full"


@dataclass(frozen=True)
class Needs:
    """What a study's jobs are run with. fits(about a machine): why it cannot measure it, or None. until: no point
    begins later (epoch s), or None."""

    parameters: dict
    variables: dict
    fits: object
    until: float | None = None


@dataclass
class Batch:
    """Jobs of one study; `done` when all are measured or given up. failed: [(job, why)]."""

    study: str
    jobs: list
    own: list
    needs: Needs
    since: float = 0.0
    done: threading.Event = field(default_factory=threading.Event)
    failed: list = field(default_factory=list)


@dataclass
class Talk:
    """With one machine: the call under way, and its job. answered_s: when it last answered; called_s: when the call
    began. status: the last answer about its job. stop_noted: it has taken note that the job is to end."""

    engine: int
    id: str
    environment: str
    answered_s: float
    call: object = None
    then: object = None
    called_s: float = 0.0
    job_id: str | None = None
    have: dict = field(default_factory=dict)
    next: float = 0.0
    refused: int = 0        # answers in a row with a record that came damaged
    about: dict | None = None
    status: dict = field(default_factory=dict)
    stop_noted: bool = False


class Pool:
    """`engines`: see engines.py. home: where records go. environment_of(machine): its environment file. say(line):
    tells the user. restricted: {machine: the studies that it may measure, or None: all}. clock: for tests."""

    def __init__(self, engines, home, environment_of, say, patience_s, studies, by_repeat=False, restricted=None,
                 clock=time.time):
        self.scheduler = Scheduler(by_repeat)
        self.talks, self.batches = {}, {}
        self._engines, self._home, self._environment_of, self._say = engines, home, environment_of, say
        self._patience_s, self._studies, self._clock = patience_s, list(studies), clock
        self._restricted = restricted or {}
        self.measured = {}      # study -> {key of a point of which a record has come: its experiment}
        self._coming, self._refused, self._stopping = deque(), {}, False

    def submit(self, batch: Batch) -> Batch:
        """From any thread; batch.done is set when its jobs are over."""
        if batch.jobs:
            self._coming.append(batch)
        else:
            batch.done.set()
        return batch

    def step(self) -> None:
        """One look at everything; it waits for nothing."""
        now = self._clock()
        while self._coming:
            self._add(self._coming.popleft())
        there = self._engines.look()
        for name, who in there.items():
            if name not in self.talks or self.talks[name].engine != who["engine"]:
                self._greet(name, who, now)
        for name, talk in self.talks.items():
            self._talk(name, talk, name in there, now)
        self._finish()

    def stop(self) -> None:
        """Have all jobs end and their labs go down; `step` until `at_work` is empty. No further job begins."""
        self._stopping = True
        for talk in self.talks.values():
            talk.next = 0.0

    def at_work(self) -> list[str]:
        """Machines that measure, or did when they last answered."""
        return [name for name, talk in self.talks.items() if talk.job_id and not self._machine(name).lost]

    def _add(self, batch):
        if self._stopping:
            batch.done.set()
            return
        self.batches[batch.study], batch.since = batch, self._clock()
        self.scheduler.add(batch.jobs, {batch.study: batch.own})
        for name, talk in self.talks.items():
            if talk.about:
                self._machine(name).studies = self._fit(name, talk)

    def _machine(self, name):
        return self.scheduler.machines[name]

    def _greet(self, name, who, now):
        """A new engine: the first of its machine, or one in the place of one that died."""
        known = self.talks.get(name)
        if known is None:
            known = self.talks[name] = Talk(who["engine"], who["id"], self._environment_of(name), now)
            self.scheduler.join(name, who["id"], ())
        known.engine, known.call, known.next = who["engine"], None, 0.0

    def _cleaned(self, talk, lines):
        for line in lines:
            self._say(f"{self._name(talk)}: {line}")
        self._ask(talk, self._described, on_machine.about, self._studies)

    def _described(self, talk, about):
        name, talk.about, talk.job_id = self._name(talk), about, None
        if self._machine(name).lost:
            self._say(f"{name} is back")
        same = [other for other, one in self.talks.items() if one is not talk and one.id == talk.id and one.about]
        self.scheduler.join(name, talk.id, self._fit(name, talk))
        if same:
            self.scheduler.put_aside(name, f"it is the same machine as {same[0]}")
            self._say(f"{name} gets nothing to measure: it is the same machine as {same[0]}")

    def _fit(self, name, talk) -> frozenset:
        """The studies whose jobs a machine may have."""
        fitting = set()
        for study, batch in self.batches.items():
            why = batch.needs.fits(name, talk.about)
            if why is None:
                fitting.add(study)
                self._refused.pop((name, study), None)
            elif self._refused.get((name, study)) != why:
                self._refused[name, study] = why
                self._say(f"{name} does not measure {study}: {why}")
        return frozenset(fitting)

    def _name(self, talk) -> str:
        return next(name for name, one in self.talks.items() if one is talk)

    def _ask(self, talk, then, function, *arguments):
        talk.call, talk.then, talk.called_s = self._engines.call(talk.engine, function, *arguments), then, self._clock()

    def _talk(self, name, talk, there: bool, now):
        """Take the answer of a machine, or ask it something."""
        machine = self._machine(name)
        if talk.call is None and there:
            talk.answered_s = now
        elif talk.call is not None and talk.call.ready():
            call, then, talk.call, talk.then = talk.call, talk.then, None, None
            try:
                answer = call.get(timeout=1)
            except Exception as error:
                talk.next = now + POLL_S
                if there and _is_remote(error):
                    self._remote_error(name, talk, error, now)
            else:
                talk.answered_s = now
                then(talk, answer)
        if not machine.lost and now - talk.answered_s > self._patience_s * LOST_FACTOR and (talk.call or not there):
            self._lose(name, talk)
        if machine.lost:
            self._look_for(talk, there, now)
        elif talk.call is None and there and now >= talk.next:
            talk.next = now + POLL_S
            self._go_on(name, talk, now)

    def _go_on(self, name, talk, now):
        """Ask a machine that is there what comes next. One that does not answer is asked the same again."""
        if talk.about is None:
            self._ask(talk, self._cleaned, on_machine.clean)
        elif talk.job_id and self._stopping and not talk.stop_noted:
            self._ask(talk, self._stop_taken, on_machine.stop, talk.job_id)
        elif talk.job_id:
            self._ask(talk, self._polled, on_machine.poll, talk.job_id, talk.have)
        elif talk.about and not self._stopping:
            self._hand_out(name, talk, now)

    def _stop_taken(self, talk, _):
        talk.stop_noted, talk.next = True, 0.0

    def _look_for(self, talk, there, now):
        """Ask a machine that is lost, whose connection may be whole again."""
        if talk.call is not None and now - talk.called_s > self._patience_s:
            talk.call = None
        if talk.call is None and there and now >= talk.next:
            talk.next = now + self._patience_s / 4
            self._ask(talk, self._cleaned, on_machine.clean)

    def _remote_error(self, name, talk, error, now):
        """The machine answers, but cannot do it: its disk is full, or its checkout was changed."""
        talk.answered_s = now
        if self._machine(name).aside is None:
            why = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
            self._say(f"{name} gets nothing more to measure: {why}")
            job_id, talk.job_id, talk.about = talk.job_id, None, talk.about or {}
            self.scheduler.put_aside(name, why)
            if job_id:
                self._ask(talk, self._stop_taken, on_machine.stop, job_id)

    def _lose(self, name, talk):
        job = self.scheduler.lose(name)
        talk.job_id, talk.call, talk.about = None, None, None
        what = f"; {job.name} is measured elsewhere, or there once it is back" if job else ""
        self._say(f"{name} is lost: no answer for {self._patience_s * LOST_FACTOR:.0f} s{what}")

    def _hand_out(self, name, talk, now):
        job = self.scheduler.next(name, now)
        if job is None:
            return
        machine, needs = self._machine(name), self.batches[job.study].needs
        points = {job.experiment: [point.key for point in job.left(machine.id)]}
        for experiment, keys in _own_points(self.batches[job.study].own, machine.own_left).items():
            points.setdefault(experiment, []).extend(keys)
        talk.job_id, talk.have, talk.status = secrets.token_hex(8), {}, {}
        self._say(f"{name}: {job.name}, {len(job.left(machine.id))} points")
        self._ask(talk, self._started, on_machine.start, {
            "id": talk.job_id, "study": job.study, "parameters": needs.parameters | {"environment": talk.environment},
            "environment": talk.environment, "variables": needs.variables, "points": points,
            "seconds": None if needs.until is None else max(needs.until - now, 0.0), "patience_s": self._patience_s})

    def _started(self, talk, refused):
        if refused:     # another driver's job, or one of ours that ends: later
            talk.job_id, talk.next = None, self._clock() + self._patience_s / 4
            self.scheduler.give_back(self._name(talk))

    def _polled(self, talk, status):
        name, machine = self._name(talk), self._machine(self._name(talk))
        job, talk.status = machine.job, status
        try:
            whole = [self._take(name, job, one) for one in status["records"]]
        except LabbookError:        # the disk here is full: the records stay there
            if not self._stopping:
                raise
            status, whole = status | {"records": [], "more": False}, []
        talk.have |= {one["key"]: one["at"] for one, is_whole in zip(status["records"], whole) if is_whole}
        talk.refused = talk.refused + 1 if not all(whole) else 0
        if status["more"] or 0 < talk.refused < ASKED_AGAIN:
            talk.next = 0.0
        elif status["state"] != on_machine.RUNNING:
            talk.job_id = None
            self._ended(name, job, status)

    def _take(self, name, job, one) -> bool:
        """A record that has come: it is written, unless it is another machine's by now; False if it came damaged."""
        if job is None:
            return True
        is_here = any(point.machine and point.key == one["key"] for _, point in self.batches[job.study].own)
        if self.scheduler.wants(name, job.study, one["experiment"], one["key"]) and not is_here:
            if why := self._home.take(job.study, one["experiment"], one["key"], one["files"]):
                self._say(f"{name}: {why}")
                return False
            self.measured.setdefault(job.study, {})[one["key"]] = one["experiment"]
        self.scheduler.came(name, job.study, one["experiment"], one["key"], self._clock())
        return True

    def _ended(self, name, job, status):
        if job is None:
            return
        if self._stopping or self._time_is_up(job):
            self.scheduler.give_up(name)
            return
        if status["state"] == on_machine.UNKNOWN:     # it never began, or its disk is another's
            self.scheduler.give_back(name)
            return
        error = status.get("error")
        cut_short = status["state"] == on_machine.KILLED or status.get("outcome") == pages.INTERRUPTED
        left = (self.scheduler.killed if cut_short else self.scheduler.ended)(name, error)
        for one in status.get("failures", ()) if left else ():
            self._home.take_failure(job.study, one["experiment"], one["key"], one["failure"], one["trace"])
        if left is not None:
            again = "" if any(left is failed for failed, _ in self.scheduler.failed) else "; it is tried again"
            why = in_a_line(error or "records are missing")
            self._say(f"{name}: {left.name} {'was cut short' if cut_short else 'failed'}{again}: {why}")
        if error and FULL in error and self._machine(name).aside is None:
            self.scheduler.put_aside(name, in_a_line(error))
        if self._machine(name).aside:
            self._say(f"{name} gets nothing more to measure: {in_a_line(self._machine(name).aside)}")

    def _time_is_up(self, job) -> bool:
        until = self.batches[job.study].needs.until
        return until is not None and self._clock() >= until

    def _finish(self):
        """Tell those who wait for batches that are over."""
        now = self._clock()
        greeted = self.talks and all(talk.about is not None or self._machine(name).lost
                                     for name, talk in self.talks.items())
        stranded = {job.study for job in self.scheduler.stranded()} if greeted else set()
        for study, batch in list(self.batches.items()):
            if batch.done.is_set():
                continue
            if self._stopping or (batch.needs.until is not None and now >= batch.needs.until):
                self.scheduler.drop(study)
            elif study in stranded and now - batch.since > self._patience_s and not any(
                    self._could(name, study) for name in self.talks):
                batch.failed += [(job, "no machine of the fleet can measure it") for job in self.scheduler.waiting
                                 if job.study == study]
                self.scheduler.drop(study)
            if not self.scheduler.left(study):
                batch.failed += [(job, why) for job, why in self.scheduler.failed if job.study == study]
                self.scheduler.failed = [(job, why) for job, why in self.scheduler.failed if job.study != study]
                batch.done.set()

    def _could(self, name, study) -> bool:
        """Whether a machine that is lost may measure a study once it is back, as far as that is known."""
        machine, only = self._machine(name), self._restricted.get(name)
        return (machine.lost and not machine.aside and (name, study) not in self._refused
                and (only is None or study in only))


def _own_points(own, left) -> dict:
    """{experiment: keys} of what a machine measures for itself, of [(experiment, Point)]."""
    keys, found = {point.key for point in left}, {}
    for experiment, point in own:
        if point.key in keys:
            found.setdefault(experiment, []).append(point.key)
    return found


def _is_remote(error) -> bool:
    """Whether a call raised on the machine; otherwise its engine or the connection died."""
    import ipyparallel

    return isinstance(error, (LabbookError, ipyparallel.error.RemoteError)) and not isinstance(
        error, ipyparallel.error.EngineError) and getattr(error, "ename", "") != "EngineError"

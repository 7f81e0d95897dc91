"""`labbook run --fleet FILE` and `--cluster PROFILE`: studies measured by many machines at once.

Each study has a thread: it has its notebook executed to see what there is to measure, submits that, waits until
the records are home, and has the notebook executed again, which finds all of them. One pool serves all studies.
"""

import contextlib
import io
import json
import os
import sys
import threading
import time
from dataclasses import replace

from labbook.atomic_files import write_whole
from labbook.errors import InputError, LabbookError, LabError
from labbook.lab.local.cores import SHARE
from labbook.paths import LOCAL
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.driver import CLEAN_UP_SECONDS, Driver, Interrupts, Outcome, look
from labbook.pipeline.executing.progress import Bar, beside
from labbook.pipeline.fleet import plans, shown
from labbook.pipeline.fleet.file import LOST_AFTER_S, Fleet
from labbook.pipeline.fleet.fitness import Fitness
from labbook.pipeline.fleet.home import Home
from labbook.pipeline.fleet.pool import Batch, Needs, Pool
from labbook.pipeline.fleet.shown import in_a_line
from labbook.pipeline.running import asking, run, status, totals

FIRST_SECONDS = 90      # for the first machine to answer
STEP_S = 0.1
EXECUTIONS = threading.Semaphore(2)     # of notebooks here at a time


def run_fleet(names, options: run.Options, file=None, profile=None) -> int:
    """Measure on the machines of a fleet file, or of a running ipyparallel cluster; exit codes as run.run's."""
    fleet = Fleet.load(file) if file else None
    place = fleet.folder if fleet else _cluster_folder(profile)
    check_options(options)
    options = replace(options, fleet=place)
    jobs = {study: run.parameters_of(study, options) for study in run.chosen_studies(names, options)}
    asking.check_ids(jobs, options.which)
    todo = {study: chosen for study, chosen in jobs.items() if run.is_to_run(study, chosen, options)}
    run.check_files(todo)
    todo = {study: todo[study] for study in asking.with_claims(todo, options, named=bool(names))}
    for study, chosen in todo.items():
        check_local(study, chosen)
    states = _Run(todo, options, fleet, profile).all() if todo else []
    status.write()
    if current := [study for study in jobs if study not in todo]:
        print(f"{len(current)} of {len(jobs)} up to date: {', '.join(current)}", file=sys.stderr)
    return states if isinstance(states, int) else run.exit_code(states, _NoInterrupt)


class _NoInterrupt:
    count = 0


def check_options(options) -> None:
    """InputError for options that a fleet does not have."""
    if options.published:
        raise InputError("published results are measured by no fleet", key="--fleet",
                         allowed="without LABBOOK_PUBLISHED")
    if options.environment:
        raise InputError("a fleet's machines have environments of their own", key="--environment",
                         allowed="`environment` in the fleet file")


def check_local(study, chosen) -> None:
    """InputError for a study whose environment is no local one."""
    environment = run.environment_of(study, chosen)
    if environment and environment.provider != "namespaces":
        raise InputError("a fleet's machines bring up local labs", key=f"{study}: environment", allowed=LOCAL)


def _cluster_folder(profile: str) -> str:
    from labbook.study import fleet

    name = f"cluster-{profile}"
    if not fleet.NAME.fullmatch(name):
        raise InputError(f"{profile!r} is no name of a profile", key="--cluster", allowed="letters, digits and . _ -")
    return name


class _Run:
    """One run: `todo` is {study: parameters}."""

    def __init__(self, todo, options, fleet, profile):
        self._todo, self._options, self._fleet, self._profile = todo, options, fleet, profile
        self._display = shown.Shown()
        self._states, self._broken = {}, None
        self._failed = {}       # study -> [(job, why)]
        self._restricted = {one.name: one.studies for one in fleet.machines} if fleet else {}
        self._pool = None

    def all(self):
        """States of the studies, or 128 + signal after an interruption. Ends with nothing of it running anywhere."""
        self._fitness = Fitness(self._todo, self._restricted)
        engines = self._engines()
        try:
            with Interrupts() as interrupts:
                self._pool = Pool(engines, Home(self._options.fleet), self._environment_of, self._display.say,
                                  self._patience_s, self._todo, by_repeat=self._is_limited,
                                  restricted=self._restricted)
                self._wait_for_first(engines, interrupts)
                self._drive(interrupts)
                if self._broken:
                    raise self._broken
                return 128 + interrupts.signal if interrupts.count else list(self._states.values())
        finally:
            engines.close()
            self._display.end()

    def _engines(self):
        if self._fleet:
            from labbook.pipeline.fleet.own_cluster import OwnCluster

            return OwnCluster(self._fleet)
        from labbook.pipeline.fleet.engines import Profile

        engines = Profile(self._profile)
        if not engines.is_encrypted:
            self._display.say(
                f"warning: the cluster {self._profile} is not encrypted: start it with IPP_ENABLE_CURVE=1")
        engines.wait()
        return engines

    @property
    def _patience_s(self) -> float:
        return self._fleet.lost_after_s if self._fleet else LOST_AFTER_S

    def _environment_of(self, machine: str) -> str:
        own = {one.name: one.environment for one in self._fleet.machines} if self._fleet else {}
        return own.get(machine, LOCAL)

    def _wait_for_first(self, engines, interrupts):
        until = time.monotonic() + FIRST_SECONDS
        while not engines.look() and not interrupts.count:
            if time.monotonic() > until:
                if self._fleet is None:
                    raise LabError(f"no engine of the cluster {self._profile} answers",
                                   remedy="`ipcluster start` with this profile starts engines")
                why = "; ".join(f"{one.name}: {engines.why_not(one.name)}" for one in self._fleet.machines)
                raise LabError(f"no machine of the fleet answers: {why}",
                               remedy=f"labbook doctor --fleet {self._fleet.file} says what each lacks")
            time.sleep(STEP_S)

    def _drive(self, interrupts):
        """Step the pool while any study's thread is there; after an interrupt until no lab is up."""
        threads = [threading.Thread(target=self._study, args=(study, chosen, interrupts), daemon=True)
                   for study, chosen in self._todo.items()]
        for thread in threads:
            thread.start()
        stopped = None
        while any(thread.is_alive() for thread in threads) or (stopped and self._pool.at_work()):
            self._step()
            if stopped is None and (interrupts.count or self._broken):
                stopped = time.monotonic()
                self._pool.stop()
            if interrupts.count > 1 or (stopped and time.monotonic() - stopped > CLEAN_UP_SECONDS):
                return
            self._display.show(self._pool)
            time.sleep(STEP_S)
        with contextlib.suppress(LabbookError):     # a last look: what was measured meanwhile comes home
            self._pool.step()

    def _step(self):
        try:
            self._pool.step()
        except LabbookError as error:       # nothing can be written here any more
            self._broken = self._broken or error
        _write_state(self._options.fleet, self._pool, self._display)

    def _study(self, study, chosen, interrupts):
        try:
            with pages.only_me(study) as partial:
                self._states[study] = run.run_one(study, chosen, self._options, interrupts, partial, self._execute,
                                                  Bar(study, _Lines(sys.stderr)))
        except pages.Busy as busy:
            self._display.say(run.not_started(study, busy))
            self._states[study] = pages.FAILED
        except Exception as error:
            self._broken = self._broken or (error if isinstance(error, LabbookError) else LabbookError(
                f"{study}: unexpected {type(error).__name__}: {error}"))

    def _execute(self, study, chosen, options, asks, interrupts, partial, bar):
        """As run._execute, with what is left measured by the fleet first."""
        given = run.variables(study, options)
        if asks:
            answer = _Asking(self, study, chosen, partial, given, asks, options.until, bar).run(interrupts)
            outcome = self._with_failures(study, answer.outcome)
            return outcome, answer.story, answer.points, answer.board, answer.lab_time
        outcome, story = self._plan(study, chosen, partial, given, interrupts)
        if outcome.state != pages.PAUSED:
            totals.check_input(outcome)
            return outcome, story, story.points(), None, {}
        came = self.measure(study, chosen, given, story, options.until, partial)
        if interrupts.count or self._broken:
            points = story.points()
            return (Outcome(pages.INTERRUPTED), story, points | {"done": points["done"] + came, "measured": came},
                    None, {})
        driver = Driver(study, chosen, partial, given)
        with EXECUTIONS:
            outcome = driver.run(interrupts, bar.show)
        return (self._with_failures(study, outcome), driver.story, driver.story.points() | {"measured": came}, None, {})

    def _plan(self, study, chosen, partial, given, interrupts):
        with EXECUTIONS:
            return look(study, chosen, partial, given, interrupts)

    def measure(self, study, chosen, given, story, until, partial) -> int:
        """Have what a plan has left measured, and wait for it; the number of points of which a record came. Meanwhile
        the progress file of the study says how far it is, for `labbook status` and for after a kill."""
        before, began = len(self._pool.measured.get(study, ())), time.time()
        jobs, own = plans.of_profile(study, story, self._options.profile, chosen)
        points = plans.needed(jobs)
        if jobs and not self._broken:
            self._display.say(f"{study}: {points} points in {len(jobs)} jobs to measure")
            needs = Needs(chosen, _for_machines(given),
                          lambda name, about: self._fitness.why_not(name, study, about), until)
            batch = self._pool.submit(Batch(study, jobs, own, needs))
            try:
                while not batch.done.wait(STEP_S) and not self._broken:
                    _note_progress(beside(partial), began, self._options.profile, story,
                                   list(self._pool.measured.get(study, {}).values())[before:])
            finally:
                beside(partial).unlink(missing_ok=True)
            for job, why in batch.failed:
                self._display.say(f"{job.name} was not measured: {in_a_line(why)}")
            self._failed.setdefault(study, []).extend(batch.failed)
        return len(self._pool.measured.get(study, ())) - before

    def _with_failures(self, study, outcome) -> Outcome:
        """The outcome of a study, which is failed where a job failed of which points did not come afterwards: the
        driver measured nothing, so its notebook does not tell them from points for which there was no time."""
        came = self._pool.measured.get(study, ())
        failed = [(job, why) for job, why in self._failed.get(study, ())
                  if any(point.machine is None and point.key not in came for point in job.points)]
        if not failed or outcome.state not in (pages.OK, pages.PAUSED):
            return outcome
        words = "\n".join(f"{job.name}: {in_a_line(why)}" for job, why in failed)
        return Outcome(pages.FAILED, {"name": "PointsFailed", "message": words, "cell": None, "log": None})

    @property
    def _is_limited(self) -> bool:
        """Whether the command's time is limited, or by lab.yml that of a study."""
        asked = (asking.question(study, self._options) for study in self._todo)
        return self._options.until is not None or any(one and one.seconds for one in asked)

    def workers(self, study: str) -> float:
        """How many machines a study has, 1 at least: of each that may measure it, its share among the studies that are
        not over."""
        going_on = {study, *self._todo} - (self._states.keys() - {study})
        there = [one.name for one in list(self._pool.scheduler.machines.values()) if not one.lost and not one.aside]
        allowed = [going_on & set(self._restricted.get(name) or going_on) for name in there]
        return max(sum(1 / len(studies) for studies in allowed if study in studies), 1.0)


def _note_progress(file, began: float, profile: str, story, came: list[str]) -> None:
    """Write the progress file of a study that a fleet measures; came: the experiment of each record since the plan."""
    events = [{"event": "begin", "at_s": began, "profile": profile, "board": story.board}]
    events += [{"event": "plan", "experiment": name, "done": one["done"] + came.count(name), "total": one["total"]}
               for name, one in story.experiments.items()]
    text = "".join(f"{json.dumps(event)}\n" for event in events).encode()
    if not file.exists() or file.read_bytes() != text:
        write_whole(file, lambda out: out.write(text))


class _Asking(asking.Asking):
    """The rounds of a study whose repeats a fleet measures."""

    def __init__(self, of: _Run, study, chosen, partial, variables, asks, until, bar):
        super().__init__(study, chosen, partial, variables, asks, until, bar)
        self._of = of

    def next_round(self, round_s):
        """As on one machine, but in the same time the study's share of a fleet measures so many times as much."""
        workers, until = self._of.workers(self.study), self._time_is_up()
        following, board = self._chosen_round(until, round_s, workers)
        shorter = {"seconds": round(board["seconds"] / workers, 1),
                   "open": [one | {"seconds": round(one["seconds"] / workers, 1)} for one in board["open"]],
                   "cut": self._is_cut(following, until)}
        self.board = board | shorter
        return following

    def _execute(self, interrupts, repeats, claims=None, page=False, **more):
        came = 0
        if repeats and not interrupts.count:
            given = {**self._variables, **asking.variables(self.asks, repeats, claims)}
            outcome, story = self._of._plan(self.study, self._chosen, self._partial, given, interrupts)
            if outcome.state == pages.PAUSED:
                came = self._of.measure(self.study, self._chosen, given, story, self._stop, self._partial)
                self._measured += came
        with EXECUTIONS:
            outcome, story = super()._execute(interrupts, repeats, claims, page, **more)
        story.measured += came      # which an answer to a round that is cut short counts
        return (Outcome(pages.INTERRUPTED) if self._of._broken else outcome), story


class _Lines(io.TextIOBase):
    """A stream that is no terminal, since several studies write to it."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        return self._stream.write(text)

    def flush(self):
        self._stream.flush()

    def isatty(self):
        return False


def _for_machines(given: dict) -> dict:
    """Variables of a kernel on a machine: it measures points, whatever they are for."""
    variables = {name: value for name, value in given.items() if name in ("LABBOOK_PROFILE", "LABBOOK_REMEASURE")}
    return variables | ({SHARE: os.environ[SHARE]} if os.environ.get(SHARE) else {})


_written = [0.0]


def _write_state(place: str, pool, show) -> None:
    """build/fleet.json, which `labbook status` shows while it is fresh."""
    if time.monotonic() - _written[0] >= 1:
        _written[0] = time.monotonic()
        with contextlib.suppress(LabbookError):
            status.write_fleet(place, shown.rows(pool), show.left_s(pool))

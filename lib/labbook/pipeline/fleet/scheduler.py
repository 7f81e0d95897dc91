"""Which machine of a fleet measures what next. Pure: no clock, no network; the same code drives a simulation.

A job is what is left of one repeat of one experiment: blocks, each a set-up with its measures. All of a repeat
is measured on one machine, so that rules compare what one machine measured. A machine that is free gets a job;
of a machine that is lost, its job is given to another, whole.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

TRIES = 2           # of a job, on different machines where there are several
KILLS = 3           # of a job's process, after which the job is to blame
IN_A_ROW = 2        # failed jobs, after which a machine gets no more while others are there


@dataclass(frozen=True)
class Point:
    """`setup`: what it shares with the points of its block. machine: that has a valid record of it, or None."""

    key: str
    setup: str
    setup_s: float = 0.0
    point_s: float = 0.0
    machine: str | None = None


@dataclass(frozen=True)
class Job:
    """The points of one repeat of an experiment."""

    study: str
    experiment: str
    repeat: int
    points: tuple

    @property
    def name(self) -> str:
        return f"{self.study}: {self.experiment} repeat {self.repeat}"

    @property
    def home(self) -> str | None:
        """The machine that has measured most of it, None if nothing is."""
        counts = Counter(point.machine for point in self.points if point.machine)
        return counts.most_common(1)[0][0] if counts else None

    def left(self, machine: str) -> list:
        """The points that this machine has to measure: on another one than `home` all of them."""
        return [point for point in self.points if point.machine != machine]

    def seconds(self, machine: str) -> float:
        """Expected, set-ups included."""
        return seconds(self.left(machine))

    def without(self, key: str, machine: str) -> "Job":
        """The job once this machine has measured a point of it."""
        return replace(self, points=tuple(replace(one, machine=machine) if one.key == key else one
                                          for one in self.points))


def seconds(points, up: str | None = None) -> float:
    """Expected seconds of measuring points, a set-up for each block but the one that is `up`."""
    setups = {point.setup: point.setup_s for point in points if point.setup != up}
    return sum(point.point_s for point in points) + sum(setups.values())


@dataclass
class Machine:
    """`name`: in the fleet; `id`: of its records. studies: those that it can run, None: all. own: {study: keys of
    what each machine measures for itself that it has}. last: when the last record of it came, or its job began."""

    name: str
    id: str
    studies: frozenset | None = None
    lost: bool = False
    aside: str | None = None        # why it gets no more jobs
    job: Job | None = None
    own_left: tuple = ()            # of its job: points that it measures for itself first
    up: str | None = None           # of its job: the set-up of the point whose record came last
    last: float = 0.0
    in_a_row: int = 0
    own: dict = field(default_factory=dict)
    done: int = 0                   # points

    def seconds(self) -> float:
        """Expected of what is left of its job, and of what it measures for itself first."""
        return seconds(self.job.left(self.id), self.up) + seconds(self.own_left, self.up)

    def fits(self, study: str) -> bool:
        return self.studies is None or study in self.studies


class Scheduler:
    """The jobs and machines of a run. by_repeat: the first repeats first, for a run whose time is limited;
    otherwise the longest jobs, so that none is left alone at the end."""

    def __init__(self, by_repeat: bool = False):
        self.machines, self.waiting, self.failed, self.by_repeat = {}, [], [], by_repeat
        self._own = {}          # study -> points that each machine measures for itself
        self._tried = {}        # name of a job -> ids of the machines that failed at it
        self._kills = Counter()     # of each job's process

    def add(self, jobs, own=None) -> None:
        """More jobs. own: {study: [(experiment, Point)] that each machine measures for itself before its first
        job}."""
        self.waiting += jobs
        self._own |= {study: tuple(point for _, point in points) for study, points in (own or {}).items()}

    def join(self, name: str, id: str, studies=None) -> Machine:
        """A machine is there, or is back: it is free, whatever it did."""
        studies = None if studies is None else frozenset(studies)
        known = self.machines.get(name)
        if known is None:
            known = self.machines[name] = Machine(name, id, studies)
        elif known.job:
            self.lose(name)
        known.lost, known.id, known.studies = False, id, studies
        return known

    def lose(self, name: str) -> Job | None:
        """A machine does not answer any more: its job waits again, unless all of it is measured. It is the machine's
        still if that comes back before another is free."""
        machine = self.machines[name]
        machine.lost, job = True, machine.job
        self.give_back(name)
        return job

    def next(self, name: str, now: float = 0.0) -> Job | None:
        """A job for a machine that is free, None if there is none for it."""
        machine = self.machines[name]
        if machine.lost or machine.aside or machine.job:
            return None
        job = self._choose(machine)
        if job is None:
            return None
        self.waiting = [other for other in self.waiting if other is not job]
        machine.job, machine.last, machine.up = job, now, None
        measured = machine.own.get(job.study, frozenset())
        machine.own_left = tuple(point for point in self._own.get(job.study, ()) if point.key not in measured)
        return job

    def _choose(self, machine) -> Job | None:
        """Its own half-measured repeats; then of the study that it has its ceilings of, or else of that with most
        to do for each machine; last what another machine has half measured and is not there to go on with."""
        fitting = [(job, job.home) for job in self.waiting if machine.fits(job.study) and self._may(machine, job)]
        own = [job for job, home in fitting if home == machine.id]
        fresh = [job for job, home in fitting if home is None]
        orphans = [job for job, home in fitting if home not in (None, machine.id) and not self._has_home(job, home)]
        for jobs in (own, fresh, orphans):
            if jobs:
                return min(self._of_study(machine, jobs), key=lambda job: self._order(machine, job))
        return None

    def _has_home(self, job, home: str) -> bool:
        """Whether the machine that has measured most of it is there and may go on with it."""
        return any(one.id == home and self._may(one, job) for one in self._there(job.study))

    def _may(self, machine, job) -> bool:
        """Not a second time where it failed, if another machine may try."""
        tried = self._tried.get(job.name, ())
        return machine.id not in tried or all(one.id in tried for one in self._there(job.study))

    def _there(self, study: str) -> list:
        """The machines that may be given jobs of a study, now or when they are free."""
        return [one for one in self.machines.values() if not one.lost and not one.aside and one.fits(study)]

    def _of_study(self, machine, jobs) -> list:
        sticky = [job for job in jobs if not self._own.get(job.study) or machine.own.get(job.study)]
        if sticky:
            return sticky
        at_it = Counter(one.job.study for one in self.machines.values() if one.job)
        most = Counter()
        for job in jobs:
            most[job.study] += job.seconds(machine.id)
        study = max(most, key=lambda study: most[study] / (1 + at_it[study]))
        return [job for job in jobs if job.study == study]

    def _order(self, machine, job):
        long = -job.seconds(machine.id)
        return (job.repeat, long, job.name) if self.by_repeat else (long, job.repeat, job.name)

    def wants(self, name: str, study: str, experiment: str, key: str) -> bool:
        """Whether the record of a point is wanted of a machine, also one that was measured again since it came. It is
        not if the point is another machine's by now, and a second time of what each machine measures for itself."""
        machine = self.machines[name]
        if self._is_own(study, key):
            return not any(key in one.own.get(study, ()) for one in self.machines.values())
        job = machine.job
        return (job is not None and (job.study, job.experiment) == (study, experiment)
                and key in {point.key for point in job.points})

    def came(self, name: str, study: str, experiment: str, key: str, now: float = 0.0) -> bool:
        """A machine has measured a point; whether its record was wanted."""
        machine, wanted = self.machines[name], self.wants(name, study, experiment, key)
        is_own = self._is_own(study, key)
        if is_own or wanted:
            machine.last, machine.up = max(machine.last, now), self._setup(machine, study, key)
        if is_own:
            machine.own[study] = machine.own.get(study, frozenset()) | {key}
            machine.own_left = tuple(point for point in machine.own_left if point.key != key)
        elif wanted:
            machine.done += key in {point.key for point in machine.job.left(machine.id)}
            machine.job = machine.job.without(key, machine.id)
        return wanted

    def _setup(self, machine, study, key) -> str | None:
        points = [*self._own.get(study, ()), *(machine.job.points if machine.job else ())]
        return next((point.setup for point in points if point.key == key), None)

    def _is_own(self, study, key) -> bool:
        return any(point.key == key for point in self._own.get(study, ()))

    def ended(self, name: str, error: str | None = None) -> Job | None:
        """A machine's job is over: None if all of it is measured, or the job, which waits again or has failed for
        good. error: why it did not end well."""
        machine = self.machines[name]
        job, own_left = machine.job, machine.own_left
        self._free(machine)
        if job is None:
            return None
        if not job.left(machine.id) and not (error and (own_left or not job.points)):
            machine.in_a_row = 0
            self._forget(job)
            return None
        self._tried.setdefault(job.name, []).append(machine.id)
        if len(self._tried[job.name]) < TRIES:
            machine.in_a_row += 1
            self.waiting.append(job)
        else:       # whichever machine it fails on: the job is to blame
            self._forgive(self._tried[job.name][:-1])
            self.failed.append((job, error or "it ended without all of its records"))
            self._forget(job)
        if machine.in_a_row >= IN_A_ROW and self._others(machine):
            machine.aside = error or "its jobs end without their records"
        return job

    def _forgive(self, ids) -> None:
        for machine in self.machines.values():
            if machine.id in ids and machine.in_a_row:
                machine.in_a_row -= 1

    def _forget(self, job) -> None:
        """A job of this name may come again, in another round."""
        self._tried.pop(job.name, None)
        self._kills.pop(job.name, None)

    def killed(self, name: str, error: str) -> Job | None:
        """A machine's job was cut short, by a reboot or without contact: it goes on there. See `ended`."""
        job = self.machines[name].job
        if job is None:
            return None
        self._kills[job.name] += 1
        if self._kills[job.name] >= KILLS:
            del self._kills[job.name]
            return self.ended(name, error)
        self.give_back(name)
        return job

    def give_back(self, name: str) -> None:
        """A machine has its job no more: it waits again, unless all of it is measured."""
        machine = self.machines[name]
        job, own_left = machine.job, machine.own_left
        self._free(machine)
        if job is not None and (job.left(machine.id) if job.points else own_left):
            self.waiting.append(job)

    def give_up(self, name: str) -> None:
        """A machine's job ended since it was to end; nothing is to be done about it."""
        self._free(self.machines[name])

    def put_aside(self, name: str, why: str) -> None:
        """A machine gets no more jobs; the one that it has waits again. The job is not to blame."""
        machine = self.machines[name]
        machine.aside = why
        self.give_back(name)

    def drop(self, study: str) -> None:
        """The study's waiting jobs are wanted no more."""
        self.waiting = [job for job in self.waiting if job.study != study]

    def stranded(self) -> list:
        """Waiting jobs that no machine which is there may take."""
        return [job for job in self.waiting if not self._there(job.study)]

    def left(self, study: str) -> int:
        """How many jobs of a study wait or are measured."""
        return sum(job.study == study for job in self.jobs())

    def jobs(self) -> list:
        return [*self.waiting, *(one.job for one in self.machines.values() if one.job)]

    def _others(self, machine) -> bool:
        return any(one is not machine and not one.lost and not one.aside for one in self.machines.values())

    def _free(self, machine):
        machine.job, machine.own_left = None, ()

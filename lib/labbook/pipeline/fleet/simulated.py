"""A run of a fleet by the expected seconds of its jobs: how long it takes, and what its machines do meanwhile.

It drives the scheduler that hands out real jobs, so it also says how much time is left of a run.
"""

import copy
import heapq
from dataclasses import dataclass

from labbook.pipeline.fleet import scheduler


@dataclass(frozen=True)
class Simulated:
    """`seconds`: until the last job ends. busy_s: of all machines together, own_s of it what each measures for
    itself. longest_s: the longest job, which no number of machines makes shorter."""

    seconds: float
    busy_s: float
    own_s: float
    longest_s: float

    def used(self, machines: int) -> float:
        """The share of the machines' time in which they measure."""
        return self.busy_s / (machines * self.seconds) if self.seconds else 1.0


def simulate(of: scheduler.Scheduler, speeds=None, now: float = 0.0) -> Simulated:
    """Run a scheduler's jobs to their end; it is left as it is. speeds: {machine: how many times as fast}.

    A machine with a job has been at work on what is left of it since `last`. Jobs that no machine takes are left out.
    """
    of, ends = _copied(of), []
    busy = own_s = last = 0.0
    longest = max((job.seconds(job.home or "") for job in of.jobs()), default=0.0)
    for name, machine in of.machines.items():
        if machine.job:
            left = max(_seconds(machine, speeds) - (now - machine.last), 0.0)
            heapq.heappush(ends, (left, name))
            busy += left
    time = 0.0
    while True:
        for name, machine in of.machines.items():
            if of.next(name, now + time):
                took = _seconds(machine, speeds)
                own_s += scheduler.seconds(machine.own_left) / _speed(machine, speeds)
                busy += took
                heapq.heappush(ends, (time + took, name))
        if not ends:
            return Simulated(last, busy, own_s, longest)
        time, name = heapq.heappop(ends)
        last = time
        _finish(of, name)


def _finish(of, name):
    machine = of.machines[name]
    job = machine.job
    for point in machine.own_left:
        of.came(name, job.study, job.experiment, point.key)
    for point in job.left(machine.id):
        of.came(name, job.study, job.experiment, point.key)
    of.ended(name)


def _copied(of):
    copied = copy.copy(of)
    copied.machines = {name: copy.copy(machine) for name, machine in of.machines.items()}
    for machine in copied.machines.values():
        machine.own = dict(machine.own)
    copied.waiting, copied.failed = list(of.waiting), list(of.failed)
    copied._kills = of._kills.copy()
    copied._tried = {name: list(tried) for name, tried in of._tried.items()}
    return copied


def _seconds(machine, speeds) -> float:
    return machine.seconds() / _speed(machine, speeds)


def _speed(machine, speeds) -> float:
    return (speeds or {}).get(machine.name, 1.0)

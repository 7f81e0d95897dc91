"""`labbook run --fleet FILE --dry-run`: what a fleet has to measure, and how long it takes,
without a word to a machine.

Each notebook is executed once without measuring. The jobs then go through the scheduler of a real run, whose
machines are as fast as this one; time is added up instead of waited for.
"""

import sys
from dataclasses import replace

from labbook.errors import InputError
from labbook.pipeline.executing.driver import Interrupts
from labbook.pipeline.executing.progress import duration
from labbook.pipeline.fleet import plans
from labbook.pipeline.fleet.file import Fleet
from labbook.pipeline.fleet.run import check_local, check_options
from labbook.pipeline.fleet.scheduler import Scheduler, seconds
from labbook.pipeline.fleet.simulated import simulate
from labbook.pipeline.running import asking, run
from labbook.pipeline.running.plan import tried


def plan(names, options: run.Options, file) -> int:
    """Print it; exit codes as those of the plan for one machine. InputError for options that have no such plan."""
    why = "the number of repeats that decide a claim is not known before the run"
    no_plan = InputError(why, key="--dry-run", allowed=(
        "with --profile full and without --until-decided, or without --fleet: the estimate for one machine"))
    if options.which:
        raise no_plan
    fleet = Fleet.load(file)
    check_options(options)
    options = replace(options, fleet=fleet.folder)
    jobs = {study: run.parameters_of(study, options) for study in run.chosen_studies(names, options)}
    run.check_files(jobs)
    if any(asking.question(study, options) for study in jobs):    # the quick profile asks, too
        raise no_plan
    found, states = {}, []
    with Interrupts("stopping") as interrupts:
        for study, chosen in jobs.items():
            check_local(study, chosen)
            print(f"{study}: looking what there is to measure", file=sys.stderr, flush=True)
            state, story, why = tried(study, chosen, options, interrupts)
            if interrupts.count:
                return 128 + interrupts.signal
            states.append(state)
            if why:
                print(f"{study}: no plan: {why}", file=sys.stderr)
            found[study] = ([], []) if why else unmeasured(study, story, options.profile, chosen)
    print("\n".join(lines(fleet, found)))
    return run.exit_code(states, interrupts)


def unmeasured(study: str, story, profile: str, chosen: dict | None = None) -> tuple[list, list]:
    """As plans.of_profile, without the points that some machine has measured."""
    jobs, own = plans.of_profile(study, story, profile, chosen)
    left = [replace(job, points=tuple(point for point in job.points if not point.machine)) for job in jobs]
    return [job for job in left if job.points], own


def lines(fleet: Fleet, found: dict):
    """The plan in words: all together, then a line a study, then the machines. found: {study: (jobs, own)}."""
    scheduler, alone = Scheduler(), Scheduler()
    for of in (scheduler, alone):
        for study, (jobs, own) in found.items():
            of.add(jobs, {study: own})
    for machine in fleet.machines:
        scheduler.join(machine.name, machine.name, machine.studies)
    alone.join("one", "one")
    expected, one = simulate(scheduler), simulate(alone)
    jobs = [job for jobs, _ in found.values() for job in jobs]
    unfit = sorted({job.study for job in jobs if not any(each.fits(job.study) for each in scheduler.machines.values())})
    yield (f"{fleet.file}: {_count(len(fleet.machines), 'machine')}, "
           f"{_count(sum(len(job.points) for job in jobs), 'point')} in {_count(len(jobs), 'job')} to measure, about "
           f"{duration(expected.seconds)} (one machine: {duration(one.seconds)})")
    for study, (of_study, own) in found.items():
        yield f"  {study}: {_of_study_in_words(of_study, [point for _, point in own] if of_study else [])}"
    if jobs:
        longest = max(jobs, key=lambda job: job.seconds(""))
        yield f"  longest job: {longest.name}, {duration(longest.seconds(''))}; no number of machines is faster"
    for study in unfit:
        yield f"  {study}: no machine of the file may measure it (`studies`)"
    yield "  machines are taken to be as fast as this one; `labbook doctor --fleet` looks at them"


def _of_study_in_words(jobs, own) -> str:
    alone = sum(job.seconds("") for job in jobs) + seconds(own)
    itself = f", and each machine {_count(len(own), 'point')} for itself first" if own else ""
    return (f"{_count(sum(len(job.points) for job in jobs), 'point')} in {_count(len(jobs), 'job')}, "
            f"{duration(alone)} of one machine{itself}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"

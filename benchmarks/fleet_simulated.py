"""How long full profiles take on a fleet of one to a hundred machines, and where that stops to scale.

    .venv/bin/python benchmarks/fleet_simulated.py [--profile full] [--short] [--json data/benchmarks/simulated/fleet.json] [STUDY ...]

Each notebook is executed once without measuring, which says what there is to measure and what its points and
set-ups took in published runs; points of which nothing is known share the minutes of the profile in lab.yml. The
jobs then go through the scheduler that `labbook run --fleet` uses, and time is added up instead of waited for.
The book's page "Many machines" has the file that --json names here. It needs no lab and no root.
"""

import tempfile

import shared

from labbook import paths
from labbook.errors import LabError
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.driver import Interrupts, look
from labbook.pipeline.executing.progress import duration
from labbook.pipeline.fleet.plan import unmeasured
from labbook.pipeline.fleet.scheduler import Scheduler, seconds
from labbook.pipeline.fleet.simulated import simulate
from labbook.pipeline.sources import notebooks, parameters

SIZES = (1, 2, 3, 5, 10, 20, 30, 50, 100)


def main():
    made = shared.parser(__doc__, rounds=1)
    made.add_argument("studies", nargs="*", metavar="STUDY", help="default: all")
    made.add_argument("--profile", default="full", choices=parameters.PROFILES)
    args = made.parse_args()
    sizes = (1, 2, 10) if args.short else SIZES
    studies = notebooks.selected(args.studies)[:1 if args.short and not args.studies else None]
    found = {study: plan(study, "quick" if args.short else args.profile) for study in studies}
    rows = {size: run(found, size) for size in sizes}
    print_plans(found)
    print_sizes(rows)
    shared.write(args.json, sizes={size: vars(one) for size, one in rows.items()})


def plan(study: str, profile: str):
    """(jobs, what each machine measures for itself) of a study of which nothing is recorded."""
    with tempfile.TemporaryDirectory() as nothing, Interrupts() as interrupts, pages.only_me(study) as partial:
        variables = {"LABBOOK_ROOT": str(paths.checkout()), "LABBOOK_PROFILE": profile,
                     "LABBOOK_FLEET": "fleet-simulated", "LABBOOK_RECORDS": nothing, "JUPYTER_PLATFORM_DIRS": "1"}
        outcome, story = look(study, parameters.chosen(study, profile), partial, variables, interrupts)
    if outcome.state != pages.PAUSED:
        raise LabError(f"{study}: no plan: {outcome.message() if outcome.error else outcome.state}")
    return unmeasured(study, story, profile)


def run(found: dict, size: int):
    """Simulate all studies on so many equal machines."""
    scheduler = Scheduler()
    for study, (jobs, own) in found.items():
        scheduler.add(jobs, {study: own})
    for number in range(size):
        scheduler.join(f"m{number}", f"m{number}")
    return simulate(scheduler)


def print_plans(found) -> None:
    print(f"{'study':<24}{'repeats':>9}{'points':>9}{'one machine':>16}{'longest repeat':>18}"
          f"{'each machine, itself':>24}")
    for study, (jobs, own) in found.items():
        longest = max(jobs, key=lambda job: job.seconds(""), default=None)
        print(f"{study:<24}{len(jobs):>9}{sum(len(job.points) for job in jobs):>9}"
              f"{duration(sum(job.seconds('') for job in jobs)):>16}"
              f"{duration(longest.seconds('')) if longest else '':>18}{duration(seconds([p for _, p in own])):>24}")


def print_sizes(rows) -> None:
    print(f"\n{'machines':>8}{'time':>16}{'times as fast':>16}{'of them measure':>18}{'their own ceilings':>21}")
    one = rows[min(rows)].seconds
    for size, each in rows.items():
        print(f"{size:>8}{duration(each.seconds):>16}{one / each.seconds:>16.1f}{each.used(size):>18.0%}"
              f"{each.own_s / each.busy_s:>21.0%}")
    print(f"\nThe longest repeat takes {duration(max(each.longest_s for each in rows.values()))}: "
          "no number of machines is faster.")


if __name__ == "__main__":
    shared.run(main)

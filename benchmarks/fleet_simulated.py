"""How long full profiles take on a fleet of one to a hundred machines, and where that stops to scale.

    .venv/bin/python benchmarks/fleet_simulated.py [--profile full] [--figure FILE] [--short] [--json FILE] [STUDY ...]

Each notebook is executed once without measuring, which says what there is to measure and what its points and
set-ups took in published runs; points of which nothing is known share the minutes of the profile in lab.yml. The
jobs then go through the scheduler that `labbook run --fleet` uses, and time is added up instead of waited for.
It needs no lab and no root.
"""

import os
import tempfile
from pathlib import Path

import shared

from labbook import paths
from labbook.checks import load_yaml
from labbook.errors import LabError
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.driver import Driver, Interrupts
from labbook.pipeline.executing.progress import duration
from labbook.pipeline.fleet import plans
from labbook.pipeline.fleet.scheduler import Scheduler, seconds
from labbook.pipeline.fleet.simulated import simulate
from labbook.pipeline.sources import notebooks, parameters

SIZES = (1, 2, 3, 5, 10, 20, 30, 50, 100)


def main():
    made = shared.parser(__doc__, rounds=1)
    made.add_argument("studies", nargs="*", metavar="STUDY", help="default: all")
    made.add_argument("--profile", default="full", choices=parameters.PROFILES)
    made.add_argument("--figure", type=Path, metavar="FILE", help="write the figure of the book's page there, as HTML")
    asked = made.parse_args()
    sizes = (1, 2, 10) if asked.short else SIZES
    studies = notebooks.selected(asked.studies)[:1 if asked.short and not asked.studies else None]
    found = {study: plan(study, "quick" if asked.short else asked.profile) for study in studies}
    rows = {size: run(found, size) for size in sizes}
    print_plans(found)
    print_sizes(rows)
    if asked.figure:
        asked.figure.write_text(figure(rows) + "\n")
    shared.write(asked.json, sizes={size: vars(one) for size, one in rows.items()})


def plan(study: str, profile: str):
    """(jobs, what each machine measures for itself) of a study of which nothing is recorded."""
    with tempfile.TemporaryDirectory() as nothing, Interrupts() as interrupts, pages.only_me(study) as partial:
        variables = {"LABBOOK_ROOT": str(paths.checkout()), "LABBOOK_PROFILE": profile, "LABBOOK_PLAN": "1",
                     "LABBOOK_FLEET": "fleet-simulated", "LABBOOK_RECORDS": nothing, "JUPYTER_PLATFORM_DIRS": "1"}
        driver = Driver(study, parameters.chosen(study, profile), partial, variables)
        outcome = driver.run(interrupts)
        partial.unlink(missing_ok=True)
    if outcome.state != pages.PAUSED:
        raise LabError(f"{study}: no plan: {outcome.message() if outcome.error else outcome.state}")
    minutes = load_yaml(paths.papers(study) / "lab.yml").get("needs", {}).get("minutes", {}).get(profile)
    share = 60 * minutes / driver.story.total if minutes and driver.story.total else None
    return plans.jobs(study, driver.story, share)


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


def figure(rows) -> str:
    """Time by the number of machines, both logarithmic, beside what it would be if no machine ever waited."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator

    from labbook.figures.canvas import PALETTE, Picture, entitle, entry, head, panel, theme

    sizes, hours = list(rows), [each.seconds / 3600 for each in rows.values()]
    longest = max(each.longest_s for each in rows.values()) / 3600
    with theme():
        drawn = Figure(figsize=(6.4, 3.8), layout="constrained")
        axes = drawn.subplots()
        axes.set(xscale="log", yscale="log", xlabel="machines", ylabel="hours until all is measured")
        axes.plot(sizes, [hours[0] / size for size in sizes], color=PALETTE[1], linestyle="--")
        axes.axhline(longest, color=PALETTE[2], linestyle=":")
        axes.plot(sizes, hours, color=PALETTE[0])
        marks = axes.scatter(sizes, hours, color=PALETTE[0], zorder=3)
        entitle(marks, [f"{size} machines: {hour:.1f} h" for size, hour in zip(sizes, hours)])
        for axis, ticks in ((axes.xaxis, sizes), (axes.yaxis, [1, 2, 5, 10, 20, 50, 100, 200])):
            axis.set_major_locator(FixedLocator(ticks))
            axis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.set_minor_locator(NullLocator())
        head(drawn, "Full profiles of five studies", [
            entry("simulated", PALETTE[0], "o"), entry("if no machine ever waited", PALETTE[1], None),
            entry("the longest repeat", PALETTE[2], None)])
        alt = "Hours until all is measured, by machines: " + ", ".join(
            f"{size}: {hour:.1f} h" for size, hour in zip(sizes, hours))
        return Picture((panel(drawn, alt),), "")._repr_html_()


if __name__ == "__main__":
    os.environ.pop("LABBOOK_RECORDS", None)
    shared.run(main)

"""`labbook run --dry-run`: points, time and resources of a run, and its actions as root on this
machine or on each host of the environment."""

import math
import sys
import time
from dataclasses import dataclass, replace

from labbook import paths
from labbook.lab.description import LabDescription
from labbook.lab.quantities import size_text
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.driver import Interrupts, look
from labbook.pipeline.executing.progress import RunState, duration
from labbook.pipeline.running import asking, root_actions, run, totals
from labbook.pipeline.setup import doctor, install, own_clouds, own_hosts, requirements

MEASURED, OF_LAB_YML = "from points measured before", "from the study's lab.yml"
OF_OTHERS = "from points measured before with other parameters"
OF_EXPERIMENTS = "from published points of other experiments"
FURTHER = 1.5       # times what the next points take: from there on a run is said to measure further repeats


@dataclass(frozen=True)
class Plan:
    """What a study has to do. seconds: None if unknown; most_s: after which no point starts, or None. source: what
    the time is from. lines: the details. look_s: seconds of the points alone, where further ones may follow."""

    study: str
    points: int
    seconds: float | None
    most_s: float | None
    source: str
    lines: list
    look_s: float | None = None

    def time(self) -> str:
        if self.seconds is None:
            return "time unknown"
        most = f", time limit {duration(self.most_s)}" if self.most_s is not None else ""
        source = f", {self.source}" if self.source else ""
        if self.look_s and self.seconds > FURTHER * self.look_s:
            return (f"about {duration(self.look_s)}; with further repeats about {duration(self.seconds)} in all"
                    f"{most}{source}")
        return f"about {duration(self.seconds)}{most}{source}"


def plan(names, options: run.Options, verbose: bool = False) -> int:
    """Print the plan of each study, all together first; exit codes as run.run's: 1 also if a notebook fails before its
    plan is complete. verbose: each action as root, and each claim that is open."""
    jobs = {study: run.parameters_of(study, options) for study in run.chosen_studies(names, options)}
    run.check_files(jobs)
    asking.check_ids(jobs, options.which)
    jobs = {study: jobs[study] for study in asking.with_claims(jobs, options, named=bool(names))}
    seconds = options.until and max(options.until - time.time(), 0)
    shares = max(sum(run.is_to_run(study, chosen, options) for study, chosen in jobs.items()), 1)   # as a run does
    states, found = [], []
    with Interrupts("stopping") as interrupts:
        for number, (study, chosen) in enumerate(jobs.items(), 1):
            print(f"{study}: looking what there is to measure ({number} of {len(jobs)})", file=sys.stderr, flush=True)
            began = time.monotonic()
            if options.which and seconds is not None:
                options = replace(options, until=time.time() + seconds / shares)
            state, story, why = tried(study, chosen, options, interrupts)
            if interrupts.count:
                return 128 + interrupts.signal
            states.append(state)
            if why:
                print(f"{study}: no plan: {why}", file=sys.stderr)
            else:
                found.append(_of_study(study, chosen, options, story, time.monotonic() - began, verbose))
    print("\n\n".join(["\n".join(_total(found, options.profile, seconds))] * (len(found) > 1)
                      + ["\n".join(one.lines) for one in found]))
    return run.exit_code(states, interrupts)


def _total(found: list[Plan], profile: str, most_s: float | None):
    """All studies together, which share a time limit, then a line a study."""
    known = [one for one in found if one.seconds is not None]
    less = (f"; unknown: {', '.join(one.study for one in found if one.seconds is None)}"
            if len(known) < len(found) else "")
    seconds = min(sum(one.seconds for one in known), math.inf if most_s is None else most_s)
    yield (f"{len(found)} studies, {profile} profile: {_points(sum(one.points for one in found))}, "
           f"about {duration(seconds)}{less}")
    for one in found:
        yield f"  {one.study}: {_points(one.points)}, {one.time()}"


def _points(count: int) -> str:
    return f"{count} point{'s' * (count != 1)} to measure" if count else "nothing to measure"


def tried(study, chosen, options, interrupts):
    """Look with the question that a run would ask: (the state in which that ended, the story, why there is no plan)."""
    asks = asking.question(study, options)
    variables = run.variables(study, options) | (asking.variables(asks) if asks else {})
    try:
        with pages.only_me(study) as partial:
            outcome, story = look(study, chosen, partial, variables, interrupts)
    except pages.Busy as busy:
        return pages.FAILED, None, str(busy)
    if outcome.state == pages.PAUSED:
        return pages.OK, story, ""
    if not outcome.error:
        return pages.FAILED, story, "study.complete() was not reached, so the plan may be incomplete"
    return pages.REFUSED if outcome.error["name"] == "InputError" else pages.FAILED, story, outcome.message()


def _of_study(study, chosen, options, story: RunState, round_s: float, verbose: bool) -> Plan:
    """round_s: what this execution of the notebook took, of which a run needs some more."""
    lab = _lab(study, chosen)
    asks = asking.question(study, options)
    current = not run.is_to_run(study, chosen, options)
    if asks and story.survey:
        expected = asking.expected(study, asks, story.survey, options.until, round_s)
        of = Plan(study, expected.points, expected.seconds, expected.most_s, "", expected.lines(verbose),
                  expected.look_s)
    else:
        seconds, source = _time(study, story, options.profile, chosen)
        left = story.total - story.done
        most = max(options.until - time.time(), 0.0) if options.until is not None and left else None
        of = Plan(study, left, None if seconds is None else seconds + asking.PAGE_ROUNDS * round_s, most, source,
                  list(_experiments(story)))
    page = "its page is up to date" if current else f"{_points(of.points)}, {of.time()}"
    head = [f"{study}, {options.profile} profile: {page}", *of.lines]
    if lab:
        head += [f"  memory: {_size(lab.needs.get('memory'))}, disk: {_size(lab.disk_bytes(options.profile))}",
                 *_place(study, chosen, lab, options.profile, verbose)]
    nothing = {"points": 0, "seconds": 0.0, "most_s": None, "source": "its page is up to date"} if current else {}
    return Plan(**{**vars(of), **nothing, "lines": head})


def _lab(study, chosen) -> LabDescription | None:
    """What a run with these parameters brings up; None of a study without a lab."""
    file = paths.papers(study) / "lab.yml"
    return requirements.description_of_run(study, chosen) if file.is_file() else None


def _place(study, chosen, lab, profile, verbose):
    """What is done on this machine, hosts and clouds."""
    environment = run.environment_of(study, chosen)
    if environment and environment.clouds:
        yield from own_clouds.plan(study, environment)
    if environment and environment.provider == "ssh":
        yield from own_hosts.plan(study, environment, chosen, profile)
        return
    actions = root_actions.every(lab) if verbose else root_actions.summary(lab)
    yield from (f"  as root: {action}" for action in actions)
    yield from (f"  {one.words()}" for one in doctor.missing_features(study, {study: chosen}))
    needed = requirements.requirements([study], profile=profile, chosen={study: chosen})
    missing = [need.name for need, found in install.installed(needed.packages.values()) if not found]
    if missing:
        full = bool(doctor.only_in_full([study], needed) & set(missing))
        how = f"labbook install {study}{' --profile full' if full else ''}"
        yield f"  to install first: {', '.join(missing)} ({how})"


def _experiments(story):
    for name, counts in story.experiments.items():
        if not counts["total"]:
            continue        # 0 repeats leave it out
        left, seconds = counts["total"] - counts["done"], counts.get("seconds")
        time_of = f", about {duration(seconds)}" if left and seconds else ""
        arms = f"; {counts['arms']}" if counts.get("arms") else ""
        yield (f"  {name}: {counts['total']} point{'s' * (counts['total'] != 1)}, {counts['done']} measured, "
               f"{left} to do{time_of}{arms}")


def _time(study, story: RunState, profile, chosen) -> tuple[float | None, str]:
    """Seconds of the points that are left, and what they are from: of each experiment what its points took
    before, or else as totals.point_s says."""
    left = {name: one["total"] - one["done"] for name, one in story.experiments.items() if one["total"] > one["done"]}
    if not left:
        return 0.0, "for the page"
    known = {name: story.experiments[name].get("seconds") for name in left}
    known = {name: seconds for name, seconds in known.items() if seconds is not None}
    measured = OF_OTHERS if any(story.experiments[name].get("guessed") for name in known) else MEASURED
    if len(known) == len(left):
        return sum(known.values()), measured
    point_s = totals.point_s(study, profile, story.total, chosen)
    if point_s is None:
        return None, ""
    guessed = point_s * sum(count for name, count in left.items() if name not in known)
    source = OF_EXPERIMENTS if totals.differ(study, profile, chosen) else OF_LAB_YML
    return sum(known.values()) + guessed, f"{measured} and {source}" if known else source


def _size(count) -> str:
    return size_text(count) if count else "not stated"

"""`labbook run --dry-run`: points, time and resources of a run, and its actions as root on this
machine or on each host of the environment."""

import sys

from labbook import paths
from labbook.errors import LabbookError
from labbook.lab.description import LabDescription
from labbook.lab.quantities import size_text
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.driver import Driver, Interrupts
from labbook.pipeline.executing.progress import RunState, duration
from labbook.pipeline.running import asking, run
from labbook.pipeline.setup import doctor, own_clouds, own_hosts
from labbook.pipeline.sources import notebooks


def plan(names, asked: run.Asked) -> int:
    """Print the plan of each study; 1 if a notebook fails before its plan is complete, 2 if one refuses its
    parameters."""
    jobs = {study: run.parameters_of(study, asked) for study in notebooks.selected(names)}
    run.check_files(jobs)
    jobs = {study: jobs[study] for study in asking.with_claims(jobs, asked, named=bool(names))}
    code = 0
    with Interrupts() as interrupts:
        for study, chosen in jobs.items():
            outcome, story = _try(study, chosen, asked, interrupts)
            if interrupts.count:
                return 128 + interrupts.signal
            if outcome.state == pages.PAUSED:
                print("\n".join(_lines(study, chosen, asked, story)) + "\n")
            else:
                code = max(code, 2 if (outcome.error or {}).get("name") == "InputError" else 1)
                message = (outcome.message() if outcome.error
                        else "study.complete() was not reached, so the plan may be incomplete")
                print(f"{study}: no plan: {message}", file=sys.stderr)
    return code


def _try(study, chosen, asked, interrupts):
    """Execute the notebook in plan mode: nothing is measured, and it stops at study.complete()."""
    asks = asking.question(study, asked)
    variables = run.variables(study, asked) | {"LABBOOK_PLAN": "1"} | (asking.variables(asks) if asks else {})
    with pages.only_me(study) as partial:
        driver = Driver(study, chosen, partial, variables)
        outcome = driver.run(interrupts)
        partial.unlink(missing_ok=True)
    return outcome, driver.story


def _lines(study, chosen, asked, story: RunState):
    page = "up to date" if run.is_current(study, chosen, asked) else "to be made"
    yield f"{study}, {asked.profile} profile: its page is {page}"
    lab = LabDescription.load(paths.papers(study) / "lab.yml")
    asks = asking.question(study, asked)
    if asks and story.survey:
        yield from asking.planned(study, asks, story.survey, asked.until)
    else:
        yield from _points_and_time(story, lab, asked.profile)
    yield f"  memory: {_size(lab.needs.get('memory'))}, disk: {_size(lab.disk_bytes(asked.profile))}"
    environment = run.environment_of(study, chosen)
    if environment and environment.clouds:
        yield from own_clouds.plan(study, environment)
    if environment and environment.provider == "ssh":
        yield from own_hosts.plan(study, environment)
        return
    yield from (f"  as root: {action}" for action in privileged(lab))
    yield from (f"  {one.words()}" for one in _lacking_features(study))
    missing = _missing_packages(study)
    if missing:
        yield f"  to install first: {', '.join(missing)} (labbook install {study})"


def _points_and_time(story, lab, profile):
    for name, counts in story.experiments.items():
        left = counts["total"] - counts["done"]
        yield f"  {name}: {counts['total']} points, {counts['done']} measured, {left} to do"
    yield from _arms(story)
    yield f"  time: {_time(story, lab, profile)}"


def _arms(story):
    """How the paired arms of each experiment will be up."""
    for name, counts in story.experiments.items():
        if counts.get("arms"):
            yield f"  {name}: {counts['arms']}"


def _time(story: RunState, lab, profile) -> str:
    if story.done == story.total:
        return "seconds: nothing is left to measure"
    estimates = [e.get("seconds") for e in story.experiments.values() if e["total"] > e["done"]]
    if estimates and all(seconds is not None for seconds in estimates):
        return f"about {duration(sum(estimates))}, from points measured before"
    minutes = lab.needs.get("minutes", {}).get(profile)
    if minutes is None:
        return "unknown"
    share = 1 - story.done / story.total
    return f"about {duration(minutes * 60 * share)}, from the study's lab.yml"


def _size(count) -> str:
    return size_text(count) if count else "not stated"


def privileged(lab: LabDescription) -> list[str]:
    """The actions as root of bringing a lab up, in words."""
    actions = [f"{len(lab.hosts)} hosts in their own namespaces "
               f"({', '.join(host.name for host in lab.hosts)}), a bridge a site",
               "control groups that freeze hosts which are not measured"]
    for link in lab.links:
        asked = ", ".join(f"{k} {v}" for k, v in link.items() if k != "between" and v)
        shape = f" shaped to {asked}" if asked else ""
        actions.append(f"a link {' - '.join(link['between'])}{shape}")
    for host in lab.hosts:
        limits = [k for k, v in host.limits.items() if v and k not in ("disk", "fuse")]
        if limits:
            actions.append(f"control group of {host.name}: {', '.join(limits).replace('cores_of', 'cores')}")
        if host.limits.get("disk"):
            model = host.limits["disk"].get("model")
            daemon = f", on a file that a daemon serves as slowly as {model}" if model else ""
            actions.append(f"a file system on a loop device for {host.name}{daemon}")
        if host.limits.get("disk", {}).get("trace"):
            actions.append(f"the kernel's trace of requests to {host.name}'s disk")
        if host.limits.get("fuse"):
            actions.append(f"FUSE file systems, visible to {host.name} only")
    return actions


def _lacking_features(study) -> list:
    try:
        return doctor.lacking_features(study)
    except LabbookError:
        return []  # a study without a lab.yml


def _missing_packages(study) -> list[str]:
    from labbook.pipeline.setup import install
    from labbook.pipeline.setup.requirements import requirements

    try:
        wanted = requirements([study]).packages.values()
        return [need.name for need, found in install.installed(wanted) if not found]
    except LabbookError:
        return []  # a study without a lab.yml

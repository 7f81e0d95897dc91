"""`labbook run`: execute notebooks whose pages are out of date, one lab at a time."""

import datetime
import sys
import time
from dataclasses import dataclass

from labbook import paths
from labbook.claims import claims
from labbook.errors import InputError
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.driver import Driver, Interrupts, sweep_labs
from labbook.pipeline.executing.progress import Bar
from labbook.pipeline.running import asking, status, totals
from labbook.pipeline.sources import keys, notebooks, parameters
from labbook.study.publication import published
from labbook.study.records import provenance

WRONG_INPUT_CODE, PAUSED_CODE = 2, 3
_OF_A_STOP = ("state", "profile", "started", "seconds", "points", "board", "lab_time")


@dataclass(frozen=True)
class Options:
    """The options of `labbook run`; `given` is [(parameter, YAML text)], `until` epoch seconds, `which`
    the claims that are asked until they are decided ("headline", "paper", "all", or ids), `fleet` the folder of the
    records of a fleet that measures."""

    profile: str = "quick"
    given: tuple = ()
    environment: str | None = None
    force: bool = False
    remeasure: bool = False
    published: bool = False
    until: float | None = None
    which: str | None = None
    fleet: str | None = None


def run(names, options: Options) -> int:
    """Update the pages of the named studies (all if none) and return the exit code.

    0: success, 1: a notebook failed, or some refused their parameters, 2: all refused them, 3: the time was up
    first, 128 + signal: interrupted.
    """
    studies = chosen_studies(names, options)
    if options.published and not names:
        studies = _published(studies)
    jobs = {study: parameters_of(study, options) for study in studies}
    asking.check_ids(jobs, options.which)
    if not options.published:
        sweep_labs()
    todo = {study: chosen for study, chosen in jobs.items() if is_to_run(study, chosen, options)}
    current = [study for study in jobs if study not in todo]
    if todo and not options.published:
        check_files(todo)
        todo = {study: todo[study] for study in asking.with_claims(todo, options, named=bool(names))}
        check_needs(todo, options.profile)
    with Interrupts(*["stopping"] * options.published) as interrupts:
        states = [_run_or_pause(study, chosen, asking.share(options, len(todo) - number), interrupts)
                  for number, (study, chosen) in enumerate(todo.items())]
        status.write()
        if current:
            print(f"{len(current)} of {len(jobs)} up to date: {', '.join(current)}", file=sys.stderr)
    return exit_code(states, interrupts)


def chosen_studies(names, options) -> list[str]:
    """The studies of a run. InputError for parameters without the name of the study that they are of."""
    studies = notebooks.selected(names)
    if options.given and not names and len(studies) > 1:
        raise InputError("each study has parameters of its own: name the study before -p",
                         key=f"-p {options.given[0][0]}", allowed=studies)
    return studies


def is_to_run(study, chosen, options) -> bool:
    """Whether a run makes a study's page, and does not leave it as it is."""
    return options.force or options.remeasure or not is_current(study, chosen, options)


def is_current(study, chosen, options) -> bool:
    """Whether a study's page is what this run would make: of the same profile, inputs and records, with its claims
    asked, or its experiments measured as declared."""
    note, wanted = pages.note(study), {"profile": _profile(study, options), "fleet": options.fleet}
    if not pages.is_current(study, keys.page_key(study, chosen, options.published)) or any(
            note.get(name) != value for name, value in wanted.items()):
        return False
    board, asks = note.get("board") or {}, asking.question(study, options)
    return asks.is_answered(board) if asks else not board


def exit_code(states, interrupts) -> int:
    """The command's exit code: 0 where all studies are done; otherwise by a signal, or by the worst of their states.
    Wrong input is the code only where all were refused: else something was started."""
    if interrupts.count:
        return 128 + interrupts.signal
    if states and all(state == pages.REFUSED for state in states):
        return WRONG_INPUT_CODE
    if {pages.FAILED, pages.REFUSED} & set(states):
        return 1
    return PAUSED_CODE if pages.PAUSED in states else 0


def parameters_of(study, options) -> dict:
    """A run's {group: {name: value}}: those that were published, or of the profile, the environment and -p. InputError
    for one that the notebook does not have. No environment of a published set: it names a file of who published it."""
    if options.published:
        values = published_run(study).get("parameters", {})
        return parameters.filled({name: value for name, value in values.items() if name != "environment"}, study,
                                 paths.published_dir() / study)
    environment = options.environment and environment_file(options.environment)
    return parameters.chosen(study, options.profile, options.given, environment)


def _published(studies) -> list[str]:
    """Those of which summaries are published; of a new study there are none yet."""
    for study in studies:
        if not published_run(study):
            print(f"{study}: nothing is published of it, so its page shows no results", file=sys.stderr)
    return [study for study in studies if published_run(study)]


def published_run(study: str) -> dict:
    """{"profile", "parameters"} of the published summaries; {} if nothing is published."""
    return published.read_run(study)


def environment_file(name: str) -> str:
    """An environment file, named from the working folder or the checkout, as a path from the checkout."""
    path = paths.environment(name, "environment file", "--environment")
    return str(path.relative_to(paths.checkout()) if path.is_relative_to(paths.checkout()) else path)


def _in_checkout(name: str):
    """The path of an environment file that a notebook's parameters name, which they do from the checkout."""
    return paths.checkout() / environment_file(paths.checkout() / name)


def check_files(jobs) -> None:
    """InputError, before anything starts, for mistakes in the environment, lab.yml or claims.yml of a
    study; `jobs`: {study: parameters}."""
    from labbook.pipeline.setup.requirements import requirements

    for study, chosen in jobs.items():
        environment = environment_of(study, chosen)
        claims.load(study)
        if environment and environment.provider == "ssh" and _with_lab([study]):
            _check_hosts(study, environment, chosen)
    if _with_lab(jobs):
        requirements(_with_lab(jobs))


def environment_of(study, chosen):
    """The Environment that a study's parameters name; None if they name none."""
    from labbook.lab.environment.environment import Environment

    name = _environment_name(study, chosen)
    return Environment.load(_in_checkout(name)) if name else None


def _check_hosts(study, environment, chosen):
    from labbook.lab.remote.assign import match
    from labbook.lab.remote.needs import require_allowed
    from labbook.pipeline.setup.requirements import description_of_run

    lab = description_of_run(study, chosen)
    require_allowed(lab, match(lab, environment), environment)


def check_needs(jobs, profile="quick") -> None:
    """LabError, before anything starts, if this machine or the hosts of the environment lack what
    studies need in this profile; `jobs`: {study: parameters}."""
    from labbook.pipeline.setup import doctor

    by_environment = {}
    for study in _with_lab(jobs):
        name = environment_file(paths.checkout() / (_environment_name(study, jobs[study]) or paths.LOCAL))
        by_environment.setdefault(name, []).append(study)
    for name, studies in by_environment.items():
        doctor.require(studies, name, profile, jobs)
        _require_cores(studies, name)


def _require_cores(studies, environment) -> None:
    """LabError when another lab of this machine has the cores that a study's hosts have for themselves."""
    from labbook.lab.environment.environment import Environment
    from labbook.lab.local import provider
    from labbook.pipeline.setup.requirements import description

    if Environment.load(paths.checkout() / environment).provider == provider.NAME:
        provider.require_cores(max(description(study).cores for study in studies))


def _with_lab(studies) -> list[str]:
    return [study for study in studies if (paths.papers(study) / "lab.yml").is_file()]


def _run_or_pause(study, chosen, options, interrupts) -> str:
    if interrupts.count:
        return pages.INTERRUPTED
    if options.until is not None and time.time() >= options.until:
        print(f"{study}: not started, the time is up", file=sys.stderr)
        return pages.PAUSED
    try:
        with pages.only_me(study, lambda: options.published and not interrupts.count) as partial:
            return run_one(study, chosen, options, interrupts, partial)
    except pages.Busy as busy:
        print(not_started(study, busy), file=sys.stderr)
        return pages.FAILED


def not_started(study, busy: pages.Busy) -> str:
    """What is said of a study that another labbook runs; the others go on."""
    return f"{study}: not started: {busy}"


def run_one(study, chosen, options, interrupts, partial, execute=None, bar=None) -> str:
    """Execute one notebook and store its page; the state in which it ended. execute: in the place of _execute."""
    started, moment = time.monotonic(), datetime.datetime.now().astimezone()
    bar, asks = bar or Bar(study), asking.question(study, options)
    try:
        parts = keys.parts(study, chosen)   # before the run: a later edit makes the page out of date
    except InputError as error:     # in a file that was changed after the command began; the other studies go on
        bar.end(f"not started: {error}")
        return pages.REFUSED
    try:
        outcome, story, points, board, lab_time = (execute or _execute)(
            study, chosen, options, asks, interrupts, partial, bar)
    except totals.Refused as refused:       # nothing was started, so the page of before stays
        bar.end(f"not started: {refused}")
        return pages.REFUSED
    redact = _redactor(study, chosen)
    pages.rewrite(partial, redact)
    if not options.published and not options.fleet:
        sweep_labs()
    about = {
        "study": study, "state": outcome.state, "error": redact(outcome.error),
        "key": {"inputs": keys.of_parts(parts), "records": keys.records(study, options.published)}, "parts": parts,
        "profile": _profile(study, options), "parameters": chosen, "published": options.published,
        "environment": _environment_name(study, chosen),
        "started": moment.isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - started, 1),
        "points": points, "board": board, "lab_time": lab_time, "machine": provenance.machine(), "fleet": options.fleet,
        **provenance.code(),
    }
    _keep(study, outcome, partial, about)
    bar.end(_ending(outcome, points, board), story)
    if board:
        print("".join(f"  {line}\n" for line in asking.open_lines(board)), end="", file=sys.stderr)
    late = board and outcome.state == pages.OK and board.get("cut", False)
    return pages.PAUSED if late else outcome.state


def _execute(study, chosen, options, asks, interrupts, partial, bar):
    """(outcome, story, points, board, lab_time) of running a notebook once, or in rounds."""
    given = variables(study, options)
    if asks is None:
        known = totals.before(study, chosen, given, partial, interrupts)
        driver = Driver(study, chosen, partial, given, totals=known)
        outcome = driver.run(interrupts, bar.show)
        totals.keep(study, chosen, given, driver.story)
        return outcome, driver.story, driver.story.points(), None, driver.story.lab_time()
    answer = asking.Asking(study, chosen, partial, given, asks, options.until, bar).run(interrupts)
    return answer.outcome, answer.story, answer.points, answer.board, answer.lab_time


def _redactor(study, chosen):
    """The function that removes addresses, users and keys of the environment's hosts from a page."""
    name = _environment_name(study, chosen)
    return provenance.redactor(_in_checkout(name)) if name else lambda data: data


def _keep(study, outcome, partial, about) -> None:
    """A good or failed page replaces the old one. A stopped run leaves the old page and its note, but
    without a key, so that the next run resumes."""
    if outcome.state in (pages.OK, pages.FAILED) and partial.is_file():
        pages.accept(study, partial, about)
    elif outcome.state == pages.FAILED:
        pages.write_note(study, about)
    else:
        partial.unlink(missing_ok=True)
        pages.write_note(study, pages.stopped(study, {key: about[key] for key in _OF_A_STOP}))


def _ending(outcome, points: dict, board: dict | None = None) -> str:
    failed = f", {points['failed']} failed" if points["failed"] else ""
    counted = f"{points['done']} of {points['total']} points{failed}"
    if board:
        counted = f"{asking.headline(board)}, {counted}"
    if outcome.state == pages.OK:
        return f"done, {counted}, {points['measured']} of them measured now" if board or points["total"] else "done"
    if outcome.state == pages.FAILED:
        return f"failed: {outcome.message()}"
    return f"{outcome.state}, {counted}; run it again to resume"


def variables(study, options: Options) -> dict:
    """Environment variables for the kernel; see labbook.study.run."""
    found = {"LABBOOK_ROOT": str(paths.checkout()), "LABBOOK_PROFILE": _profile(study, options)}
    if options.published:
        found["LABBOOK_PUBLISHED"] = "1"
    if options.remeasure:
        found["LABBOOK_REMEASURE"] = "1"
    if options.until is not None:
        found["LABBOOK_UNTIL"] = repr(options.until)
    if options.fleet:
        found["LABBOOK_FLEET"] = options.fleet
    return found


def _profile(study, options) -> str:
    return published_run(study).get("profile", "quick") if options.published else options.profile


def _environment_name(study, chosen) -> str | None:
    return chosen.get("environment") or parameters.declared(study).get("environment")

"""run, book, status, claims, compare, publish, archive, new."""

import json
import sys
import time

from labbook import colour
from labbook.errors import InputError, in_words
from labbook.study.options import is_set

_NOT_PUBLISHED = "without LABBOOK_PUBLISHED"


def run(given) -> int:
    from labbook.pipeline.running import run

    _check_asking(given)
    options = run.Options(
        given.profile, tuple(map(tuple, given.given)), given.environment, given.force,
        given.remeasure, is_set("LABBOOK_PUBLISHED"), given.seconds and time.time() + given.seconds,
        (given.claims or "all") if given.until_decided else None)
    if given.fleet or given.cluster:
        return _run_fleet(given, options)
    if given.dry_run:
        from labbook.pipeline.running.plan import plan

        return plan(given.studies, options, given.verbose)
    return run.run(given.studies, options)


def _run_fleet(given, options) -> int:
    from labbook.pipeline.fleet import run

    if given.fleet and given.cluster:
        raise InputError("cannot be combined with --fleet", key="--cluster", allowed="one of the two")
    if given.dry_run and given.cluster:
        raise InputError("the number of machines of a cluster is not known before the run", key="--dry-run",
                         allowed="with --fleet FILE, or without both: what one machine would take")
    if given.dry_run:
        from labbook.pipeline.fleet.plan import plan

        if given.verbose:
            raise InputError("a plan for a fleet lists no points", key="-v", allowed="with --dry-run on one machine")
        return plan(given.studies, options, given.fleet)
    return run.run_fleet(given.studies, options, given.fleet, given.cluster)


def _check_asking(given) -> None:
    """InputError for options that do not go together."""
    if given.claims and not given.until_decided:
        raise InputError("needs --until-decided", key="--claims")
    if given.verbose and not given.dry_run:
        raise InputError("what is listed is a plan", key="-v", allowed="with --dry-run")
    if given.until_decided and is_set("LABBOOK_PUBLISHED"):
        raise InputError("published results get no further repeats", key="--until-decided", allowed=_NOT_PUBLISHED)
    of_measuring = {"-p": given.given, "--environment": given.environment, "--remeasure": given.remeasure,
                    "--profile": given.profile != "quick", "--dry-run": given.dry_run}
    for option in [option for option, is_given in of_measuring.items() if is_given and is_set("LABBOOK_PUBLISHED")]:
        raise InputError("published results are shown as they were measured", key=option, allowed=_NOT_PUBLISHED)


def book(given) -> int:
    from labbook.pipeline.book import build, pdf
    from labbook.pipeline.running import run

    code = 0
    if given.pdf:
        pdf.program()       # what is missing is named before any page is made
    if given.published:
        code = run.run([], run.Options(published=True))
        if code > 1:
            return code
    first_page = build.build()
    for study in build.failed_pages():
        print(f"labbook: the page of {study} shows a failed run", file=sys.stderr)
    print(first_page)
    if given.pdf:
        print(pdf.build())
    return code


def status(given) -> int:
    from labbook.pipeline.executing.driver import log_of
    from labbook.pipeline.running import asking, status

    rows = status.rows()
    labs, clouds = _labs(), _clouds()
    if given.json:
        print(json.dumps({"studies": rows, "labs": labs, "clouds": clouds, "fleet": status.fleet()}, indent=1,
                         ensure_ascii=False))
        return 0
    print(colour.words(status.table(rows), sys.stdout))
    if fleet := status.fleet():
        print(f"\n{status.fleet_table(fleet)}")
    for row in rows:
        if given.verbose and row["board"]:
            print(f"\n{row['study']}: " + "\n  ".join(asking.lines(row["board"])))
        if given.verbose and (text := status.lab_time_words(row)):
            print(f"{row['study']}: {text}")
        if row["error"]:
            print(f"\n{row['study']}: {in_words(row['error']['name'], row['error']['message'])}{log_of(row['error'])}")
    for lab in labs:
        print(f"\nlab {lab['id']} is up ({lab['study']}): {', '.join(lab['hosts'])}")
    for cloud in clouds:
        print(f"\ncloud {cloud['cloud']} has {cloud['resources']} resources of {cloud['study']}: "
              "`labbook down` removes them, unless a run uses them")
    return 0


def _clouds() -> list[dict]:
    from labbook.pipeline.executing.driver import clouds_left

    if not clouds_left():
        return []
    from labbook.systems.cloud import user_cloud

    return [vars(left) for left in user_cloud.leftovers()]


def _labs() -> list[dict]:
    from labbook.pipeline.executing.driver import labs_left

    if not labs_left():
        return []
    from labbook.lab import Lab

    return [{"id": lab.id, "study": lab.study, "hosts": list(lab.hosts), "kept": lab.keep}
            for lab in Lab.list()]


def claims(given) -> int:
    from labbook.pipeline.publishing import outcomes
    from labbook.pipeline.sources import notebooks

    found = [one for study in notebooks.selected([*given.studies, *given.study])
             for one in outcomes.of_study(study)]
    found = [one for one in found if _is_wanted(one, given)]
    if given.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    elif given.verbose or given.studies or given.study or given.verdict or given.owner or given.headline:
        print(colour.words(outcomes.table(found), sys.stdout))
    else:
        print(colour.words(outcomes.summary(found), sys.stdout))
    return 0


def _is_wanted(one, given) -> bool:
    """Whether a claim passes the filters."""
    return ((not given.verdict or (one["verdict"] or "not judged yet") in given.verdict)
            and (not given.owner or one["owner"] == given.owner)
            and (not given.headline or one["headline"]))


def compare(given) -> int:
    from labbook.pipeline.publishing import compare, compare_words
    from labbook.pipeline.sources import notebooks

    studies = notebooks.selected(given.studies)
    found = compare.pairs(compare.load(given.a, studies), compare.load(given.b, studies))
    if given.json:
        print(json.dumps(compare.as_data(found), indent=1, ensure_ascii=False))
    else:
        print(colour.words(compare_words.table(found, given.a, given.b), sys.stdout))
    return int(any(pair.change == compare.REVERSED for pair in found))


def publish(given) -> int:
    from labbook.pipeline.publishing import publish

    if given.set and given.carry_over is None:
        raise InputError("goes with --carry-over", key="--set", allowed="with --carry-over, or without --set")
    if given.without and given.carry_over is None:
        raise InputError("goes with --carry-over", key="--without", allowed="with --carry-over")
    if given.carry_over is not None and not given.carry_over.strip():
        raise InputError("no reason", key="--carry-over", allowed="why the change does not change what is measured")
    if given.further and not given.add:
        raise InputError("goes with --add", key="--further", allowed="with --add")
    if given.profile and (given.judge or given.carry_over is not None):
        raise InputError("selects a run to publish, and --judge and --carry-over publish none", key="--profile",
                         allowed="without --judge and --carry-over")
    if given.judge:
        files = publish.judge(given.study)
    elif given.carry_over is not None:
        files = publish.carry_over(given.study, given.carry_over, given.set, given.without)
    else:
        files = publish.publish(given.study, given.profile or "full", given.replace,
                                lambda line: print(line, file=sys.stderr), given.add, given.further)
    for path in files:
        print(path)
    return 0


def archive(given) -> int:
    from labbook.pipeline.publishing import archive
    from labbook.pipeline.sources import notebooks
    from labbook.study.publication import published

    for study in notebooks.selected(given.studies):
        if given.studies or published.sets(study):
            print(archive.archive(study))
        else:
            print(f"{study}: nothing is published of it, so there is no archive", file=sys.stderr)
    return 0


def new(given) -> int:
    from labbook import paths
    from labbook.pipeline.sources import new

    for path in new.new(given.name, given.system):
        print(path.relative_to(paths.checkout()))
    print(f"\nlabbook run {given.name} && labbook book", file=sys.stderr)
    return 0

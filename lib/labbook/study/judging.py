"""Check and judge claims.

Claims are checked against the declared experiments before the first point, and against the recorded
metrics after each point. They are judged by the summaries of the experiments.
"""

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from labbook import paths
from labbook.checks import did_you_mean
from labbook.claims import claims
from labbook.claims.decisions import NOT_REPLICATED, REPLICATED
from labbook.claims.selection import is_tested, needs_point
from labbook.errors import InputError
from labbook.study import ask, machines_apart
from labbook.study.parameters import adding
from labbook.study.parameters.notebook import declared

SEEN = {"always": NOT_REPLICATED, "sometimes": REPLICATED}     # what one sight decides
LIBRARY = Path(__file__).resolve().parents[1]


def judge(study, claim: dict, read: dict | None = None):
    """The Verdict on a claim, from those repeats of its experiment that have all points that it needs; in
    an ask without stale points, where it measures these again. On a page of published sets: the verdict of one
    of them alone, the same as on the board (see published_verdicts.of_today).

    read: {experiment: (rows, conditions)}, filled with what was read, for further claims.
    """
    from labbook.claims import verdict

    if study.run.published and claim["id"] in study.published_verdicts:
        return _of_a_set(study, claim)
    rows, everything, conditions, parameters = [], [], {}, ()
    if is_tested(claim):
        experiment = experiment_of(study, claim)
        parameters = experiment.parameters
        if not study.run.published:
            rows, conditions = _read(study, experiment, {} if read is None else read)
            rows = [row for row in rows if not (row["stale"] and study.run.ask and study.run.remeasure)]
            whole = ask.whole_repeats(experiment, claim, rows)
            everything, rows = rows, [row for row in rows if row["repeat"] in whole]
    def of(chosen):
        return verdict.judge(
            claim, chosen, parameters, study=study.name, file=claims.path(study.name),
            profile=conditions.get("profile", study.run.profile), conditions=conditions,
            environment=conditions.get("environment", str(study.environment)),
            run="published" if study.run.published else study.run.profile,
            may_lack=lambda metric: _is_recorded_elsewhere(metric, study.name))

    judged = of(rows)
    if claim["rule"]["name"] in SEEN and (at_all := of(everything)).verdict == SEEN[claim["rule"]["name"]]:
        judged = at_all     # what a part of a repeat shows was seen
    reason = _reason(study, claim, judged)
    if study.run.fleet and rows:
        from labbook.claims import rules

        records = study.records(claim["experiment"])
        apart = machines_apart.words(
            judged, rows, lambda row: records.meta(row["point"])["provenance"]["machine"], of,
            rules.numbers(claim, rows, parameters))
        reason = "; ".join(filter(None, (reason, apart)))
    return replace(judged, reason=reason, published=_stands(study, judged))


def _of_a_set(study, claim: dict):
    """The Verdict that stands on a claim, of a published set; its reason names the machine if the page shows the
    claim's experiment of another one first."""
    from labbook.claims.verdict import Verdict
    from labbook.study import results
    from labbook.study.publication import published_verdicts

    found = dict(study.published_verdicts[claim["id"]])
    machine = found.pop("set")
    shown = results.shown_first(study, study.experiments.get(claim.get("experiment")))
    where = "" if machine == shown else published_verdicts.words(study.name, machine)
    return Verdict(**found | {"reason": "; ".join(filter(None, (found["reason"], where and f"measured on {where}")))})


def _reason(study, claim: dict, judged) -> str:
    """The verdict's reason; of a claim that was not run with what a run is given to measure it."""
    from labbook.claims import rules
    from labbook.claims.verdict import lacks

    if judged.verdict != rules.NOT_RUN or not is_tested(claim) or judged.reason == lacks(claim):
        return judged.reason
    options = adding.options(study.name, claim, experiment_of(study, claim))
    return f"{judged.reason}; to measure it: labbook run {study.name} {options}" if options else judged.reason


def _stands(study, judged) -> dict | None:
    """The published verdict that stands where a run measured nothing, with `link`, to its numbers."""
    from labbook.claims import rules
    from labbook.study.publication.published_verdicts import address

    if judged.verdict != rules.NOT_RUN or not study.run.makes_page:
        return None
    stands = study.published_verdicts.get(judged.id)
    return stands and stands | {"link": address(study.name, stands["set"])}


def _read(study, experiment, read) -> tuple[list[dict], dict]:
    from labbook.study import results

    if experiment.name not in read:
        rows = results.measured(experiment).to_dict("records")
        read[experiment.name] = rows, results.conditions(study, [experiment])
    return read[experiment.name]


def experiment_of(study, claim: dict):
    """The experiment that a claim names; InputError when the study has not declared it."""
    name = claim["experiment"]
    if name not in study.experiments:
        near = did_you_mean(name, study.experiments)
        raise InputError(f"no experiment {name!r} is declared{near}", file=claims.path(study.name),
                         key=f"{claim['id']}.experiment", allowed=list(study.experiments))
    return study.experiments[name]


def check_grids(study, all_declared: bool) -> None:
    """Check every claim against the experiments declared so far: InputError for a wrong parameter
    or value, and for an unknown experiment. Without `all_declared`, an undeclared experiment is
    accepted if the paper's notebook or code contains its name, since it may be declared later."""
    from labbook.claims import rules

    tested = [claim for claim in study.claim_entries if is_tested(claim)]
    known = known_words(study.name)
    grids = {name: [arm for point in experiment.declared() for arm in point.arms]
             for name, experiment in study.experiments.items()}
    for claim in tested:
        if claim["experiment"] in grids:
            parameters = study.experiments[claim["experiment"]].parameters
            rules.check_grid(claim, grids[claim["experiment"]], parameters,
                             file=claims.path(study.name), known=known)
        elif all_declared or not _is_in(claim["experiment"], _own_sources(study.name)):
            experiment_of(study, claim)
    _check_lab(study, all_declared)


def _check_lab(study, all_declared: bool) -> None:
    """InputError for an experiment that lab.yml names and the study does not declare, as in check_grids."""
    for name in sorted(study.experiments_apart - set(study.experiments)):
        if all_declared or not _is_in(name, _own_sources(study.name)):
            raise InputError(f"no experiment {name!r} is declared{did_you_mean(name, study.experiments)}",
                             file=study.folder / "lab.yml", key="experiments or modelled_in of a host",
                             allowed=list(study.experiments))


def known_words(study: str) -> set[str]:
    """The words that a claim may name though no point of this run has them: those among the values of the full
    profile and of the notebook's own, which a run may be given fewer of."""
    try:
        return claims.full_values(study) | set(claims.texts(declared(study)))
    except InputError:
        return claims.full_values(study)     # a notebook without parameters


def check_metrics(study, point, summary: dict, params: dict) -> None:
    """Check the claims that use a point's arm with these parameters against the metrics recorded with it.

    InputError for a metric that was not recorded and whose name occurs in no source, so that no
    other point can record it; and for one that is text or a list.
    """
    for claim in study.claim_entries:
        if claim.get("experiment") != point.experiment or not needs_point(claim, params):
            continue
        for name, key in _metrics(claim):
            if name not in summary and not _is_recorded_elsewhere(name, study.name):
                raise InputError(
                    f"no metric {name!r} was recorded{did_you_mean(name, summary)}",
                    file=claims.path(study.name), key=key, allowed=sorted(summary))
            if kind := _kind(summary.get(name)):
                raise InputError(
                    f"the metric {name!r} is {kind}, and a claim is judged by numbers", file=claims.path(study.name),
                    key=key, allowed=sorted(each for each, value in summary.items() if not _kind(value)))


def _kind(value) -> str:
    """What a metric is that is no number; empty of a number, of a truth value, and of none."""
    return "text" if isinstance(value, str) else "a list" if isinstance(value, (list, tuple)) or getattr(
        value, "ndim", 0) else ""


def _metrics(claim):
    yield claim["metric"], f"{claim['id']}.metric"
    if "metric" in claim["rule"].get("baseline", {}):
        yield claim["rule"]["baseline"]["metric"], f"{claim['id']}.rule.baseline.metric"
    for i, need in enumerate(claim.get("needs", ())):
        yield need["metric"], f"{claim['id']}.needs.{i}.metric"


def _own_sources(study: str) -> list[Path]:
    """The notebook and the paper's own modules."""
    return [paths.notebook(study), *(LIBRARY / "papers" / study).rglob("*.py")]


def _measuring() -> list[Path]:
    return [path for room in ("workloads", "systems", "lab")
            for path in (LIBRARY / room).rglob("*.py")]


@lru_cache
def _is_recorded_elsewhere(metric: str, study: str) -> bool:
    """Whether a metric's name occurs in code that other points may execute."""
    return _is_in(metric, [*_own_sources(study), *_measuring()])


def _is_in(word: str, files) -> bool:
    """Whether one of the files contains the word, not as a part of a longer word."""
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    return any(file.is_file() and pattern.search(file.read_text()) for file in files)

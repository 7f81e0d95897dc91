"""Verdicts: what the measurements say of a claim, to be shown on a page and kept for the board."""

import html
import math
import time
from dataclasses import asdict, dataclass, field

from labbook.claims import claims, rules
from labbook.errors import InputError
from labbook.study import results as frames


@dataclass(frozen=True)
class Verdict:
    """`measured`, in `unit`, is the median of n repeats and [low, high] holds it at `level`; all
    None where nothing was compared. `conditions` are those of Study.conditions."""

    study: str
    id: str
    statement: str
    source: str
    paper: dict
    measured: float | None
    unit: str
    low: float | None
    high: float | None
    level: float | None
    n: int
    verdict: str
    reason: str
    profile: str
    environment: str
    conditions: dict = field(repr=False)

    def __repr__(self):
        return f"{self.id}: {self.verdict}, {self.reason}; {self.ours or 'nothing measured'}"

    @property
    def ours(self) -> str:
        """The measured value in words, with its interval."""
        return ours(asdict(self))

    def _repr_html_(self) -> str:
        lines = [("Paper", f"{claims.paper_words(self.paper)} ({self.source})")]
        lines += [("Here", self.ours)] if self.ours else []
        lines += [("Why", self.reason), ("Measured on", measured_on(self.conditions))]
        body = "".join(f"<dt>{_escape(name)}</dt><dd>{_escape(text)}</dd>"
                       for name, text in lines if text)
        return (f'<div class="labbook-claim" id="claim-{_escape(self.id)}">'
                f"<p>{badge(self.verdict)} <strong>{_escape(self.statement)}</strong></p>"
                f"<dl>{body}</dl></div>")


class Board(list):
    """Claims as dicts, each with its verdict's fields (`verdict` None: not judged)."""

    def _repr_html_(self) -> str:
        head = ("Claim", "Paper", "Here", "Verdict")
        body = "".join(
            f'<tr><th scope="row"><a href="#claim-{_escape(one["id"])}">'
            f'{_escape(one["statement"])}</a></th>' + _cells(head[1:], (
                _escape(claims.paper_words(one["paper"])), _escape(here(one)),
                badge(one["verdict"]))) + "</tr>" for one in self)
        heads = "".join(f'<th scope="col">{name}</th>' for name in head)
        return ('<div class="labbook-scroll" role="region" tabindex="0" aria-label="claims">'
                f'<table class="labbook-table"><thead><tr>{heads}</tr></thead>'
                f"<tbody>{body}</tbody></table></div>")


def _cells(names, texts) -> str:
    return "".join(f'<td data-label="{name}">{text}</td>' for name, text in zip(names, texts))


def badge(verdict: str | None) -> str:
    """The verdict as a word in a coloured pill; the word says it without the colour."""
    word = verdict or "not judged yet"
    kind = {rules.NOT_TESTABLE: "not-testable"}.get(word, word.replace(" ", "-"))
    return f'<span class="verdict verdict-{kind}">{_escape(word)}</span>'


def ours(one: dict) -> str:
    """"2.4 times (2.1 to 2.6 at a level of 75 %, 3 repeats)", or nothing."""
    if not one.get("n"):
        return ""
    unit = f" {one['unit']}" if one["unit"] else ""
    shown = [_number(one[key], one["unit"]) for key in ("measured", "low", "high")]
    head = f"{shown[0]}{unit}"
    if one["n"] == 1:
        return f"{head} (one repeat)"
    return (f"{head} ({shown[1]} to {shown[2]} at a level of "
            f"{math.floor(100 * one['level'])} %, {one['n']} repeats)")


def here(one: dict) -> str:
    """What a board says of a verdict: the measured value, and why it decides nothing where so."""
    reason = one["reason"] if one["verdict"] == rules.NOT_TESTABLE or not one.get("n") else ""
    return "; ".join(filter(None, (ours(one), reason)))


def _number(value, unit) -> str:
    """Three figures; of ratios near one, of which the first tells nothing, four."""
    if value is None:
        return "beyond what was measured"
    return f"{value:.3f}" if unit == "times" and 0.8 < value < 1.25 else f"{value:.3g}"


def measured_on(conditions: dict) -> str:
    """Machine, profile and day of Study.conditions in a line, and how much of it is stale."""
    if not conditions:
        return ""
    where = (f"{conditions['cpu']}, {conditions['cores']} cores, {conditions['profile']} profile, "
             f"{conditions['to']}")
    stale = conditions["stale"]
    return where + (f"; {stale} of {conditions['points']} points by earlier code" if stale else "")


def _escape(text) -> str:
    return html.escape(str(text), quote=True)


def judge(study, claim: dict, experiment=None) -> Verdict:
    """Decide a claim by its rule and keep the verdict in build/claims/STUDY.json."""
    file = claims.path(study.name)
    rows, conditions = [], {}
    if claim["rule"]["name"] != "not_testable":
        _check_experiment(claim, experiment, file)
        summary = experiment.summary()
        _check_metric(claim, summary, experiment, file)
        rows, conditions = summary.to_dict("records"), frames.conditions(study, [experiment])
    profile = conditions.get("profile", study.run.profile)
    if not rows and claim["rule"]["name"] != "not_testable":
        outcome = rules.Outcome(rules.NOT_TESTABLE, "nothing was measured")
    else:
        outcome = rules.decide(claim, rows, experiment.parameters if experiment else (),
                               file=file, profile=profile, known=claims.full_words(study.name))
    verdict = _verdict(study, claim, outcome, profile, conditions)
    claims.keep(study.name, asdict(verdict) | {"judged": time.time()})
    return verdict


def _verdict(study, claim, outcome, profile, conditions) -> Verdict:
    found = outcome.interval
    numbers = {"measured": None, "low": None, "high": None, "level": None, "n": 0}
    if found:
        numbers = {"measured": _finite(found.value), "low": _finite(found.low),
                   "high": _finite(found.high), "level": found.level, "n": found.n}
    return Verdict(
        study=study.name, **{k: claim[k] for k in ("id", "statement", "source", "paper")},
        **numbers, unit=outcome.unit, verdict=outcome.verdict, reason=outcome.reason,
        profile=profile, environment=conditions.get("environment", str(study.environment)),
        conditions=conditions)


def _finite(value) -> float | None:
    return float(value) if math.isfinite(value) else None


def _check_experiment(claim, experiment, file):
    if experiment is None or claim["experiment"] != experiment.name:
        given = "none" if experiment is None else repr(experiment.name)
        raise InputError(f"the claim is about the experiment {claim['experiment']!r}, not {given}",
                         file=file, key=f"{claim['id']}.experiment")


def _check_metric(claim, summary, experiment, file):
    own = {"point", *experiment.parameters, "repeat", "block", "order", "stale"}
    metrics = [c for c in summary.columns if c not in own and summary[c].dtype.kind in "iufb"]
    if len(summary) and claim["metric"] not in metrics:
        raise InputError(f"no metric {claim['metric']!r} was recorded", file=file,
                         key=f"{claim['id']}.metric", allowed=metrics)

"""Verdicts on claims, as data and as HTML for a page."""

import html
import math
import re
from dataclasses import asdict, dataclass, field
from numbers import Real

from labbook.claims import claims, compared, rules
from labbook.claims.decisions import NEAR_1, is_share, ratio_text
from labbook.claims.looks import LOOKS
from labbook.claims.selection import is_missing, matches
from labbook.claims.statistics import LEVEL
from labbook.errors import InputError

COLUMNS = ("Claim", "Paper", "Here", "Verdict")
# Of a verdict's label: the variables of the book's style sheet, and colours for a notebook without it.
COLOURS = {rules.REPLICATED: ("good", "#0b5f46", "#e2f4ed"), rules.NOT_REPLICATED: ("bad", "#8f2f10", "#fdebe1"),
           rules.OPEN: ("open", "#6b4700", "#fdf3d7"), rules.NOT_TESTABLE: ("none", "#434d57", "#eceff2")}


@dataclass(frozen=True)
class Verdict:
    """The outcome of a claim, with the claim's own text.

    `measured`, in `unit`, is the median of n repeats, and [low, high] its confidence interval of
    `level`; all are None where nothing could be compared. `conditions`: see Study.conditions.
    `checked`: what was looked at, of a claim that says so. `changed`: what of the rule changed after
    data were published. `owner`: "paper" or "ours". `run`: "quick", "full" or "published".
    `tendency`, `repeats_needed`: see rules.Outcome. `compared`: what is over what, of
    which metric. `published`: the verdict that stands where this run measured nothing (see
    published_words), None where it did or nothing is published.
    """

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
    checked: str = ""
    changed: str = ""
    owner: str = "paper"
    headline: bool = False
    run: str = ""
    tendency: dict | None = None
    repeats_needed: int | None = None
    compared: str = ""
    published: dict | None = None

    def __repr__(self):
        return f"{self.id}: {self.verdict}, {self.reason}; {self.ours or 'nothing measured'}"

    @property
    def ours(self) -> str:
        """The measured value and its interval, in words."""
        return ours(asdict(self))

    @property
    def stands(self) -> str:
        """The verdict for a sentence of the page; "open (published run)" of a published one that stands."""
        return f"{self.published['verdict']} (published run)" if self.published else self.verdict

    @property
    def value(self) -> str:
        """`ours` for a sentence; "2.4 times (2.1 to 2.6 ..., published run)" of a published verdict that stands."""
        found = ours(self.published) if self.published else ""
        return f"{found.removesuffix(')')}, published run)" if found else self.ours

    def _repr_html_(self) -> str:
        lines = [("Paper", f"{claims.paper_words(self.paper)} ({self.source})")]
        lines += [("Here", self.ours)] if self.ours else []
        lines += [("Compared", self.compared), ("Tendency", tendency_words(asdict(self))),
                  ("Published", published_words(self.published)), ("Why", self.reason),
                  ("Verdict expected", needed_words(asdict(self))),
                  ("Checked", self.checked), ("Changed", self.changed),
                  ("Measured on", measured_on(_of_its_points(asdict(self))))]
        disk = on_disk(_of_its_points(asdict(self)))
        return (f'<div class="labbook-claim" id="claim-{_escape(self.id)}">'
                f"<p>{_label(self.verdict)} <strong>{_escape(self.statement)}</strong>"
                f"{'<br/>' * bool(disk) + disk}</p>{_described(lines)}</div>")


class Verdicts(list):
    """The verdicts of one section, shown as a table: a row for each claim, its details folded."""

    def __init__(self, section: str, verdicts):
        super().__init__(verdicts)
        self.section = section

    def __repr__(self):
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        """A table of what was judged, and below it, folded, one of what no run has measured."""
        missing = [one for one in self if one.verdict == rules.NOT_RUN and not one.published]
        tables = [_table(f"{name}: {self.section}", "".join(map(_section_row, rows))) if rows else ""
                  for name, rows in (("Verdicts", [one for one in self if one not in missing]),
                                     ("Not run", missing))]
        if not missing:
            return tables[0]
        claims = f"{len(missing)} claim{'s' * (len(missing) != 1)}"
        return (f'{tables[0]}<details class="labbook-missing">'
                f"<summary>{claims} here that no run has measured yet</summary>{tables[1]}</details>")


class Board(list):
    """Claims as dicts, each with the fields of its verdict (`verdict` is None if not judged yet)."""

    def _repr_html_(self) -> str:
        return _table("Claims", "".join(
            f'<tr><th scope="row"><a href="#claim-{_escape(one["id"])}">'
            f'{_escape(one["statement"])}</a></th>{_cells(one)}</tr>' for one in self))


def judge(claim: dict, rows: list[dict], parameters, *, study: str, file, profile: str,
          environment: str, conditions: dict, run: str = "", may_lack=lambda metric: False) -> Verdict:
    """The Verdict on a claim, decided by its rule.

    rows: a dict for each point, with its parameters, `repeat` and metrics; parameters: their names;
    run: see Verdict, by default the profile. may_lack(metric): whether points may lack it, such as one that only some
    places or arms can record.
    InputError when the claim names another metric that no point has.
    """
    rule = claim["rule"]["name"]
    if rule != "not_testable" and not rows:
        outcome = rules.Outcome(rules.NOT_RUN, "nothing was measured")
    elif rule != "not_testable" and not _has_metric(claim, rows, parameters, file, may_lack):
        outcome = rules.Outcome(rules.NOT_RUN, lacks(claim))
    else:
        outcome = rules.decide(claim, rows, parameters, file=file, profile=profile)
    interval = outcome.interval
    numbers = {"measured": None, "low": None, "high": None, "level": None, "n": 0}
    if interval:
        numbers = {"measured": _finite(interval.value), "low": _finite(interval.low),
                   "high": _finite(interval.high), "level": interval.level, "n": interval.n}
    return Verdict(
        study=study, **{k: claim[k] for k in ("id", "statement", "source", "paper")}, **numbers,
        unit=outcome.unit, verdict=outcome.verdict, reason=outcome.reason, profile=profile,
        environment=environment, conditions=conditions, checked=claim.get("checked", ""),
        changed=claim.get("changed", ""), owner=claim["owner"], headline=claim["headline"], run=run or profile,
        tendency=outcome.tendency, repeats_needed=outcome.repeats_needed,
        compared=compared.words(study, claim))


def _finite(value) -> float | None:
    return float(value) if math.isfinite(value) else None


def lacks(claim: dict) -> str:
    """The reason of a claim whose points were measured without its metric."""
    return f"no point of this run has {compared.plain(claim['metric'])}"


def _has_metric(claim, rows, parameters, file, may_lack) -> bool:
    """False where the claim's points were measured without its metric. True also where none of them was measured, which
    its rule finds out. InputError for a metric that no point can have."""
    where = claim["rule"].get("where") or {}
    has_points = any(all(matches(row.get(name), want) for name, want in where.items()) for row in rows)
    if not has_points or any(isinstance(row.get(claim["metric"]), Real) for row in rows):
        return True
    if may_lack(claim["metric"]) and all(is_missing(row.get(claim["metric"])) for row in rows):
        return False
    own = {"point", *parameters, "repeat", "block", "order", "stale"}
    known = sorted({name for row in rows for name, value in row.items()
                    if name not in own and isinstance(value, Real)})
    raise InputError(f"no metric {claim['metric']!r} with numbers was recorded", file=file,
                     key=f"{claim['id']}.metric", allowed=known)


def badge(verdict: str | None) -> str:
    """The verdict as HTML: a word in a coloured label. The word alone is sufficient."""
    word = verdict or "not judged yet"
    kind = {rules.NOT_TESTABLE: "not-testable"}.get(word, word.replace(" ", "-"))
    return f'<span class="verdict verdict-{kind}">{_escape(word)}</span>'


def _label(verdict: str | None) -> str:
    """The badge with its colours in place, for notebooks that are read without the book's style sheet."""
    if verdict not in COLOURS:
        return badge(verdict)
    name, ink, paper = COLOURS[verdict]
    style = (f"color:var(--lb-{name},{ink});background:var(--lb-{name}-bg,{paper});"
             "padding:.1em .65em;border-radius:1em;font-weight:600")
    return badge(verdict).replace("<span ", f'<span style="{style}" ', 1)


def ours(one: dict) -> str:
    """The measured value in words: "2.4 times (2.1 to 2.6 at a level of 95 %, 6 repeats)"; may be empty. Where
    repeats are too few for a verdict, "2.4 times (2.1 to 2.6 in 3 repeats)": that interval is their range."""
    if not one.get("n"):
        return ""
    head = _measured(one)
    if one["n"] == 1 or not _has_interval(one):
        return f"{head} ({rules.repeats(one['n'])})"
    if one["level"] < LEVEL:
        return f"{head} ({_ends(one)} in {one['n']} repeats)"
    return f"{head} ({_ends(one)} at a level of {math.floor(100 * one['level'])} %, {one['n']} repeats)"


def _measured(one) -> str:
    if one["measured"] is not None:
        return f"{_number(one['measured'], one['unit'])} {one['unit']}".rstrip()
    # only a growth over none, and a crossing that no value of `along` has, are endless
    return ("no growth to compare with" if one["unit"] == "times"
            else f"no crossing in the measured range of {one['unit']}")


def _has_interval(one) -> bool:
    """Whether there is a number: of an endless median with endless bounds there is none."""
    return any(one[key] is not None for key in ("measured", "low", "high"))


def _ends(one) -> str:
    """The interval in words; one-sided where it has one end."""
    low, high = (None if one[key] is None else _number(one[key], one["unit"]) for key in ("low", "high"))
    if low and high:
        return f"{low} to {high}"
    return f"at most {high}" if high else f"at least {low}" if low else "no bound on either side"


def brief(one: dict) -> str:
    """The measured value and its interval without level and repeats: "2.4 times (2.1 to 2.6)"; may be
    empty."""
    return re.sub(r" (at a level of \d+ %,|in) \d+ repeats\)$", ")", ours(one))


def here(one: dict) -> str:
    """The measured value in words, and the reason where nothing could be compared."""
    reason = one["reason"] if _undecided(one) else ""
    return "; ".join(filter(None, (ours(one), reason)))


def tendency_words(one: dict) -> str:
    """Where an open claim's repeats point: "tendency: replicated (75 %)"; may be empty."""
    lean = one.get("tendency")
    return f"tendency: {lean['verdict']} ({math.floor(100 * lean['level'])} %)" if lean else ""


def needed_words(one: dict) -> str:
    """After how many repeats an open claim is expected to have a verdict; empty for others, and for a single repeat."""
    if one["verdict"] != rules.OPEN or one["n"] < 2:
        return ""
    after = (f"after {one['repeats_needed']} repeats" if one["repeats_needed"]
             else f"after no number of repeats up to {LOOKS[-1]}")
    return f"{after}, if further ones are like these"


def published_words(one: dict | None) -> str:
    """A published verdict: "replicated, 2026-11-20, AMD EPYC, 2 cores: 2.4 times (...)"; may be empty."""
    if not one:
        return ""
    where = one["conditions"]
    parts = [one["verdict"], where.get("to", "")[:10],
             f"{where['cpu']}, {where['cores']} cores" if where else "", disk_words(where)]
    return ", ".join(filter(None, parts)) + (f": {ours(one)}" if ours(one) else "")


def disk_words(conditions: dict | None) -> str:
    """"on a modelled disk (hdd_2010)", of a verdict that stands on one; else empty."""
    names = (conditions or {}).get("disk_models", ())
    return f"on a modelled disk ({', '.join(names)})" if names else ""


def on_disk(conditions: dict | None) -> str:
    """HTML: that a verdict stands on a modelled disk, with links to the models; empty if it does not."""
    names = (conditions or {}).get("disk_models", ())
    links = (f'<a href="../book/modelled_disks.html#{_escape(name)}">{_escape(name)}</a>' for name in names)
    return f'<span class="lb-faint">on a modelled disk: {", ".join(links)}</span>' if names else ""


def _undecided(one: dict) -> bool:
    return one["verdict"] in (rules.NOT_TESTABLE, rules.NOT_RUN) or not one.get("n")


def _number(value: float, unit: str) -> str:
    """Three significant digits without zeros at the end; of ratios near 1 three decimals; of shares, in percent."""
    if unit == "times" and NEAR_1[0] < value < NEAR_1[1]:
        return ratio_text(value)
    if is_share(unit):
        return f"{_number(100 * value, '')} %"
    text = three_digits(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def three_digits(value: float) -> str:
    """Three significant digits with thousands separators and no exponent: 0.0123, 4.50, 78.9, 9,840."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}" if rounded else "0"


def _of_its_points(one: dict) -> dict:
    """The conditions of a verdict's points. Those of a claim that was not run are of its experiment's other points."""
    return {} if one["verdict"] == rules.NOT_RUN else one["conditions"]


def measured_on(conditions: dict) -> str:
    """Processor, profile and time from Study.conditions in a line, and how many points are stale."""
    if not conditions:
        return ""
    where = (f"{conditions['cpu']}, {conditions['cores']} cores, {conditions['profile']} profile, "
             f"{conditions['to']}")
    stale = conditions["stale"]
    return where + (f"; {stale} of {conditions['points']} points by {earlier(conditions)}"
                    if stale else "")


def earlier(conditions: dict) -> str:
    """Why points are stale, in words: "earlier code", "other versions (...)", or both."""
    because = conditions.get("stale_because") or ["code"]
    versions = ", ".join(what for what in because if what != "code")
    return " and ".join(["earlier code"] * ("code" in because)
                        + [f"other versions ({versions})"] * bool(versions))


def _section_row(verdict: Verdict) -> str:
    one = asdict(verdict)
    lines = [("Why", "" if _undecided(one) else one["reason"]), ("Verdict expected", needed_words(one)),
             ("Checked", one["checked"]), ("Changed", one["changed"]), ("Source", one["source"]),
             ("Measured on", measured_on(_of_its_points(one)))]
    label = _escape(f"details of: {one['statement']}")
    details = (f'<details><summary aria-label="{label}">details</summary>'
               f"{_described(lines)}</details>")
    return (f'<tr id="claim-{_escape(one["id"])}"><th scope="row">{_escape(one["statement"])}</th>'
            f"{_cells(one, details)}</tr>")


def _cells(one: dict, details: str = "") -> str:
    """The cells after the statement; narrow screens show `data-label` as their heading."""
    measured = _lines(_escape(here(one)), faint(one.get("compared") if one.get("n") else ""),
                      on_disk(one.get("conditions")) if one.get("n") else "")
    stands = one.get("published")
    answer = _lines(_label(one["verdict"]), faint(tendency_words(one)),
                    stands and faint(f"published: {published_words(stands)}", stands.get("link")))
    texts = _escape(claims.paper_words(one["paper"])), measured + details, answer
    return "".join(f'<td data-label="{name}">{text}</td>' for name, text in zip(COLUMNS[1:], texts))


def _lines(*parts) -> str:
    return "<br/>".join(filter(None, parts))


def faint(text, link: str | None = None) -> str:
    """A text in grey, as a link if there is one; empty for no text."""
    inner = f'<a href="{_escape(link)}">{_escape(text)}</a>' if link else _escape(text or "")
    return f'<span class="lb-faint">{inner}</span>' if text else ""


def _described(lines) -> str:
    return "<dl>" + "".join(f"<dt>{_escape(name)}</dt><dd>{_escape(text)}</dd>"
                            for name, text in lines if text) + "</dl>"


def _table(label: str, body: str) -> str:
    heads = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    return (f'<div class="labbook-scroll" role="region" tabindex="0" aria-label="{_escape(label)}">'
            f'<table class="labbook-table labbook-claims"><thead><tr>{heads}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>")


def _escape(text) -> str:
    return html.escape(str(text), quote=True)

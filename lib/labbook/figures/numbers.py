"""Names and numbers as text: the same in axes, tables and prose."""

import math
from numbers import Integral, Real
from pathlib import Path

import pandas as pd

from labbook.claims.decisions import NEAR_1, ratio_text
from labbook.claims.paper_file import load
from labbook.claims.statistics import Interval, median_interval, ratio
from labbook.claims.verdict import three_digits
from labbook.figures.repeats import client_limited, of, of_one_machine, of_those_made, run_words

_names = {}
NOT_MEASURED_TEXT = "not measured"
LIMITED_TEXT = "not known (the clients were the limit in some repeats)"


def use_names(paper_file: Path) -> None:
    """Use the `names` of paper.yml for parameter values in all figures from now on."""
    _names.clear()
    _names.update(load(paper_file).get("names") or {})


def name(value, parameter="") -> str:
    """The display name of a value. paper.yml lists numbers and booleans with their parameter:
    `segments 2`, `cache true`."""
    is_float = isinstance(value, Real) and not isinstance(value, Integral)
    plain = f"{value:g}" if is_float else str(value)
    known = f"{parameter} {plain.lower() if plain in ('True', 'False') else plain}"
    return _names.get(known, _names.get(value, plain))


def in_order(values, parameter="") -> list:
    """Distinct values in the order of `names`; values that it lacks follow, sorted."""
    listed = list(_names.values())
    return sorted(set(values), key=lambda value: (
        listed.index(called) if (called := name(value, parameter)) in listed else len(listed),
        value))


def quantity(label: str) -> tuple[str, str]:
    """Split an axis label at its last comma into its text and unit: `round trip, ms`."""
    text, comma, unit = label.rpartition(", ")
    return (text, unit) if comma else (label, "")


def amount(value: float, unit: str) -> str:
    """A number with three significant digits and its unit, if any."""
    return f"{number(value)} {unit}".rstrip()


def number(value: float, unit: str = "") -> str:
    """Three significant digits with thousands separators: 0.0123, 4.56, 78.9, 1,230. Of ratios, whose unit is
    "times", those near 1 as in verdicts: 1.004."""
    if value is None or math.isnan(value):
        return "–"
    if unit == "times" and NEAR_1[0] < value < NEAR_1[1]:
        return ratio_text(value)
    return three_digits(value)


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def between(low: float, high: float, unit: str = "") -> str:
    """An interval: `0.41 to 0.47 ms`."""
    return f"{number(low)} to {number(high)}" + (f" {unit}" if unit else "")


def with_values(summary: pd.DataFrame, parameter: str, otherwise) -> str:
    """The values of a parameter in the points that are shown, which may be published ones: `2 and 4`. `otherwise`: the
    run's own value or values, where there is no such point."""
    there = summary[parameter].dropna() if parameter in summary else ()
    chosen = otherwise if isinstance(otherwise, list) else [otherwise]
    *others, last = [name(value, parameter) for value in sorted(set(there if len(there) else chosen))]
    return f"{', '.join(others)} and {last}" if others else last


def measured(summary: pd.DataFrame, metric: str, unit: str, **where) -> str:
    """Median and interval over the repeats at one setting: `0.452 ms (0.441 to 0.470)`."""
    summary = of_one_machine(summary, where)
    values = _values(summary, metric, where)
    return (_words(median_interval(values.values()), unit, _run(summary, where), _made(summary, where)) if values else
            _why_none(summary, metric, where))


def times(summary: pd.DataFrame, metric: str, of: dict, than: dict, **where) -> str:
    """Median ratio of a metric between two arms, paired by repeat: `2.4 times (2.1 to 2.6)`."""
    summary = of_one_machine(summary, {**where, **of}, {**where, **than})
    one, other = (_values(summary, metric, {**where, **arm}) for arm in (of, than))
    paired = {repeat: value for repeat, value in one.items() if other.get(repeat)}      # a value of 0 has no ratio
    if not paired:
        return _why_none(summary, metric, {**where, **of}, {**where, **than})
    return _words(ratio(paired, other), "times", _run(summary, {**where, **of}), _made(summary, {**where, **of}))


def percent_saved(summary: pd.DataFrame, metric: str, of: dict, than: dict, **where) -> str:
    """What the arm `than` saves of the metric of `of`, paired by repeat: `3.10 % (2.05 to 4.40)`."""
    summary = of_one_machine(summary, {**where, **of}, {**where, **than})
    one, other = (_values(summary, metric, {**where, **arm}) for arm in (of, than))
    found = [100 * (1 - other[repeat] / one[repeat]) for repeat in one.keys() & other.keys() if one[repeat]]
    run, count = _run(summary, {**where, **of}), _made(summary, {**where, **of})
    return _words(median_interval(found), "%", run, count) if found else _why_none(
        summary, metric, {**where, **of}, {**where, **than})


def _values(summary, metric, where) -> dict:
    """repeat -> value at one setting. Empty if the clients limited any repeat: a number in a sentence is no bound."""
    chosen = of(summary, **where)
    if not len(chosen) or client_limited(chosen, metric).any():
        return {}
    return chosen.dropna(subset=[metric]).groupby("repeat")[metric].mean().to_dict()


def _why_none(summary, metric, *settings) -> str:
    """Why a metric has no number at these settings, of which each was measured or not."""
    points = [of(summary, **where) for where in settings]
    if not all(map(len, points)) or metric not in summary:
        return NOT_MEASURED_TEXT
    if any(client_limited(each, metric).any() for each in points):
        return LIMITED_TEXT
    counts = [each["repeat"].nunique() for each in points if each[metric].isna().all()]
    return f"not known (no value in {plural(max(counts), 'repeat')})" if counts else NOT_MEASURED_TEXT


def counted(text: str, *summaries: pd.DataFrame) -> str:
    """A count of points in words, and whose these are if not all are this run's: "2 of 18 runs (published run)"."""
    there = [one for one in summaries if len(one)]
    run = run_words(pd.concat(there)).lower() if there else ""
    return f"{text} ({run})" if run else text


def _run(summary, where) -> str:
    """Whose the number of a setting is, if not this run's."""
    return run_words(of(summary, **where)).lower()


def _made(summary, where) -> int:
    """How many repeats of a setting were made, also those without the metric."""
    return of(summary, **where)["repeat"].nunique()


def _words(found: Interval, unit: str, run: str, repeats: int) -> str:
    head = f"{number(found.value, unit)} {unit}".rstrip()
    ends = "" if found.n == 1 else f"{number(found.low, unit)} to {number(found.high, unit)}"
    spread = " ".join(filter(None, (ends, of_those_made(found.n, repeats, found.level))))
    notes = ", ".join(filter(None, (spread, run)))
    return f"{head} ({notes})" if notes else head

"""Numbers for prose, with their intervals, glued in from the summaries and never typed."""

import pandas as pd

from labbook.claims.statistics import Interval, median_interval, ratio
from labbook.figures.repeats import client_limited
from labbook.figures.tables import Table
from labbook.figures.words import between, number

NOTHING = "not measured"


def measured(summary: pd.DataFrame, metric: str, unit: str, **where) -> str:
    """Median and interval over the repeats at one setting: `0.452 ms (0.441 to 0.470)`."""
    values = _values(summary, metric, where)
    return _words(median_interval(values.values()), unit) if values else NOTHING


def times(summary: pd.DataFrame, metric: str, of: dict, than: dict, **where) -> str:
    """How many times the metric of one arm is that of another, paired by repeat."""
    one, other = (_values(summary, metric, {**where, **arm}) for arm in (of, than))
    if not one.keys() & other.keys():
        return NOTHING
    return _words(ratio(one, other), "times")


def percent_saved(summary: pd.DataFrame, metric: str, of: dict, than: dict, **where) -> str:
    """What the arm `than` saves of the metric of `of`, paired by repeat: `3.10 % (2.05 to 4.40)`."""
    one, other = (_values(summary, metric, {**where, **arm}) for arm in (of, than))
    found = [100 * (1 - other[repeat] / one[repeat]) for repeat in one.keys() & other.keys()]
    return _words(median_interval(found), "%") if found else NOTHING


def ratios(summary: pd.DataFrame, metric: str, rows) -> Table:
    """A table of what makes how much of a difference. `rows`: (words, of, than, where), each a
    ratio of the metric of two arms, paired by repeat."""
    body = tuple((words, times(summary, metric, of, than, **where))
                 for words, of, than, where in rows)
    return Table(("Compared", "Median ratio of the repeats, and its interval"), body,
                 label="what makes how much of a difference")


def _values(summary, metric, where) -> dict:
    """repeat -> value at one setting, of repeats that have one; nothing where the clients limited
    it, were it in one repeat only, as in the rules of verdicts."""
    chosen = summary
    for name, value in where.items() if len(summary) else ():   # what was left out has no parameters
        chosen = chosen[chosen[name] == value]
    if not len(chosen) or client_limited(chosen).any():
        return {}
    found = chosen.dropna(subset=[metric])
    return dict(zip(found["repeat"], found[metric]))


def _words(found: Interval, unit: str) -> str:
    head = f"{number(found.value)} {unit}".rstrip()
    return head if found.n == 1 else f"{head} ({between(found.low, found.high)})"

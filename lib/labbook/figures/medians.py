"""A table of metrics at each setting: median of the repeats and its interval."""

import pandas as pd

from labbook.figures.plots import with_metric
from labbook.figures.repeats import over_repeats
from labbook.figures.tables import Table
from labbook.figures.words import between, in_order, name, number

LACKING = "–"


def medians(summary: pd.DataFrame, *, by: dict[str, str], metrics: dict[str, str],
            label: str, caption="Medians of the repeats, and their intervals.") -> Table:
    """A row for each setting of the parameters `by` and a column for each of `metrics`, both with
    what to call them: {"load": "Load"}, {"join_s": "A join, s"}. In the order of paper.yml's names,
    the first parameter first. A metric that a setting lacks is a dash; without any, a table that
    says so."""
    parameters, found = list(by), {}
    for metric in metrics:
        rows = with_metric(summary, metric) if set(parameters) <= set(summary) else summary.iloc[:0]
        for point in over_repeats(rows, parameters, metric).itertuples() if len(rows) else ():
            setting = tuple(getattr(point, parameter) for parameter in parameters)
            found.setdefault(setting, {})[metric] = _cell(point)
    head = (*by.values(), *metrics.values())
    if not found:
        return Table(head, (("Not measured in this profile.", *[LACKING] * (len(head) - 1)),), label=label)
    order = [in_order([setting[i] for setting in found], parameter)
             for i, parameter in enumerate(parameters)]
    rows = sorted(found, key=lambda setting: [order[i].index(value) for i, value in enumerate(setting)])
    body = tuple((*(name(value, parameter) for value, parameter in zip(setting, parameters)),
                  *(found[setting].get(metric, LACKING) for metric in metrics)) for setting in rows)
    return Table(head, body, caption=caption, label=label)


def _cell(point) -> str:
    return number(point.median) + (f" ({between(point.low, point.high)})" if point.n > 1 else "")

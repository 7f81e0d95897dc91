"""A table of how many runs had which outcome."""

import pandas as pd

from labbook.figures.tables import Table
from labbook.figures.words import in_order, name

ALL = "all"


def counted(summary: pd.DataFrame, *, by: dict[str, str], outcomes: dict[str, str], label: str,
            caption="Numbers of runs.") -> Table:
    """A row for each setting of the parameters `by` (with what to call them), how many runs there
    were, and in how many of them each of the metrics `outcomes` was not 0; last, all together. A
    run that lacks a metric is a dash where all do, else not counted."""
    head = (*by.values(), "Runs", *outcomes.values())
    if not len(summary) or not set(by) <= set(summary):
        return Table(head, (("Not measured in this profile.", *["–"] * (len(head) - 1)),), label=label)
    groups = {setting: rows for setting, rows in summary.groupby(list(by), sort=True)}
    order = [in_order([setting[i] for setting in groups], p) for i, p in enumerate(by)]
    settings = sorted(groups, key=lambda s: [order[i].index(value) for i, value in enumerate(s)])
    body = [(*(name(value, p) for value, p in zip(setting, by)), *_cells(groups[setting], outcomes))
            for setting in settings]
    body.append((ALL, *[""] * (len(by) - 1), *_cells(summary, outcomes)))
    return Table(head, tuple(body), caption=caption, label=label)


def _cells(rows, outcomes):
    yield str(len(rows))
    for metric in outcomes:
        found = pd.to_numeric(rows[metric]).dropna() if metric in rows else pd.Series(dtype=float)
        yield str(int((found != 0).sum())) if len(found) else "–"

"""What a paper prints and what was measured, setting by setting, in one table."""

import math

import pandas as pd

from labbook.figures.plots import with_metric
from labbook.figures.repeats import over_repeats
from labbook.figures.tables import Table
from labbook.figures.words import between, in_order, name, number

LACKING = "–"


def beside(printed: pd.DataFrame, summary: pd.DataFrame, *, by: dict[str, str], arm: str, metric: str,
           unit: str, label: str) -> Table:
    """A row for each setting of the parameters `by` that is printed or measured, with what to call
    them, {"image_gb": "Image, GB"}; for each value of `arm` a column as printed and one as measured.

    `printed` has the same columns; where its `metric` is missing, its `cell` begins with what the
    paper has there. Measured: the median of the repeats and its interval.
    """
    parameters, cells = list(by), {}
    for row in printed.to_dict("records"):
        cells.setdefault(_setting(row, parameters), {})[row[arm], "paper"] = _printed(row, metric)
    known = {arm, *parameters} <= set(summary)
    found = with_metric(summary, metric) if known else summary.iloc[:0]
    for point in over_repeats(found, [arm, *parameters], metric).itertuples() if len(found) else ():
        spread = f" ({between(point.low, point.high)})" if point.n > 1 else ""
        cells.setdefault(_setting(point._asdict(), parameters), {})[getattr(point, arm), "here"] = (
            number(point.median) + spread)
    arms = in_order({value for of in cells.values() for value, _ in of}, arm)
    columns = [(value, where) for value in arms for where in ("paper", "here")]
    head = (*by.values(), *(f"{name(value, arm)}, {where}, {unit}" for value, where in columns))
    order = [in_order([setting[i] for setting in cells], parameter) for i, parameter in enumerate(parameters)]
    rows = sorted(cells, key=lambda setting: [order[i].index(value) for i, value in enumerate(setting)])
    return Table(head, tuple(
        (*(name(value, parameter) for value, parameter in zip(setting, parameters)),
         *(cells[setting].get(column, "") for column in columns)) for setting in rows), label=label,
        caption="Paper: as printed. Here: median of the repeats and its interval. Empty: no such setting.")


def _setting(row, parameters) -> tuple:
    return tuple(row[parameter] for parameter in parameters)


def _printed(row, metric) -> str:
    if not math.isnan(row[metric]):
        return number_as_printed(row[metric])
    return str(row.get("cell", LACKING)).split()[0].replace("-", LACKING)


def number_as_printed(value: float) -> str:
    return f"{value:,.10g}"

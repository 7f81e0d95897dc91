"""The chart of `study.explore()`: any metric over any parameter."""

from dataclasses import replace

from pandas.api.types import is_bool_dtype, is_numeric_dtype

from labbook.figures.canvas import Picture
from labbook.figures.numbers import plural
from labbook.figures.plots import dot_chart, line_chart
from labbook.figures.repeats import with_metric

TOGETHER, ALL = "together", "all points"     # a column for what is compared where nothing is


def chart(summary, x: str, hue: str | None, metric: str) -> Picture:
    """A line chart over a parameter of numbers, a dot chart over another; a colour a value of `hue`."""
    summary = summary.assign(**{TOGETHER: ALL} if hue is None else {hue: _texts(summary[hue])})
    hue, label = hue or TOGETHER, f"value of {metric}"
    if is_numeric_dtype(summary[x]) and not is_bool_dtype(summary[x]):
        known = summary.dropna(subset=[x])
        drawn = line_chart(known, x=x, hue=hue, metric=metric, x_label=x, label=label)
        lacking = len(with_metric(summary, metric)) - len(with_metric(known, metric))
        words = f" {plural(lacking, 'point')} without {x}: left out." if lacking else ""
        return replace(drawn, caption=drawn.caption + words)
    return dot_chart(summary.assign(**{x: _texts(summary[x])}), y=x, hue=hue, metric=metric, label=label)


def _texts(column) -> list[str]:
    return [str(None if value != value else value) for value in column.tolist()]

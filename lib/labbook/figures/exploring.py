"""The chart of `study.explore()`: any metric over any parameter."""

from pandas.api.types import is_bool_dtype, is_numeric_dtype

from labbook.figures.canvas import Picture
from labbook.figures.plots import dot_chart, line_chart

TOGETHER, ALL = "together", "all points"     # a column for what is compared where nothing is


def chart(summary, x: str, hue: str | None, metric: str) -> Picture:
    """A line chart over a parameter of numbers, a dot chart over another; a colour a value of `hue`."""
    summary = summary.assign(**{TOGETHER: ALL} if hue is None else {hue: _texts(summary[hue])})
    hue, label = hue or TOGETHER, f"value of {metric}"
    if is_numeric_dtype(summary[x]) and not is_bool_dtype(summary[x]):
        return line_chart(summary.dropna(subset=[x]), x=x, hue=hue, metric=metric, x_label=x, label=label)
    return dot_chart(summary.assign(**{x: _texts(summary[x])}), y=x, hue=hue, metric=metric, label=label)


def _texts(column) -> list[str]:
    return [str(None if value != value else value) for value in column.tolist()]

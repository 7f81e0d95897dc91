"""Figures over the number of clients: mean time, and the rate beside what the clients can do."""

import pandas as pd
from matplotlib.lines import Line2D

from labbook.figures import plots as lines
from labbook.figures.canvas import NOT_MEASURED, Picture, panel
from labbook.figures.repeats import over_repeats
from labbook.figures.theme import FAINT, styles, theme
from labbook.figures.words import name, number


def time_over_clients(summary: pd.DataFrame, *, hue="store", col="op", note="") -> Picture:
    """Mean time of a request over the number of clients, one panel for each value of `col`, with
    `note` behind it in its title: see `over`."""
    return lines.over(summary, x="clients", hue=hue, col=col, metric="mean_ms", x_label="clients",
                      label="mean time of a request, ms", note=note)


def rate_over_clients(summary: pd.DataFrame, ceiling: pd.DataFrame, *, threshold=0.7, hue="store",
                      col="op", x="clients", metric="rate_per_s", note="") -> Picture:
    """Requests a second over the number of clients, beside what the same clients reach against a
    server that does nothing; above `threshold` of that a point says little about the server."""
    if not len(summary):
        return NOT_MEASURED
    with theme():
        highest = over_repeats(ceiling, [hue, col, x], metric)["median"].max()
        shared = {"colours": styles(summary[hue]), "threshold": threshold, "note": note,
                  "top": 1.08 * max(summary[metric].max(), highest)}
        panels = [_rate_panel(rows, ceiling[ceiling[col] == value], value, hue, x, metric, shared)
                  for value, rows in summary.groupby(col, sort=True)]
    return Picture(tuple(panels), lines.caption(
        "Requests a second; line: median of the repeats; dashed: the clients' own ceiling, shaded "
        f"from {threshold:.0%} of it", summary))


def _rate_panel(rows, ceiling, value, hue, x, metric, shared):
    title = ", ".join(filter(None, (name(value), shared["note"])))
    figure, axes = lines.axes_over(rows[x], "clients", "requests a second", shared["top"])
    limits = over_repeats(ceiling, [hue, x], metric)
    medians = over_repeats(rows, [hue, x], metric)
    for value, line in medians.groupby(hue, sort=True):
        colour, marker = shared["colours"][value]
        limit = limits[limits[hue] == value]
        axes.plot(limit[x], limit["median"], color=colour, linestyle=(0, (4, 3)), linewidth=1.2)
        axes.fill_between(limit[x], shared["threshold"] * limit["median"], limit["median"],
                          color=colour, alpha=0.07, linewidth=0)
        axes.plot(line[x], line["median"], color=colour, linewidth=1.8, zorder=3)
        lines.dots(axes, rows[rows[hue] == value], x, metric, colour, marker)
    lines.legend(figure, title, hue, shared["colours"], rows,
                 more=[Line2D([], [], color=FAINT, linestyle=(0, (4, 3)), label="ceiling")])
    return panel(figure, _rate_alt(title, medians, limits, hue, x))


def _rate_alt(title, medians, limits, hue, x):
    ceilings = [f"{name(value, hue)} {number(line['median'].min())} to {number(line['median'].max())}"
                for value, line in limits.groupby(hue, sort=True)]
    return (lines.alt(title, medians, hue, x, "clients", "requests a second")
            + " Ceiling of the clients: " + ", ".join(ceilings) + ".")

"""Figures over the number of clients: mean time, and the rate beside what the clients can do."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from labbook.figures.legend import entry, head
from labbook.figures.picture import NOT_MEASURED, Picture, panel
from labbook.figures.repeats import band_words, client_limited, over_repeats
from labbook.figures.theme import FAINT, PANEL_INCHES, PAPER, styles, theme
from labbook.figures.words import name, ms, number, plural


def time_over_clients(summary: pd.DataFrame, *, hue="store", col="op", x="clients",
                      measure="mean_ms", note="") -> Picture:
    """Mean time of a request over the number of clients, one panel for each value of `col`, with
    `note` behind it in its title.

    `summary` has a row for each point: `x`, `hue`, `col`, `measure` (ms) and, where it is known,
    `client_limited`. Every repeat is drawn; those that the clients limited are hollow. An empty
    summary is told so.
    """
    if not len(summary):
        return NOT_MEASURED
    with theme():
        shared = {"colours": styles(summary[hue]), "top": 1.08 * summary[measure].max(),
                  "note": note}
        panels = [_time_panel(rows, value, hue, x, measure, shared)
                  for value, rows in summary.groupby(col, sort=True)]
    spread = over_repeats(summary, [hue, col, x], measure)
    return Picture(tuple(panels), _caption(
        f"Mean time of a request; {band_words(spread)}", summary))


def _time_panel(rows, title, hue, x, measure, shared):
    title = _title(title, shared["note"])
    figure, axes = _axes("clients", "mean time of a request, ms", rows[x],
                         shared["top"])
    medians = over_repeats(rows, [hue, x], measure)
    for value, line in medians.groupby(hue, sort=True):
        colour, marker = shared["colours"][value]
        axes.fill_between(line[x], line["low"], line["high"], color=colour, alpha=0.16, linewidth=0)
        axes.plot(line[x], line["median"], color=colour, linewidth=1.8, zorder=3)
        _dots(axes, rows[rows[hue] == value], x, measure, colour, marker)
    _legend(figure, title, {v: shared["colours"][v] for v in sorted(rows[hue].unique())},
            limited=client_limited(rows).any())
    return panel(figure, _time_alt(title, medians, hue, x))


def rate_over_clients(summary: pd.DataFrame, ceiling: pd.DataFrame, *, threshold=0.7, hue="store",
                      col="op", x="clients", measure="rate_per_s", note="") -> Picture:
    """Requests a second over the number of clients, beside what the same clients reach against a
    server that does nothing; above `threshold` of that a point says little about the server."""
    if not len(summary):
        return NOT_MEASURED
    with theme():
        highest = over_repeats(ceiling, [hue, col, x], measure)["median"].max()
        shared = {"colours": styles(summary[hue]), "threshold": threshold, "note": note,
                  "top": 1.08 * max(summary[measure].max(), highest)}
        panels = [_rate_panel(rows, ceiling[ceiling[col] == value], value, hue, x, measure, shared)
                  for value, rows in summary.groupby(col, sort=True)]
    return Picture(tuple(panels), _caption(
        "Requests a second; line: median of the repeats; dashed: the clients' own ceiling, shaded "
        f"from {threshold:.0%} of it", summary))


def _rate_panel(rows, ceiling, title, hue, x, measure, shared):
    title = _title(title, shared["note"])
    figure, axes = _axes("clients", "requests a second", rows[x], shared["top"])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    limits = over_repeats(ceiling, [hue, x], measure)
    for value, line in over_repeats(rows, [hue, x], measure).groupby(hue, sort=True):
        colour, marker = shared["colours"][value]
        limit = limits[limits[hue] == value]
        axes.plot(limit[x], limit["median"], color=colour, linestyle=(0, (4, 3)), linewidth=1.2)
        axes.fill_between(limit[x], shared["threshold"] * limit["median"], limit["median"],
                          color=colour, alpha=0.07, linewidth=0)
        axes.plot(line[x], line["median"], color=colour, linewidth=1.8, zorder=3)
        _dots(axes, rows[rows[hue] == value], x, measure, colour, marker)
    _legend(figure, title, {v: shared["colours"][v] for v in sorted(rows[hue].unique())},
            limited=client_limited(rows).any(),
            more=[Line2D([], [], color=FAINT, linestyle=(0, (4, 3)), label="ceiling")])
    return panel(figure, _rate_alt(title, over_repeats(rows, [hue, x], measure), limits, hue, x))


def _title(value, note) -> str:
    return ", ".join(filter(None, (name(value), note)))


def _axes(x_label, y_label, counts, top):
    figure = Figure(figsize=PANEL_INCHES, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_ylim(0, top)
    axes.set_xlim(0, 1.04 * max(counts))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.tick_params(length=0)
    axes.grid(axis="x", visible=False)
    return figure, axes


def _dots(axes, rows, x, measure, colour, marker):
    limited = client_limited(rows)
    for hollow, part in ((False, rows[~limited]), (True, rows[limited])):
        axes.scatter(part[x], part[measure], s=26, marker=marker, zorder=4, linewidth=1.2,
                     facecolor=PAPER if hollow else colour, edgecolor=colour if hollow else PAPER)


def _legend(figure, title, entries, *, limited, more=()):
    handles = [entry(name(value), *style) for value, style in entries.items()]
    if limited:
        handles.append(Line2D([], [], color=FAINT, marker="o", markerfacecolor=PAPER, linewidth=0,
                              label="limited by the clients"))
    head(figure, title, [*handles, *more])


def _caption(what, summary):
    words = f"{what}."
    limited = int(client_limited(summary).sum())
    if limited:
        words += (f" {plural(limited, 'measurement')} of {len(summary)} limited by the clients:"
                  " drawn hollow, judged by no rule.")
    return words


def _time_alt(title, medians, hue, x):
    lines = [f"{name(value)}: " + ", ".join(
        f"{ms(row.median)} with {plural(getattr(row, x), 'client')}" for row in line.itertuples())
        for value, line in medians.groupby(hue, sort=True)]
    return (f"Line chart, {title}: mean time of a request over clients. "
            + "; ".join(lines) + ".")


def _rate_alt(title, medians, limits, hue, x):
    lines = [f"{name(value)}: " + ", ".join(
        f"{number(row.median)} with {plural(getattr(row, x), 'client')}"
        for row in line.itertuples()) for value, line in medians.groupby(hue, sort=True)]
    ceilings = [f"{name(value)} {number(line['median'].min())} to {number(line['median'].max())}"
                for value, line in limits.groupby(hue, sort=True)]
    return (f"Line chart, {title}: requests a second over clients. " + "; ".join(lines)
            + ". Ceiling of the clients: " + ", ".join(ceilings) + ".")

"""A metric over a parameter: a line for each value of another, with every repeat on it."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from labbook.figures.canvas import NOT_MEASURED, Picture, panel
from labbook.figures.legend import entry, head
from labbook.figures.repeats import band_words, client_limited, over_repeats
from labbook.figures.theme import FAINT, PANEL_INCHES, PAPER, styles, theme
from labbook.figures.words import amount, in_order, name, plural, quantity


def over(summary: pd.DataFrame, *, x: str, hue: str, metric: str, x_label: str, label: str,
         col: str | None = None, note="", log=False) -> Picture:
    """`metric` over the numbers `x`, a line for each value of `hue` and a panel for each of `col`,
    from 0 up. The labels have their units behind a comma: `round trip, ms`.

    `summary` has a row for each point; what else varies in it the caller has chosen from. Every
    repeat is drawn; those that the clients limited are hollow. A panel is called by its `col`, by
    `note`, or by both. `log`: x in equal steps for equal ratios. Where nothing was measured, that
    is told.
    """
    found = with_metric(summary, metric)
    if not len(found):
        return NOT_MEASURED
    top = 1.08 * found[metric].max()
    with theme():
        colours = styles(found[hue])
        panels = []
        for value, rows in panels_of(found, col):
            title = ", ".join(filter(None, (name(value, col) if col else "", note)))
            figure, axes = axes_over(rows[x], x_label, label, top, log)
            medians = draw(axes, rows, hue, x, metric, colours)
            legend(figure, title, hue, colours, rows)
            panels.append(panel(figure, alt(title, medians, hue, x, x_label, label)))
    spread = over_repeats(found, [hue, x] + [col] * bool(col), metric)
    what = quantity(label)[0]
    return Picture(tuple(panels), caption(
        f"{what[0].upper()}{what[1:]}; {band_words(spread)}", found))


def with_metric(summary: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The points that have the metric, as numbers."""
    if metric not in summary:
        return summary.iloc[:0]
    return summary.assign(**{metric: pd.to_numeric(summary[metric])}).dropna(subset=[metric])


def panels_of(summary, col):
    """(value, its rows) for each panel, in the order of paper.yml's names."""
    if not col:
        return [("", summary)]
    return [(value, summary[summary[col] == value]) for value in in_order(summary[col], col)]


def axes_over(xs, x_label, label, top, log=False):
    figure = Figure(figsize=PANEL_INCHES, layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x_label, ylabel=label, ylim=(0, top or 1))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    least, most = min(xs), max(xs) or 1
    if log:
        axes.set(xscale="log", xlim=(least / 1.15, 1.15 * most))
        axes.xaxis.set_major_locator(FixedLocator(sorted(set(xs))))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlim(0 if least else -0.03 * most, 1.04 * most)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10], integer=True))
    axes.tick_params(length=0)
    axes.grid(axis="x", visible=False)
    return figure, axes


def draw(axes, rows, hue, x, metric, colours) -> pd.DataFrame:
    """Line of medians, band of their intervals, dots of the repeats. Returns over_repeats."""
    medians = over_repeats(rows, [hue, x], metric)
    for value, line in medians.groupby(hue, sort=True):
        colour, marker = colours[value]
        axes.fill_between(line[x], line["low"], line["high"], color=colour, alpha=0.16, linewidth=0)
        axes.plot(line[x], line["median"], color=colour, linewidth=1.8, zorder=3)
        dots(axes, rows[rows[hue] == value], x, metric, colour, marker)
    return medians


def dots(axes, rows, x, metric, colour, marker):
    limited = client_limited(rows)
    for hollow, part in ((False, rows[~limited]), (True, rows[limited])):
        axes.scatter(part[x], part[metric], s=26, marker=marker, zorder=4, linewidth=1.2,
                     facecolor=PAPER if hollow else colour, edgecolor=colour if hollow else PAPER)


def legend(figure, title, hue, colours, rows, more=()):
    handles = [entry(name(value, hue), *colours[value]) for value in sorted(rows[hue].unique())]
    if client_limited(rows).any():
        handles.append(Line2D([], [], color=FAINT, marker="o", markerfacecolor=PAPER, linewidth=0,
                              label="limited by the clients"))
    head(figure, title, [*handles, *more])


def caption(what, summary) -> str:
    words = f"{what}."
    limited = int(client_limited(summary).sum())
    if limited:
        words += (f" {plural(limited, 'measurement')} of {len(summary)} limited by the clients:"
                  " drawn hollow, judged by no rule.")
    return words


def alt(title, medians, hue, x, x_label, label) -> str:
    what, unit = quantity(label)
    over_what, x_unit = quantity(x_label)
    lines = [f"{name(value, hue)}: " + ", ".join(
        f"{amount(row.median, unit)} at {getattr(row, x):g} {x_unit}".rstrip()
        for row in line.itertuples()) for value, line in medians.groupby(hue, sort=True)]
    called = f", {title}" if title else ""
    return f"Line chart{called}: {what} over {over_what}. " + "; ".join(lines) + "."

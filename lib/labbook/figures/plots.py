"""Line charts and dot charts of a metric, with every repeat on them."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from labbook.figures.canvas import (
    FAINT,
    NOT_MEASURED,
    PANEL_INCHES,
    PAPER,
    Picture,
    entitle,
    entry,
    head,
    panel,
    styles,
    theme,
)
from labbook.figures.numbers import amount, in_order, name, number, plural, quantity
from labbook.figures.repeats import band_words, client_limited, of, over_repeats, says_run, with_metric


FEWEST = 3      # values of x that make a line; fewer are rows of a dot chart


@says_run
def line_chart(summary: pd.DataFrame, *, x: str, hue: str, metric: str, x_label: str, label: str,
         col: str | None = None, note="", log=False) -> Picture:
    """Line chart of a metric over `x`: a line for each value of `hue`, a panel for each of `col`.

    Axes start at 0, or below a negative value; labels carry their unit behind a comma (`round trip, ms`).
    `summary` has a row a point. Every repeat is drawn as a dot, hollow if the clients limited it. A panel's
    title is its `col`, `note`, or both. `log`: logarithmic x. With one or two values of `x`, it is a dot
    chart. Without measurements, a note says so.
    """
    found = with_metric(summary, metric)
    if not len(found):
        return NOT_MEASURED
    if found[x].nunique() < FEWEST:
        return _few(found, x, x_label, hue=hue, col=col, metric=metric, label=label, note=note)
    low, top = span(found[metric], 1.08)
    with theme():
        colours = styles(found[hue])
        panels = []
        for value, rows in panels_of(found, col):
            title = _title(value, col, note)
            figure, axes = axes_over(rows[x], x_label, label, top, log, low)
            medians = draw(axes, rows, hue, x, metric, colours)
            legend(figure, title, hue, colours, rows)
            panels.append(panel(figure, alt(title, medians, hue, x, x_label, label)))
    spread = over_repeats(found, [hue, x] + [col] * bool(col), metric)
    what = quantity(label)[0]
    return Picture(tuple(panels), caption(
        f"{what[0].upper()}{what[1:]}; {band_words(spread)}", found))


def _few(found, x, x_label, **given) -> Picture:
    """A dot chart with a row for each value of x, since a line through two points shows no shape."""
    what, unit = quantity(x_label)
    rows = found.sort_values(x, kind="stable")
    words = [f"{value:g} {unit or (what.removesuffix('s') if value == 1 else what)}" for value in rows[x]]
    return dot_chart(rows.assign(**{x: words}), y=x, **given)


def _title(value, col, note) -> str:
    """A panel's title."""
    return ", ".join(filter(None, (name(value, col) if col else "", note)))


def panels_of(summary, col):
    """(value of `col`, its rows) for each panel, in the order of paper.yml's names."""
    if not col:
        return [("", summary)]
    return [(value, summary[summary[col] == value]) for value in in_order(summary[col], col)]


def span(values, room: float) -> tuple[float, float]:
    """Ends of an axis with 0 and all values on it; `room`: times as far from 0 as the outermost values."""
    low, high = room * min(values.min(), 0), room * max(values.max(), 0)
    return low, high if high > low else 1


def axes_over(xs, x_label, label, top, log=False, low=0):
    """(figure, axes) over the values `xs`; low, top: ends of the other axis."""
    figure = Figure(figsize=PANEL_INCHES, layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x_label, ylabel=label, ylim=(low, top or 1))
    if low < 0:
        axes.axhline(0, color=FAINT, linewidth=1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    least, most = min(xs), max(xs) or 1
    if log:
        axes.set(xscale="log", xlim=(least / 1.15, 1.15 * most))
        axes.xaxis.set_major_locator(FixedLocator(sorted(set(xs))))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlim(1.04 * least if least < 0 else 0 if least else -0.03 * most, max(1.04 * most, 0))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10], integer=True))
    axes.tick_params(length=0)
    axes.grid(axis="x", visible=False)
    return figure, axes


def draw(axes, rows, hue, x, metric, colours) -> pd.DataFrame:
    """Draw the line of medians, the band of their intervals and the repeats; return over_repeats."""
    medians = over_repeats(rows, [hue, x], metric)
    for value, line in medians.groupby(hue, sort=True):
        colour, marker = colours[value]
        axes.fill_between(line[x], line["low"], line["high"], color=colour, alpha=0.16, linewidth=0)
        axes.plot(line[x], line["median"], color=colour, linewidth=1.8, zorder=3)
        draw_repeats(axes, rows[rows[hue] == value], x, metric, colour, marker, name(value, hue))
    return medians


def draw_repeats(axes, rows, x, metric, colour, marker, called=""):
    """A mark a repeat, hollow if the clients limited it; on hover its value. `called`: of the line."""
    limited = client_limited(rows)
    for hollow, part in ((False, rows[~limited]), (True, rows[limited])):
        marks = axes.scatter(part[x], part[metric], s=26, marker=marker, zorder=4, linewidth=1.2,
                             facecolor=PAPER if hollow else colour, edgecolor=colour if hollow else PAPER)
        entitle(marks, [on_hover(value, f"{called} at {at:g}".strip(), hollow)
                        for at, value in zip(part[x], part[metric])])


def on_hover(value, where: str, limited: bool) -> str:
    """What a repeat's mark says: "one segment at 300: 322.9"."""
    return f"{where}: {number(value)}{', limited by the clients' * bool(limited)}"


def legend(figure, title, hue, colours, rows, more=()):
    handles = [entry(name(value, hue), *colours[value]) for value in sorted(rows[hue].unique())]
    if client_limited(rows).any():
        handles.append(Line2D([], [], color=FAINT, marker="o", markerfacecolor=PAPER, linewidth=0,
                              label="limited by the clients"))
    head(figure, title, [*handles, *more])


def caption(what, summary) -> str:
    text = f"{what}."
    limited = int(client_limited(summary).sum())
    if limited:
        text += (f" {plural(limited, 'measurement')} of {len(summary)} limited by the clients:"
                 " drawn hollow; a rule takes them as bounds, or leaves them out.")
    return text


def alt(title, medians, hue, x, x_label, label) -> str:
    what, unit = quantity(label)
    over_what, x_unit = quantity(x_label)
    lines = [f"{name(value, hue)}: " + ", ".join(
        f"{amount(row.median, unit)} at {getattr(row, x):g} {x_unit}".rstrip()
        for row in line.itertuples()) for value, line in medians.groupby(hue, sort=True)]
    called = f", {title}" if title else ""
    return f"Line chart{called}: {what} over {over_what}. " + "; ".join(lines) + "."


ROW_INCHES, HEAD_INCHES = 0.3, 1.3


@says_run
def dot_chart(summary: pd.DataFrame, *, y: str, hue: str, col: str | None = None, metric="mean_ms",
              label="mean time of a request, ms", note="") -> Picture:
    """Dot chart: a panel for each value of `col`, a line for each value of `y` (in order of
    appearance), on it the repeats and the median of each `hue` with its interval.

    The axis starts at 0, so that lengths compare, or below a negative value. A panel's title is its `col`,
    `note`, or both. Repeats that the clients limited are hollow. Without measurements, a note says so.
    """
    summary = with_metric(summary, metric)
    if not len(summary):
        return NOT_MEASURED
    with theme():
        shared = {"colours": styles(summary[hue]), "span": span(summary[metric], 1.05)}
        panels = [_dot_panel(rows, _title(value, col, note), y, hue, metric, label, shared)
                  for value, rows in panels_of(summary, col)]
    spread = over_repeats(summary, [y, hue] + [col] * bool(col), metric)
    limited = int(client_limited(summary).sum())
    more = f" {limited} of {len(summary)} limited by the clients: hollow." if limited else ""
    bands = band_words(spread).replace("line: ", "dots: the repeats; line: ").replace("band", "bar")
    return Picture(tuple(panels), f"{label[0].upper()}{label[1:]}; {bands}.{more}")


def _dot_panel(rows, title, y, hue, metric, label, shared):
    lines, hues = list(dict.fromkeys(rows[y])), sorted(rows[hue].unique())
    figure = Figure(figsize=(PANEL_INCHES[0], HEAD_INCHES + ROW_INCHES * len(lines) * len(hues)),
                    layout="constrained")
    axes = figure.add_subplot()
    found = over_repeats(rows, [y, hue], metric)
    for i, line in enumerate(lines):
        for j, value in enumerate(hues):
            at = i + (j - (len(hues) - 1) / 2) * 0.8 / max(2, len(hues))
            _dot(axes, rows[(rows[y] == line) & (rows[hue] == value)],
                 found[(found[y] == line) & (found[hue] == value)], at, metric,
                 *shared["colours"][value], f"{name(line, y)}, {name(value, hue)}")
    axes.set_yticks(range(len(lines)), [name(line, y) for line in lines])
    axes.set(ylim=(len(lines) - 0.5, -0.5), xlim=shared["span"], xlabel=label)
    if shared["span"][0] < 0:
        axes.axvline(0, color=FAINT, linewidth=1)
    axes.tick_params(length=0)
    axes.grid(axis="y", visible=False)
    head(figure, title, [entry(name(v, hue), *shared["colours"][v]) for v in hues])
    return panel(figure, _dot_alt(title, found, y, hue, label))


def _dot(axes, repeats, found, at, metric, colour, marker, called):
    for point in found.itertuples():
        axes.plot([point.low, point.high], [at, at], color=colour, linewidth=5, alpha=0.22,
                  solid_capstyle="round")
        axes.plot([point.median] * 2, [at - 0.12, at + 0.12], color=colour, linewidth=2)
    limited = client_limited(repeats)
    marks = axes.scatter(repeats[metric], [at] * len(repeats), s=24, marker=marker, linewidth=1.1, zorder=4,
                         facecolor=[PAPER if one else colour for one in limited],
                         edgecolor=[colour if one else PAPER for one in limited])
    entitle(marks, [on_hover(value, called, one) for value, one in zip(repeats[metric], limited)])


def _dot_alt(title, found, y, hue, label) -> str:
    parts = "; ".join(f"{name(getattr(p, y), y)}, {name(getattr(p, hue), hue)}: {number(p.median)}"
                     for p in found.itertuples())
    called = f", {title}" if title else ""
    return f"Dot chart{called}: {label}. {parts}."


def time_over_clients(summary: pd.DataFrame, *, hue="store", col="op", note="") -> Picture:
    """Line chart of the mean time of a request over the number of clients: see line_chart."""
    return line_chart(summary, x="clients", hue=hue, col=col, metric="mean_ms", x_label="clients",
                      label="mean time of a request, ms", note=note)


@says_run
def rate_over_clients(summary: pd.DataFrame, ceiling: pd.DataFrame, *, threshold=0.7, hue="store",
                      col="op", x="clients", metric="rate_per_s", note="") -> Picture:
    """Rate over the number of clients, with the clients' ceiling against a null server (dashed).
    Points above `threshold` of the ceiling say little about the server."""
    if not len(summary):
        return NOT_MEASURED
    with theme():
        highest = over_repeats(ceiling, [hue, col, x], metric)["median"].max() if len(ceiling) else 0.0
        shared = {"colours": styles(summary[hue]), "threshold": threshold, "note": note,
                  "top": 1.08 * max(summary[metric].max(), highest)}
        panels = [_rate_panel(rows, of(ceiling, **{col: value}), value, hue, x, metric, shared)
                  for value, rows in summary.groupby(col, sort=True)]
    return Picture(tuple(panels), caption(
        "Requests a second; line: median of the repeats; dashed: the clients' own ceiling, shaded "
        f"from {threshold:.0%} of it", summary))


def _rate_panel(rows, ceiling, value, hue, x, metric, shared):
    title = ", ".join(filter(None, (name(value), shared["note"])))
    figure, axes = axes_over(rows[x], "clients", "requests a second", shared["top"])
    limits = over_repeats(ceiling, [hue, x], metric) if len(ceiling) else pd.DataFrame({hue: [], x: [], "median": []})
    medians = over_repeats(rows, [hue, x], metric)
    for value, line in medians.groupby(hue, sort=True):
        colour, marker = shared["colours"][value]
        limit = limits[limits[hue] == value]
        if len(limit):      # one client alone has no ceiling
            axes.plot(limit[x], limit["median"], color=colour, linestyle=(0, (4, 3)), linewidth=1.2)
            axes.fill_between(limit[x], shared["threshold"] * limit["median"], limit["median"],
                              color=colour, alpha=0.07, linewidth=0)
        axes.plot(line[x], line["median"], color=colour, linewidth=1.8, zorder=3)
        draw_repeats(axes, rows[rows[hue] == value], x, metric, colour, marker, name(value, hue))
    legend(figure, title, hue, shared["colours"], rows,
                 more=[Line2D([], [], color=FAINT, linestyle=(0, (4, 3)), label="ceiling")])
    return panel(figure, _rate_alt(title, medians, limits, hue, x))


def _rate_alt(title, medians, limits, hue, x):
    ceilings = [f"{name(value, hue)} {number(line['median'].min())} to {number(line['median'].max())}"
                for value, line in limits.groupby(hue, sort=True)]
    return (alt(title, medians, hue, x, "clients", "requests a second")
            + " Ceiling of the clients: " + ", ".join(ceilings) + ".")

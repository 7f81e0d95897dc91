"""Nodes that join: what calls take meanwhile, and what the time of a join is made of."""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from labbook.figures.canvas import NOT_MEASURED, Picture, panel
from labbook.figures.legend import head
from labbook.figures.lists import is_list, middle, with_lists
from labbook.figures.plots import with_measure
from labbook.figures.repeats import over_repeats
from labbook.figures.theme import INK, PALETTE, PANEL_INCHES, PAPER, theme
from labbook.figures.words import amount, in_order, name, number, quantity

MEAN, HIGH, JOINING = PALETTE[0], PALETTE[5], "#f3d9c9"
BINS = ("mean_ms_per_bin", "p95_ms_per_bin", "bin_s")
ROW_INCHES, HEAD_INCHES = 0.42, 1.3


def calls_through_joins(summary: pd.DataFrame, *, by: list[str], what="a get") -> Picture:
    """A panel for each setting of the parameters `by`, of its repeat with the middle mean time: the
    time of a call through time, bin by bin, the start (S) and end (E) of each join marked.

    `summary` has lists of bins (mean_ms_per_bin, p95_ms_per_bin; None where nobody called), their
    width bin_s, and lists join_starts_s and join_ends_s, empty where nothing joined.
    """
    found = with_lists(summary, *BINS)
    if not len(found):
        return NOT_MEASURED
    settings = found.groupby(by, sort=True)
    chosen = {setting: middle(rows, "mean_ms") for setting, rows in settings}
    order = in_order([setting[0] for setting in chosen], by[0])
    top = 1.15 * max(np.nanmax(_floats(one["p95_ms_per_bin"])) for one in chosen.values())
    with theme():
        panels = [_through(one, ", ".join(name(v, p) for v, p in zip(setting, by)), what, top)
                  for setting, one in sorted(chosen.items(), key=lambda c: order.index(c[0][0]))]
    which = "the repeat with the middle mean" if settings.size().max() > 1 else "one repeat each"
    return Picture(tuple(panels), f"Time of {what} through time, {which}; S: a join is asked for, E: "
                                  "the ring has the node; shaded: a node joins.")


def join_parts(summary: pd.DataFrame, *, y: str, parts: dict[str, str], label: str,
               col: str | None = None, note="") -> Picture:
    """A bar for each value of `y`, in the order in which they come, made of the medians of `parts`
    (measure: what to call it) one behind the other; a panel for each value of `col`. Dots are the
    sums of the repeats."""
    first, *others = parts
    found = with_measure(summary, first)
    found = found.assign(**{part: pd.to_numeric(found[part]) for part in others if part in found})
    if not len(found) or not set(others) <= set(found):
        return NOT_MEASURED
    found = found.dropna(subset=others).assign(whole=lambda f: f[list(parts)].sum(axis=1))
    if not len(found):
        return NOT_MEASURED
    values = in_order(found[col], col) if col else [""]
    with theme():
        panels = [_bars(found[found[col] == value] if col else found, y, parts, label,
                        note or (name(value, col) if col else ""), 1.08 * found["whole"].max())
                  for value in values]
    return Picture(tuple(panels), f"{label[0].upper()}{label[1:]}: medians of the parts; dots: each "
                                  "repeat's sum.")


def _floats(values) -> np.ndarray:
    return np.array([math.nan if value is None else value for value in values], float)


def _through(point, title, what, top):
    figure = Figure(figsize=PANEL_INCHES, layout="constrained")
    axes = figure.add_subplot()
    means, highs = (_floats(point[measure]) for measure in BINS[:2])
    edges = float(point["bin_s"]) * np.arange(len(means) + 1)
    joins = list(zip(*(point[k] if is_list(point.get(k)) else ()
                       for k in ("join_starts_s", "join_ends_s"))))
    for i, (start, end) in enumerate(joins):
        axes.axvspan(start, end, color=JOINING, linewidth=0, zorder=0, alpha=0.6)
        _mark(axes, start, "S", i)
        _mark(axes, end, "E", i)
    axes.stairs(highs, edges, color=HIGH, linewidth=1.0, baseline=None)
    axes.stairs(means, edges, color=MEAN, linewidth=1.6, baseline=None)
    axes.set(xlim=(0, edges[-1]), ylim=(0, top), xlabel="time, s", ylabel=f"time of {what}, ms")
    axes.tick_params(length=0)
    axes.grid(axis="x", visible=False)
    keys = [Line2D([], [], color=MEAN, linewidth=1.8, label="mean"),
            Line2D([], [], color=HIGH, linewidth=1.2, label="95 % are faster")]
    keys += [Patch(facecolor=JOINING, label="a node joins")] * bool(joins)
    head(figure, title, keys)
    return panel(figure, _told(title, what, point, joins))


def _mark(axes, at, letter, i):
    """Starts over the line, ends below them, so that joins at once do not hide each other."""
    axes.axvline(at, color=INK, linewidth=0.8, linestyle=(0, (3, 2)))
    axes.annotate(letter, (at, 1), (2, -3 - 10 * (letter == "E") - 2 * (i % 2)), fontsize=8, va="top",
                  xycoords=("data", "axes fraction"), textcoords="offset points", color=INK,
                  in_layout=False)


def _told(title, what, point, joins) -> str:
    told = [f"a node joins from {number(start)} to {number(end)} s" for start, end in joins]
    told += [f"{number(point[measure])} ms {when}" for measure, when in
             (("before_ms", "before"), ("during_ms", "meanwhile"), ("after_ms", "after"))
             if joins and not pd.isna(point.get(measure))]
    told += [] if joins else [f"{number(point['mean_ms'])} ms in the mean, and no join"]
    return f"Chart through time, {title}: time of {what}. " + "; ".join(told) + "."


def _bars(rows, y, parts, label, title, most):
    lines = list(dict.fromkeys(rows[y]))
    figure = Figure(figsize=(PANEL_INCHES[0], HEAD_INCHES + ROW_INCHES * len(lines)),
                    layout="constrained")
    axes = figure.add_subplot()
    told = []
    for at, value in enumerate(lines):
        of_line, left, words = rows[rows[y] == value], 0.0, []
        for colour, (part, called) in zip(PALETTE, parts.items()):
            width = over_repeats(of_line, [y], part)["median"].iloc[0]
            axes.barh(at, width, left=left, height=0.62, color=colour, alpha=0.75, linewidth=0)
            left += width
            words.append(f"{called} {amount(width, quantity(label)[1])}")
        axes.scatter(of_line["whole"], [at] * len(of_line), s=22, color=INK, edgecolor=PAPER, zorder=4)
        told.append(f"{name(value, y)}: {', '.join(words)}")
    axes.set_yticks(range(len(lines)), [name(value, y) for value in lines])
    axes.set(ylim=(len(lines) - 0.5, -0.5), xlim=(0, most or 1), xlabel=label)
    axes.tick_params(length=0)
    axes.grid(axis="y", visible=False)
    head(figure, title, [Patch(facecolor=colour, alpha=0.75, label=called)
                         for colour, called in zip(PALETTE, parts.values())])
    called = f", {title}" if title else ""
    return panel(figure, f"Bar chart{called}: {quantity(label)[0]}. " + "; ".join(told) + ".")

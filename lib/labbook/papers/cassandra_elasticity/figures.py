"""Figures of this paper alone: calls through joins, and the requests to a disk through time."""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from labbook.figures.canvas import (
    FAINT,
    INK,
    MARKERS,
    NOT_MEASURED,
    PALETTE,
    PANEL_INCHES,
    Picture,
    entry,
    head,
    panel,
    theme,
)
from labbook.figures.numbers import in_order, name, number, plural
from labbook.figures.repeats import is_list, middle, with_lists

AXES = {"gb": "place on the disk, GB", "kb": "size of a request, KB"}
DOTS_PER_INCH = 200     # of thousands of dots: as vectors they would make a page of megabytes
MEAN, HIGH, JOINING = PALETTE[0], PALETTE[5], "#f3d9c9"
BINS = ("mean_ms_per_bin", "p95_ms_per_bin", "bin_s")


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


def disk_requests(summary: pd.DataFrame, *, by: str, of="request", y="gb", path=False,
                  groups: list[str]) -> Picture:
    """A panel for each value of the parameter `by`, of its first repeat with samples: a dot a request
    over time, `y` its place ("gb") or its size ("kb"), coloured by its group.

    `summary` has the lists of disk.sample_evenly under the name `of`. `path`: also a line from each
    request to the next. `groups`: all groups in the order of the legend, so that a group has the same
    colour in every figure.
    """
    found = with_lists(summary, f"{of}_t_s")
    if not len(found):
        return NOT_MEASURED
    chosen = {value: found[found[by] == value].sort_values("repeat").iloc[0]
              for value in in_order(found[by], by)}
    top = max(float(np.max(one[f"{of}_{y}"])) for one in chosen.values())
    low = 0.0 if y == "kb" else min(float(np.min(one[f"{of}_{y}"])) for one in chosen.values())
    room = 0.04 * (top - low or 1)
    with theme():
        panels = [_panel(one, name(value, by), of, y, path, groups, (low - room, top + room))
                  for value, one in chosen.items()]
    lines = "; the line goes from each to the next" if path else ""
    words = AXES[y].partition(",")[0]
    return Picture(tuple(panels), f"A dot for each request to the disk: its {words}, through "
                                  f"time{lines}.")


def _panel(point, title, of, y, path, groups, limits):
    t, values, who = (np.asarray(point[f"{of}_{part}"]) for part in ("t_s", y, "group"))
    there = [group for group in groups if (who == group).any()]
    figure = Figure(figsize=PANEL_INCHES, layout="constrained", dpi=DOTS_PER_INCH)
    axes = figure.add_subplot()
    if path:
        axes.plot(t, values, color=FAINT, linewidth=0.5, zorder=1, rasterized=True)
    for group in reversed(there):       # the first group lies uppermost
        of_group = who == group
        axes.scatter(t[of_group], values[of_group], s=7 if path else 3, linewidth=0, zorder=3,
                     marker=MARKERS[groups.index(group)], color=PALETTE[groups.index(group)],
                     rasterized=True)
    axes.set(xlabel="time, s", ylabel=AXES[y], ylim=limits)
    axes.tick_params(length=0)
    head(figure, title, [entry(name(group), PALETTE[groups.index(group)],
                               MARKERS[groups.index(group)]) for group in there])
    return panel(figure, _told(title, t, values, who, there, y))


def _told(title, t, values, who, there, y) -> str:
    unit = AXES[y].rpartition(", ")[2]
    told = [f"{name(group)}: {plural(int((who == group).sum()), 'request')} from "
            f"{number(float(values[who == group].min()))} to "
            f"{number(float(values[who == group].max()))} {unit}" for group in there]
    return (f"Dot chart through {number(float(t.max() - t.min()))} s, {title}: "
            f"{AXES[y].rpartition(', ')[0]} of each request. " + "; ".join(told) + ".")


def _floats(values) -> np.ndarray:
    return np.array([math.nan if value is None else value for value in values], float)


def _through(point, title, what, top):
    figure = Figure(figsize=PANEL_INCHES, layout="constrained")
    axes = figure.add_subplot()
    means, highs = (_floats(point[metric]) for metric in BINS[:2])
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
    return panel(figure, _described(title, what, point, joins))


def _mark(axes, at, letter, i):
    """Starts over the line, ends below them, so that joins at once do not hide each other."""
    axes.axvline(at, color=INK, linewidth=0.8, linestyle=(0, (3, 2)))
    axes.annotate(letter, (at, 1), (2, -3 - 10 * (letter == "E") - 2 * (i % 2)), fontsize=8, va="top",
                  xycoords=("data", "axes fraction"), textcoords="offset points", color=INK,
                  in_layout=False)


def _described(title, what, point, joins) -> str:
    told = [f"a node joins from {number(start)} to {number(end)} s" for start, end in joins]
    told += [f"{number(point[metric])} ms {when}" for metric, when in
             (("before_ms", "before"), ("during_ms", "meanwhile"), ("after_ms", "after"))
             if joins and not pd.isna(point.get(metric))]
    told += [] if joins else [f"{number(point['mean_ms'])} ms in the mean, and no join"]
    return f"Chart through time, {title}: time of {what}. " + "; ".join(told) + "."

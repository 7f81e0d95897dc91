"""A fault through time: successful and failed calls in bins, the longest outage shaded."""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from labbook.figures.canvas import (
    INK,
    NOT_MEASURED,
    PALETTE,
    PANEL_INCHES,
    PAPER,
    SHADE,
    Picture,
    head,
    panel,
    theme,
)
from labbook.figures.numbers import name, number
from labbook.figures.repeats import middle, says_run, with_lists

GOOD, BAD, GAP = PALETTE[0], PALETTE[1], SHADE
MEASURES = ("ok_per_bin", "errors_per_bin", "bin_s", "outage_s", "outage_from_s")


@says_run
def timeline(summary: pd.DataFrame, *, by: list[str], events: dict[str, str],
             calls="calls") -> Picture:
    """Calls through time around a fault: a panel for each setting of `by`, of its repeat with the
    median outage; successes and errors a second, the longest time without a success shaded.

    `summary` has the metrics of workloads.clients.outage.timeline: `calls` that ended in each bin
    (lists), the bins' width, the outage. `events`: metric (seconds) -> label; a point without the
    metric shows no event.
    """
    found = with_lists(summary, *MEASURES)
    if not len(found):
        return NOT_MEASURED
    chosen = [(setting, middle(rows, "outage_s")) for setting, rows in found.groupby(by, sort=True)]
    shared = {"calls": calls, "seconds": max(_length(point) for _, point in chosen),
              "top": _top([point for _, point in chosen], len(events))}
    with theme():
        panels = [_panel(point, ", ".join(name(v, p) for v, p in zip(setting, by)), events, shared)
                  for setting, point in chosen]
    several = found.groupby(by).size().max() > 1
    which = "of each set-up the repeat with the middle outage" if several else "one repeat each"
    return Picture(tuple(panels), f"{calls[0].upper()}{calls[1:]} through time, {which}; shaded: "
                                  "the longest time without a success.")


def _length(point) -> float:
    return len(point["ok_per_bin"]) * float(point["bin_s"])


def _rates(point, metric) -> np.ndarray:
    return np.asarray(point[metric], float) / float(point["bin_s"])


def _top(points, events) -> float:
    """Upper limit of the y axis, with room for the labels of the events."""
    highest = max(_rates(point, metric).max() for point in points for metric in MEASURES[:2])
    return (1.06 + 0.06 * events) * highest or 1.0


def _panel(point, title, events, shared):
    figure = Figure(figsize=PANEL_INCHES, layout="constrained")
    axes = figure.add_subplot()
    good, bad = (_rates(point, metric) for metric in MEASURES[:2])
    width = float(point["bin_s"])
    edges = width * np.arange(len(good) + 1)
    happened = [(float(point[m]), label) for m, label in events.items()
                if m in point and point[m] is not None and not math.isnan(point[m])]
    since, outage = float(point["outage_from_s"]), float(point["outage_s"])
    axes.axvspan(since, since + outage, color=GAP, linewidth=0, zorder=0)
    axes.stairs(good, edges, color=GOOD, fill=True, alpha=0.3, linewidth=0)
    axes.stairs(good, edges, color=GOOD, linewidth=1.5)
    if bad.any():
        axes.stairs(bad, edges, color=BAD, fill=True, alpha=0.75, linewidth=0)
    for level, (at, label) in enumerate(sorted(happened)):
        _mark(axes, at, label, level, late=at > 0.7 * shared["seconds"])
    axes.set(xlim=(0, shared["seconds"]), ylim=(0, shared["top"]), xlabel="time, s",
             ylabel=f"{shared['calls']} a second")
    axes.tick_params(length=0)
    axes.grid(axis="x", visible=False)
    head(figure, title, _keys(shared["calls"], bad.any()))
    return panel(figure, _alt(title, point, happened, shared["calls"]))


def _mark(axes, at, label, level, late):
    """Draw an event's line and label; labels of later events stand lower, so that none overlap."""
    axes.axvline(at, color=INK, linewidth=1, linestyle=(0, (3, 2)))
    axes.annotate(label, (at, 1), (-3 if late else 3, -3 - 11 * level), fontsize=8.5, color=INK,
                  xycoords=("data", "axes fraction"), textcoords="offset points", va="top",
                  ha="right" if late else "left", in_layout=False,
                  path_effects=[withStroke(linewidth=2.5, foreground=PAPER)])


def _keys(calls, failed):
    return [Line2D([], [], color=GOOD, linewidth=1.8, label=f"{calls} that came out"),
            *[Patch(facecolor=BAD, alpha=0.75, label=f"{calls} that failed")] * bool(failed),
            Patch(facecolor=GAP, label="no success")]


def _alt(title, point, happened, calls) -> str:
    good, bad = (int(np.sum(point[metric])) for metric in MEASURES[:2])
    parts = [f"{label} at {number(at)} s" for at, label in sorted(happened)]
    parts += [f"no success for {number(point['outage_s'])} s from {number(point['outage_from_s'])} s",
             f"{good} {calls} came out and {bad} failed in {number(_length(point))} s"]
    return f"Chart through time, {title}: {calls} a second. " + "; ".join(parts) + "."

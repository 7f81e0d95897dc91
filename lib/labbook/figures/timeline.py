"""What came of a fault: calls that came out and calls that failed, bin by bin, through its time."""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from labbook.figures.legend import head
from labbook.figures.picture import NOT_MEASURED, Picture, panel
from labbook.figures.theme import INK, PALETTE, PANEL_INCHES, theme
from labbook.figures.words import name, number

GOOD, BAD, GAP = PALETTE[0], PALETTE[1], "#f3d9c9"
LISTS = ("ok_per_bin", "errors_per_bin", "bin_s")


def timeline(summary: pd.DataFrame, *, by: list[str], events: dict[str, str],
             middle="outage_s", calls="calls") -> Picture:
    """A panel for each setting of the parameters `by`, of its repeat with the middle value of the
    measure `middle`: successes and errors a second through time, and the longest stretch without a
    success shaded from the first event on.

    `summary` has the measures `ok_per_bin` and `errors_per_bin` (lists: how many `calls` ended in
    each bin) and `bin_s` (seconds); `events` are measures that hold when something happened, in the
    seconds of the bins, and what to call it. One that a point lacks is not drawn.
    """
    if not len(summary) or not {*LISTS, middle} <= set(summary):
        return NOT_MEASURED
    found = summary[summary["ok_per_bin"].map(_is_list)]
    if not len(found):
        return NOT_MEASURED
    chosen = [(setting, _middle(rows, middle)) for setting, rows in found.groupby(by, sort=True)]
    shared = {"calls": calls, "seconds": max(_length(point) for _, point in chosen),
              "top": (1.06 + 0.06 * len(events)) * max(max(_rates(point, k).max() for k in LISTS[:2])
                                for _, point in chosen) or 1}
    with theme():
        panels = [_panel(point, ", ".join(name(v, p) for v, p in zip(setting, by)), events, shared)
                  for setting, point in chosen]
    repeats = found.groupby(by).size()
    of = f"the repeat with the middle {middle.rpartition('_')[0]}" if repeats.max() > 1 else "its repeat"
    return Picture(tuple(panels), f"{calls[0].upper()}{calls[1:]} through time, of each set-up "
                                  f"{of}; shaded: longest time without a success.")


def _is_list(value) -> bool:
    return isinstance(value, (list, tuple, np.ndarray)) and len(value) > 0


def _middle(rows, measure):
    ordered = rows.sort_values(measure, kind="stable")
    return ordered.iloc[(len(ordered) - 1) // 2]


def _length(point) -> float:
    return len(point["ok_per_bin"]) * float(point["bin_s"])


def _rates(point, measure) -> np.ndarray:
    return np.asarray(point[measure], float) / float(point["bin_s"])


def _panel(point, title, events, shared):
    figure = Figure(figsize=PANEL_INCHES, layout="constrained")
    axes = figure.add_subplot()
    good, bad = (_rates(point, measure) for measure in LISTS[:2])
    width = float(point["bin_s"])
    edges = width * np.arange(len(good) + 1)
    happened = [(float(point[m]), words) for m, words in events.items()
                if m in point and point[m] is not None and not math.isnan(point[m])]
    gap = silence(good, width, min((at for at, _ in happened), default=0.0))
    if gap:
        axes.axvspan(*gap, color=GAP, linewidth=0, zorder=0)
    axes.stairs(good, edges, color=GOOD, fill=True, alpha=0.3, linewidth=0)
    axes.stairs(good, edges, color=GOOD, linewidth=1.5)
    if bad.any():
        axes.stairs(bad, edges, color=BAD, fill=True, alpha=0.75, linewidth=0)
    for level, (at, words) in enumerate(sorted(happened)):
        _mark(axes, at, words, level, late=at > 0.7 * shared["seconds"])
    axes.set(xlim=(0, shared["seconds"]), ylim=(0, shared["top"]), xlabel="time, s",
             ylabel=f"{shared['calls']} a second")
    axes.tick_params(length=0)
    axes.grid(axis="x", visible=False)
    head(figure, title, _keys(shared["calls"], bad.any(), gap))
    return panel(figure, _alt(title, point, happened, gap, shared["calls"]))


def _mark(axes, at, words, level, late):
    """A line with its words; those of later events stand lower, so that none hides another."""
    axes.axvline(at, color=INK, linewidth=1, linestyle=(0, (3, 2)))
    axes.annotate(words, (at, 1), (-3 if late else 3, -3 - 11 * level), fontsize=8.5, color=INK,
                  xycoords=("data", "axes fraction"), textcoords="offset points", va="top",
                  ha="right" if late else "left", in_layout=False)


def silence(rates, width: float, after: float) -> tuple[float, float] | None:
    """(from, to) in seconds of the longest run of bins without a success that ends after `after`,
    the one bin that `after` lies in not being enough; None where there is none."""
    runs, begun = [], None
    for i, rate in enumerate([*rates, 1]):
        if rate == 0 and begun is None:
            begun = i
        if rate > 0 and begun is not None:
            if i * width > after:
                runs.append((begun * width, i * width))
            begun = None
    return max(runs, key=lambda run: run[1] - run[0], default=None)


def _keys(calls, failed, gap):
    keys = [Line2D([], [], color=GOOD, linewidth=1.8, label=f"{calls} that came out")]
    keys += [Patch(facecolor=BAD, alpha=0.75, label=f"{calls} that failed")] if failed else []
    keys += [Patch(facecolor=GAP, label="no success")] if gap else []
    return keys


def _alt(title, point, happened, gap, calls) -> str:
    good, bad = (int(np.sum(point[measure])) for measure in LISTS[:2])
    told = [f"{words} at {number(at)} s" for at, words in happened]
    told += [f"no success from {number(gap[0])} to {number(gap[1])} s" if gap else
             "no stretch without a success"]
    told += [f"{good} {calls} came out and {bad} failed in {number(_length(point))} s"]
    return f"Chart through time, {title}: {calls} a second. " + "; ".join(told) + "."

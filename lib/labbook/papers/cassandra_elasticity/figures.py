"""What a disk is asked for through time: where each request lies, or how large it is."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from labbook.figures.canvas import NOT_MEASURED, Picture, panel
from labbook.figures.legend import entry, head
from labbook.figures.lists import with_lists
from labbook.figures.theme import FAINT, MARKERS, PALETTE, PANEL_INCHES, theme
from labbook.figures.words import in_order, name, number, plural

AXES = {"gb": "place on the disk, GB", "kb": "size of a request, KB"}
DOTS_PER_INCH = 200     # thousands of dots are a picture in the SVG, or the page is megabytes


def disk_requests(summary: pd.DataFrame, *, by: str, of="request", y="gb", path=False,
                  groups: list[str]) -> Picture:
    """A panel for each value of the parameter `by`, of its first repeat that kept them: a dot a
    request over time, `y` its place ("gb") or its size ("kb"), coloured by its group.

    `summary` has the lists of labbook.papers.cassandra_elasticity.request_samples under the name `of`. `path`: the way
    from each request to the next is drawn too. `groups`: all that there are, in the order of the
    legend, so that a group has one colour on a page.
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

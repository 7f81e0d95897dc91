"""Figures and tables of this paper: joins, calls during joins, requests to a disk over time."""

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
    SHADE,
    Picture,
    entry,
    head,
    panel,
    theme,
)
from labbook.figures.numbers import NOT_MEASURED_TEXT, in_order, measured, name, number, plural, times, with_values
from labbook.figures.plots import dot_chart
from labbook.figures.repeats import is_list, middle, of, says_run, with_lists  # noqa: F401 (`of`: the notebook)
from labbook.figures.tables import Table

# Labels of metrics in tables.
JOIN = {"join_s": "A join, s", "from_request_s": "since its request, s", "fixed_wait_s": "of it fixed waits, s",
        "streaming_s": "streaming, s", "rest_s": "the rest, s", "stream_mb_per_s": "Received, MB/s",
        "received_mb": "Received in all, MB", "grown_times": "Growth of the donor's files, times",
        "call_rate_per_s": "Operations a second meanwhile", "call_mean_ms": "Mean time of one, ms"}
PARTS = {"fixed_wait_s": "fixed waits", "streaming_s": "streaming", "rest_s": "start of Java, and the rest"}
DISK = {"stream_sequential": "Stream's reads that continue its own last one, of all",
        "stream_on_disk": "that continue the disk's last one", "stream_stretch_kb": "Read for it at a stretch, KB",
        "read_sequential": "All reads that continue the last one", "run_kb": "read at a stretch, KB",
        "all_sequential": "Reads and writes that continue the last one", "read_kb": "A read, KB",
        "get_request_kb": "A read for a get, KB", "stream_seek_mb": "Median seek to the stream's, MB",
        "seek_mb": "of all reads, MB", "stream_mb_per_s": "The stream, MB/s"}
AXES = {"gb": "place on the disk, GB", "kb": "size of a request, KB"}
DOTS_PER_INCH = 200     # of thousands of dots: as vectors they would make a page of megabytes
MEAN, HIGH, JOINING = PALETTE[0], PALETTE[5], SHADE
SERVICE = "service_p95_ms_per_bin"
BINS = ("mean_ms_per_bin", "p95_ms_per_bin", "bin_s")


def with_delay(summary: pd.DataFrame, parameter: str) -> pd.DataFrame:
    """The summary with a column `arm`: the value of `parameter` and the ring delay, as text."""
    if not len(summary):
        return summary
    return summary.assign(arm=[f"{name(value, parameter)}, {delay / 1000:g} s" for value, delay in
                               zip(summary[parameter], summary["ring_delay_ms"])])


def in_percent(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary with a column `percent`: the joiner's share of the ring."""
    return summary.assign(percent=100 * summary["share"]) if len(summary) else summary


def without_waits(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary with a column `moving_from_request_s`: the time of a join from its request on, less its fixed waits,
    which is the claims' number."""
    if not {"from_request_s", "fixed_wait_s"} <= set(summary):
        return summary
    return summary.assign(moving_from_request_s=summary["from_request_s"] - summary["fixed_wait_s"])


def join_and_gets(summary: pd.DataFrame, y: str) -> Picture:
    """The time of a join without its fixed waits, and the time of a get meanwhile, for each `y`."""
    pictures = [dot_chart(summary, y=y, hue="load", metric=metric, label=label) for metric, label in (
        ("moving_s", "time of a join without its fixed waits, s"),
        ("streaming_ms", "mean time of a get while it streams, ms"))]
    return Picture(tuple(one for picture in pictures for one in picture.panels),
                   " ".join(dict.fromkeys(picture.caption for picture in pictures)))


def tags(summary: pd.DataFrame, chosen: int) -> str:
    """How many requests at a time the disk of these points took. Older published ones lack the parameter."""
    if len(summary) and with_values(summary, "tags", "") == "":
        return f"{chosen}; 128 in the published results, which are older"
    return with_values(summary, "tags", chosen)


def loader(summary: pd.DataFrame) -> str:
    """The speed of loading the data, as text."""
    if not len(summary):
        return NOT_MEASURED_TEXT
    return (f'{summary["loader_mb_per_s"].median():.0f} MB/s, {summary["loader_mb_per_s_per_core"].median():.0f} MB '
            "for each second of a client core")


def throttle(stream_mbit: int | None) -> str:
    """The limit of streaming as text; None is Cassandra's default."""
    return "as shipped" if stream_mbit is None else f"{stream_mbit} Mbit/s, 0 being none"


def beside_the_paper(printed: pd.DataFrame, *, joins, delays, gets, disk) -> Table:
    """The paper's main results beside ours; each frame has points of the paper's Cassandra."""
    paper = printed.set_index("what")
    shipped_ms = 1000 * paper.loc["sleep", "value"]
    none, reads, writes = ({"load": load} for load in ("none", "read", "write"))
    rows = (
        ("A join as shipped, from its request on", f'{paper.loc["least_join", "value"]:g} s or more',
         measured(delays, "from_request_s", "s", ring_delay_ms=shipped_ms)),
        ("A join under reads over one without load, without fixed waits", "much longer",
         times(without_waits(joins), "moving_from_request_s", reads, none)),
        ("A join under reads over one under writes", "not stated in words",
         times(without_waits(joins), "moving_from_request_s", reads, writes)),
        ("A get while nodes that join one by one stream, over before", "much longer",
         measured(gets, "streaming_over_before", "times", how="one_by_one")),
        ("Stream's requests that continue the disk's last one, without load", "sequential",
         measured(disk, "stream_on_disk", "of all", **none)),
        ("the same under reads", "cut into random access", measured(disk, "stream_on_disk", "of all", **reads)))
    return Table(("", "Paper", "Here"), rows, numbers=False, label="the paper's main results beside ours",
                 caption="Here: median of the repeats and its interval.")


@says_run
def calls_through_joins(summary: pd.DataFrame, *, by: list[str]) -> Picture:
    """A panel for each setting of the parameters `by`, of its repeat with the middle mean time: the
    time of a call through time, bin by bin, the start (S) and end (E) of each join marked.

    `summary` has lists of bins (mean_ms_per_bin, p95_ms_per_bin and, of calls at a rate, service_p95_ms_per_bin,
    without the wait for late ones before; None where nobody called), their width bin_s, and lists join_starts_s and
    join_ends_s, empty where nothing joined.
    """
    found = with_lists(summary, *BINS)
    if not len(found):
        return NOT_MEASURED
    settings = found.groupby(by, sort=True)
    chosen = {setting: middle(rows, "mean_ms") for setting, rows in settings}
    order = in_order([setting[0] for setting in chosen], by[0])
    top = 1.15 * max(np.nanmax(_floats(one["p95_ms_per_bin"])) for one in chosen.values())
    with theme():
        panels = [_through(one, ", ".join(name(v, p) for v, p in zip(setting, by)), top)
                  for setting, one in sorted(chosen.items(), key=lambda c: order.index(c[0][0]))]
    which = "the repeat with the middle mean" if settings.size().max() > 1 else "one repeat each"
    return Picture(tuple(panels), f"Time of a call through time, {which}; S: a join is requested, E: "
                                  "the join is complete; shaded: a node joins.")


def calls_at_a_rate(summary: pd.DataFrame, *, by: list[str]) -> Picture:
    """The same for points whose load had a rate: times from when a call was due, and without the wait."""
    found = with_lists(summary, SERVICE)
    return calls_through_joins(found, by=by) if len(found) else NOT_MEASURED


@says_run
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
    what = AXES[y].partition(",")[0]
    which = "request to the disk, of many an even sample" if of == "request" else "request to the disk"
    return Picture(tuple(panels), f"A dot for each {which}: its {what}, through time{lines}.")


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
    return panel(figure, _requests_alt(title, t, values, who, there, y))


def _requests_alt(title, t, values, who, there, y) -> str:
    unit = AXES[y].rpartition(", ")[2]
    parts = [f"{name(group)}: {plural(int((who == group).sum()), 'request')} from "
            f"{number(float(values[who == group].min()))} to "
            f"{number(float(values[who == group].max()))} {unit}" for group in there]
    return (f"Dot chart through {number(float(t.max() - t.min()))} s, {title}: "
            f"{AXES[y].rpartition(', ')[0]} of each request. " + "; ".join(parts) + ".")


def _floats(values) -> np.ndarray:
    return np.array([math.nan if value is None else value for value in values], float)


def _through(point, title, top):
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
    at_a_rate = is_list(point.get(SERVICE))
    if at_a_rate:
        axes.stairs(_floats(point[SERVICE]), edges, color=HIGH, linewidth=1.0, linestyle=":", baseline=None)
    axes.set(xlim=(0, edges[-1]), ylim=(0, top), xlabel="time, s", ylabel="time of a call, ms")
    axes.tick_params(length=0)
    axes.grid(axis="x", visible=False)
    keys = [Line2D([], [], color=MEAN, linewidth=1.8, label="mean"),
            Line2D([], [], color=HIGH, linewidth=1.2, label="95 % are faster")]
    keys += [Line2D([], [], color=HIGH, linewidth=1.2, linestyle=":", label="without their wait")] * at_a_rate
    keys += [Patch(facecolor=JOINING, label="a node joins")] * bool(joins)
    head(figure, title, keys)
    return panel(figure, _calls_alt(title, point, joins))


def _mark(axes, at, letter, i):
    """Starts over the line, ends below them, so that joins at once do not hide each other."""
    axes.axvline(at, color=INK, linewidth=0.8, linestyle=(0, (3, 2)))
    axes.annotate(letter, (at, 1), (2, -3 - 10 * (letter == "E") - 2 * (i % 2)), fontsize=8, va="top",
                  xycoords=("data", "axes fraction"), textcoords="offset points", color=INK,
                  in_layout=False)


def _calls_alt(title, point, joins) -> str:
    parts = [f"a node joins from {number(start)} to {number(end)} s" for start, end in joins]
    parts += [f"{number(point[metric])} ms {when}" for metric, when in
             (("beginning_ms", "at the beginning"), ("streaming_ms", "while nodes stream"), ("end_ms", "at the end"))
             if joins and not pd.isna(point.get(metric))]
    if is_list(point.get(SERVICE)):
        highs, alone = (np.nanmax(_floats(point[name])) for name in ("p95_ms_per_bin", SERVICE))
        parts.append(f"95 % take up to {number(highs)} ms from when they are due, "
                     f"{number(alone)} ms without their wait")
    parts += [] if joins else [f"{number(point['mean_ms'])} ms in the mean, and no join"]
    return f"Chart through time, {title}: time of a call. " + "; ".join(parts) + "."

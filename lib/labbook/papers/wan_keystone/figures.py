"""Figures of the WAN study: the time that two segments save, and the steps of a call."""

import pandas as pd
from matplotlib.lines import Line2D

from labbook.figures import plots
from labbook.figures.canvas import FAINT, NOT_MEASURED, PAPER, Picture, panel, styles, theme
from labbook.figures.numbers import name, quantity
from labbook.figures.repeats import band_words, client_limited, of, origin, over_repeats, says_run

SAVED = "saved"
STEPS = ("authenticate", "create_user", "list_users")
ARMS = {"segments": 1}, {"segments": 2}
OWN_DELAY_MS = 2.0      # a link of this machine without delay takes a tenth of a millisecond


@says_run
def improvement(summary: pd.DataFrame, *, x: str, x_label: str, hue: str, metric="mean_ms",
                label="time saved, %", printed: pd.DataFrame | None = None, log=False) -> Picture:
    """Line chart of the time saved, (t1 - t2) / t1 in percent, over `x`, a line for each value of `hue`.

    t1 and t2 are the metric with one and with two segments, paired by repeat.

    `printed`: DataFrame of the paper's numbers, with columns x, hue and saved_percent; drawn as
    stars. Above 0 two segments are faster. Repeats without both arms are excluded. Where parameters other than
    `x` and `hue` differ, a repeat is the mean of its points.
    """
    if not len(plots.with_metric(summary, metric)):
        return NOT_MEASURED
    points = saved(summary, [hue, x], ARMS, metric)
    if not len(points):
        return NOT_MEASURED
    known = [] if printed is None else printed["saved_percent"]
    low, high = (edge([0, *points[SAVED], *known]) for edge in (min, max))
    with theme():
        colours = styles(points[hue])
        figure, axes = plots.axes_over(points[x], x_label, label, 1.0, log)
        margin = 0.06 * (high - low or 1)
        axes.set_ylim(low - margin, high + margin)
        axes.axhline(0, color=FAINT, linewidth=1)
        medians = plots.draw(axes, points, hue, x, SAVED, colours)
        marks = [] if printed is None else _printed(axes, printed, hue, x, colours)
        plots.legend(figure, "", hue, colours, points, more=marks)
        text = plots.alt("", medians, hue, x, x_label, label) + _printed_words(printed, hue, x, x_label)
        drawn = panel(figure, text)
    what = quantity(label)[0]
    spread = over_repeats(points, [hue, x], SAVED).assign(most_points=points["points"].max())
    return Picture((drawn,), plots.caption(
        f"{what[0].upper()}{what[1:]}, paired by repeat; {band_words(spread)}", points))


def saved(summary, by, arms, metric) -> pd.DataFrame:
    """DataFrame with a row for each setting of `by`, machine and repeat that has both arms.

    saved: in percent, of the means of each arm's points; points: the most of an arm; client_limited: 1 where the
    clients limited a point of either arm.
    """
    with_values = plots.with_metric(summary, metric)
    rows = [*by, "repeat", *origin(with_values)]
    one, other = (_arm(with_values, arm, rows, metric) for arm in arms)
    both = one.merge(other, on=rows, suffixes=("_1", "_2"))
    return both.assign(**{
        SAVED: 100 * (1 - both["value_2"] / both["value_1"]),
        "points": both[["points_1", "points_2"]].max(axis=1),
        "client_limited": (both["limited_1"] | both["limited_2"]).astype(float)})


def _arm(points, arm, rows, metric):
    """DataFrame with `rows`, value (the mean of the arm's points), points (how many), limited."""
    of_arm = of(points, **arm)
    return of_arm.assign(limited=client_limited(of_arm)).groupby(rows, dropna=False, as_index=False).agg(
        value=(metric, "mean"), points=(metric, "size"), limited=("limited", "any"))


def _printed(axes, printed, hue, x, colours):
    for value, rows in printed.groupby(hue, sort=True):
        if value in colours:
            axes.plot(rows[x], rows["saved_percent"], color=colours[value][0], linewidth=0,
                      marker="*", markersize=11, markerfacecolor=PAPER, markeredgewidth=1.2,
                      zorder=5)
    return [Line2D([], [], color=FAINT, linewidth=0, marker="*", markersize=11,
                   markerfacecolor=PAPER, label="in the paper")]


def _printed_words(printed, hue, x, x_label) -> str:
    if printed is None:
        return ""
    unit = quantity(x_label)[1]
    lines = [f"{name(value, hue)}: " + ", ".join(
        f"{p.saved_percent:g} % at {getattr(p, x):g} {unit}".rstrip() for p in rows.itertuples())
        for value, rows in printed.groupby(hue, sort=True)]
    return " In the paper: " + "; ".join(lines) + "."


def steps(summary: pd.DataFrame, scenario: str) -> pd.DataFrame:
    """The points of a scenario as DataFrame, a row for each point and step of a call.

    step: one of STEPS; step_ms: its mean time in ms.
    """
    metrics = {f"mean_{step}_ms": step for step in STEPS if f"mean_{step}_ms" in summary}
    rows = summary[summary["scenario"] == scenario].melt(
        ["rtt_ms", "segments", "repeat", *(name for name in (*origin(summary), "client_limited") if name in summary)],
        list(metrics), "step", "step_ms")
    return rows.replace({"step": metrics})


def over_real_sites(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary with the round trip that was measured, in whole ms, as `rtt_ms` of points to which the lab added no
    delay and whose link has one of its own, as between two real sites."""
    if "wan_rtt_ms" not in summary:
        return summary
    has_its_own = (summary["rtt_ms"] == 0) & (summary["wan_rtt_ms"] > OWN_DELAY_MS)
    of_site = summary["wan_rtt_ms"].where(has_its_own).groupby(has_its_own).transform("median").round()
    return summary.assign(rtt_ms=summary["rtt_ms"].mask(has_its_own, of_site))

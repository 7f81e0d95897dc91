"""One metric at many settings side by side: a dot and an interval for each."""

import pandas as pd
from matplotlib.figure import Figure

from labbook.figures.canvas import NOT_MEASURED, Picture, panel
from labbook.figures.legend import entry, head
from labbook.figures.plots import panels_of, with_metric
from labbook.figures.repeats import band_words, client_limited, over_repeats
from labbook.figures.theme import PANEL_INCHES, PAPER, styles, theme
from labbook.figures.words import name, number

ROW_INCHES, HEAD_INCHES = 0.3, 1.3


def dots(summary: pd.DataFrame, *, y: str, hue: str, col: str | None = "op", metric="mean_ms",
         label="mean time of a request, ms", note="") -> Picture:
    """A panel for each value of `col` (one for all when it is None), a line for each value of `y`
    (in the order in which they come), and on it the median of each `hue` with its interval; from 0,
    so that lengths compare. A panel is called by its `col`, or by `note`.

    Repeats at which the clients were the limit are drawn hollow. An empty summary is told so.
    """
    summary = with_metric(summary, metric)
    if not len(summary):
        return NOT_MEASURED
    with theme():
        shared = {"colours": styles(summary[hue]), "top": 1.05 * summary[metric].max() or 1}
        panels = [_panel(rows, note or (name(value, col) if col else ""), y, hue, metric, label,
                         shared) for value, rows in panels_of(summary, col)]
    spread = over_repeats(summary, [y, hue] + [col] * bool(col), metric)
    limited = int(client_limited(summary).sum())
    more = f" {limited} of {len(summary)} limited by the clients: hollow." if limited else ""
    words = band_words(spread).replace("line: ", "dots: the repeats; line: ").replace("band", "bar")
    return Picture(tuple(panels), f"{label[0].upper()}{label[1:]}; {words}.{more}")


def _panel(rows, title, y, hue, metric, label, shared):
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
                 *shared["colours"][value])
    axes.set_yticks(range(len(lines)), [name(line, y) for line in lines])
    axes.set(ylim=(len(lines) - 0.5, -0.5), xlim=(0, shared["top"]), xlabel=label)
    axes.tick_params(length=0)
    axes.grid(axis="y", visible=False)
    head(figure, title, [entry(name(v, hue), *shared["colours"][v]) for v in hues])
    return panel(figure, _alt(title, found, y, hue, label))


def _dot(axes, repeats, found, at, metric, colour, marker):
    for point in found.itertuples():
        axes.plot([point.low, point.high], [at, at], color=colour, linewidth=5, alpha=0.22,
                  solid_capstyle="round")
        axes.plot([point.median] * 2, [at - 0.12, at + 0.12], color=colour, linewidth=2)
    limited = client_limited(repeats)
    axes.scatter(repeats[metric], [at] * len(repeats), s=24, marker=marker, linewidth=1.1, zorder=4,
                 facecolor=[PAPER if one else colour for one in limited],
                 edgecolor=[colour if one else PAPER for one in limited])


def _alt(title, found, y, hue, label) -> str:
    told = "; ".join(f"{name(getattr(p, y), y)}, {name(getattr(p, hue), hue)}: {number(p.median)}"
                     for p in found.itertuples())
    called = f", {title}" if title else ""
    return f"Dot chart{called}: {label}. {told}."

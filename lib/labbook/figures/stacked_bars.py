"""Stacked bars: a whole and the medians of its parts."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from labbook.figures.canvas import (
    INK,
    NOT_MEASURED,
    PALETTE,
    PANEL_INCHES,
    PAPER,
    Picture,
    entitle,
    head,
    panel,
    theme,
)
from labbook.figures.numbers import amount, in_order, name, quantity
from labbook.figures.repeats import over_repeats, says_run, with_metric

ROW_INCHES, HEAD_INCHES = 0.42, 1.3


@says_run
def stacked_bars(summary: pd.DataFrame, *, y: str, parts: dict[str, str], label: str,
               col: str | None = None, note="") -> Picture:
    """Stacked bars: a bar for each value of `y` (in order of appearance), a panel for each of `col`.

    `parts`: metric -> display name; a bar stacks their medians, of those that were measured for it. Dots are the
    sums of each repeat.
    """
    first, *others = parts
    found = with_metric(summary, first)
    found = found.assign(**{part: pd.to_numeric(found[part]) for part in others if part in found})
    if not len(found) or not set(others) <= set(found):
        return NOT_MEASURED
    bars = [_whole(bar, others) for _, bar in found.groupby([col, y] if col else [y], sort=False)]
    found = pd.concat(bars).assign(whole=lambda f: f[list(parts)].sum(axis=1))
    if not len(found):
        return NOT_MEASURED
    values = in_order(found[col], col) if col else [""]
    with theme():
        panels = [_bars(found[found[col] == value] if col else found, y, parts, label,
                        note or (name(value, col) if col else ""), 1.08 * found["whole"].max())
                  for value in values]
    return Picture(tuple(panels), f"{label[0].upper()}{label[1:]}: medians of the parts; dots: each "
                                  "repeat's sum.")


def _whole(bar, parts):
    """The rows of a bar that have all of its parts; a part that none of them has is none of its parts."""
    return bar.dropna(subset=[part for part in parts if bar[part].notna().any()])


def _bars(rows, y, parts, label, title, most):
    lines = list(dict.fromkeys(rows[y]))
    figure = Figure(figsize=(PANEL_INCHES[0], HEAD_INCHES + ROW_INCHES * len(lines)),
                    layout="constrained")
    axes = figure.add_subplot()
    texts, unit = [], quantity(label)[1]
    for at, value in enumerate(lines):
        of_line, left, entries = rows[rows[y] == value], 0.0, []
        for colour, (part, called) in zip(PALETTE, parts.items()):
            if of_line[part].isna().all():
                continue
            width = over_repeats(of_line, [y], part)["median"].iloc[0]
            axes.barh(at, width, left=left, height=0.62, color=colour, alpha=0.75, linewidth=0)
            left += width
            entries.append(f"{called} {amount(width, unit)}")
        marks = axes.scatter(of_line["whole"], [at] * len(of_line), s=22, color=INK, edgecolor=PAPER, zorder=4)
        entitle(marks, [f"{name(value, y)}: {amount(whole, unit)}" for whole in of_line["whole"]])
        texts.append(f"{name(value, y)}: {', '.join(entries)}")
    axes.set_yticks(range(len(lines)), [name(value, y) for value in lines])
    axes.set(ylim=(len(lines) - 0.5, -0.5), xlim=(0, most or 1), xlabel=label)
    axes.tick_params(length=0)
    axes.grid(axis="y", visible=False)
    head(figure, title, [Patch(facecolor=colour, alpha=0.75, label=called)
                         for colour, called in zip(PALETTE, parts.values())])
    called = f", {title}" if title else ""
    return panel(figure, f"Bar chart{called}: {quantity(label)[0]}. " + "; ".join(texts) + ".")

"""Metadata that each metadata server caches through a benchmark, its phases and what migrated."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from labbook.figures.canvas import (
    FAINT,
    INK,
    NOT_MEASURED,
    PALETTE,
    PANEL_INCHES,
    WASH,
    Picture,
    entry,
    head,
    panel,
    theme,
)
from labbook.figures.numbers import name, number

WIDE_INCHES = (2 * PANEL_INCHES[0], 1.15 * PANEL_INCHES[1])
LEAST_SHARE = 0.01      # of all that is cached at most; smaller moves are not marked


def cached_metadata(summary: pd.DataFrame, *, by: list[str], most=2) -> Picture:
    """A panel for each setting of `by`, of its first repeat that kept the lists: a line for each
    rank's cached inodes over time, bands for the phases, an arrow where inodes migrated.

    `summary` has the lists of labbook.papers.ceph_mds.cache.drawn. Panels of the first `most` settings.
    """
    if "cached_t_s" not in summary:
        return NOT_MEASURED
    found = summary[summary["cached_t_s"].map(_is_list).astype(bool)]
    if not len(found):
        return NOT_MEASURED
    chosen = [(setting, rows.sort_values("repeat").iloc[0])
              for setting, rows in list(found.groupby(by, sort=True))[:most]]
    with theme():
        panels = [_panel(one, ", ".join(name(v, p) for v, p in zip(setting, by)))
                  for setting, one in chosen]
    return Picture(tuple(panels), "Metadata (inodes) that each metadata server caches through time, one "
                                  "run; bands: the phases; arrows: inodes that migrate.")


def _is_list(value) -> bool:
    return isinstance(value, (list, tuple, np.ndarray)) and len(value) > 0


def _listed(value) -> list:
    return list(value) if _is_list(value) else []


def _panel(point, title):
    t, rank, inodes = (np.asarray(point[f"cached_{part}"]) for part in ("t_s", "rank", "inodes"))
    figure = Figure(figsize=WIDE_INCHES, layout="constrained")
    axes = figure.add_subplot()
    top = 1.5 * max(1, inodes.max())      # room for the phases' words
    phases = list(zip(*(_listed(point[f"phase_{part}"]) for part in ("name", "from_s", "to_s"))))
    moved = [(at, n) for at, n in zip(*(_listed(point[f"move_{part}"]) for part in ("t_s", "inodes")))
             if n >= LEAST_SHARE * inodes.max()]
    _bands(axes, phases)
    ranks = sorted(set(rank))
    for one in ranks:
        axes.plot(t[rank == one], inodes[rank == one], color=PALETTE[one % len(PALETTE)], linewidth=1.8)
    for at, count in moved:
        axes.annotate(number(count), (at, 0), (at, -0.08 * top), ha="center", va="top", fontsize=7.5,
                      color=INK, annotation_clip=False,
                      arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 1})
    end = max(phases[-1][2], t.max()) if phases else t.max()
    axes.set(xlim=(min(0, t.min()), end), ylim=(-0.2 * top if moved else 0, top), xlabel="time, s",
             ylabel="cached metadata, inodes")
    axes.set_yticks([value for value in axes.get_yticks() if 0 <= value <= top])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.tick_params(length=0)
    axes.grid(axis="x", visible=False)
    head(figure, title, [entry(f"rank {one}", PALETTE[one % len(PALETTE)], "") for one in ranks])
    return panel(figure, _alt(title, t, rank, inodes, phases, moved))


def _bands(axes, phases):
    """Each second phase lies on a band; its words stand upright at its begin."""
    for i, (phase, since, to) in enumerate(phases):
        axes.axvspan(since, to, color=WASH if i % 2 else "none", linewidth=0, zorder=0)
        axes.axvline(since, color=FAINT, linewidth=0.6, linestyle=(0, (1, 2)))
        axes.annotate(name(phase), (since, 1), (2, -3), xycoords=("data", "axes fraction"), va="top",
                      ha="left", textcoords="offset points", fontsize=7.5, color=FAINT, rotation=90)


def _alt(title, t, rank, inodes, phases, moved) -> str:
    told = [f"rank {one}: at most {number(inodes[rank == one].max())} inodes, "
            f"{number(inodes[rank == one][-1])} at the end" for one in sorted(set(rank))]
    told += [f"{name(phase)} from {number(since)} to {number(to)} s" for phase, since, to in phases]
    told += [f"{number(count)} inodes migrate at {number(at)} s" for at, count in moved]
    return f"Chart through time, {title}: metadata cached by each metadata server. " + "; ".join(told) + "."

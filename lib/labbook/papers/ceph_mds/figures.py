"""Figures and tables of this paper: cached metadata over time, rates, crashes and recoveries."""

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
from labbook.figures.numbers import NOT_MEASURED_TEXT, counted, in_order, name, number, plural, times
from labbook.figures.plots import line_chart
from labbook.figures.repeats import client_limited, of, origin, says_run
from labbook.figures.tables import Table
from labbook.papers.ceph_mds.clusters import REREADING
from labbook.papers.ceph_mds.crash_outcomes import WAYS

WIDE_INCHES = (2 * PANEL_INCHES[0], 1.15 * PANEL_INCHES[1])
LEAST_SHARE = 0.01      # of the most cached inodes; smaller migrations are not marked
MOST = 2        # panels of cached metadata in a figure
SHIPPED_INODES = 16384      # a client's cache as shipped
PHASES = [f"{order}_{op}" for order in ("sequential", "random") for op in ("create", "stat", "delete")]
# Where the OSDs keep objects, for the table of differences.
STORES = {"memory": "the OSDs' objects are in memory",
          "disk": "BlueStore on a disk of each OSD's own, modelled as one of 2010"}
# Section 3, figures 6 to 8: the rate with two servers over that with one.
STATED = {"create": "no large difference", "stat": "no large difference", "reread": "no large difference",
          "delete": "0.1 to 0.5"}

# Labels of metrics in tables.
DELETING = {"sequential_delete_per_s": "Deleting in order, files a second", "random_delete_per_s": "at random",
            "random_delete_forwarded": "Calls forwarded to the other MDS, for each of these",
            "migrating_over_quiet": "A delete in a migration over another, times"}
CACHED = {"one_has_after_create": "Cached by one MDS after creating, of all",
          "moved_creating": "Migrated while creating, of all files", "moved_reading": "while reading",
          "moved_deleting": "while deleting", "migrations": "Migrations", "moved_at_once": "the largest, of all files",
          "most_directories_at_once": "most directories in one",
          "directories_a_tree": "in one tree, while one directory is worked in",
          "left_after_move": "Left with the source after the largest"}
SWEEP = {"create_residual_12": "12 directories over the trend of all others", "create_residual_16": "16",
         "create_residual_20": "20", "create_most_over_least": "The trend's most over its least number",
         "create_median_ms": "Time of a create, ms", "journal_ms": "of a write of the journal, ms"}
SPREAD = {"create_per_s": "Creating, files a second", "stat_per_s": "reading", "delete_per_s": "deleting",
          "create_one_mds_share": "Of its share, one MDS used while creating", "delete_one_mds_share": "while deleting"}
_CLIENTS = {"survivor": "surviving client", "fresh": "fresh"}
_WORDS = {"right": "Right", "wrong": "Wrong", "missing": "Missing", "unobtainable": "Not obtainable"}
OUTCOMES = {f"{client}_outcome_{what}": f"{word}, {who}"
            for client, who in _CLIENTS.items() for what, word in _WORDS.items()}
SYMPTOMS = {"other_mds_died": "Other MDS died", "client_cut": "Client cut off", "migration_failed": "Migration failed",
            "map_not_updated": "Map not updated", "migration_under_way": "A migration in progress",
            "migration_waits": "and waiting for the dead", "map_keeps_dead": "Map names the dead",
            "rank_unserved": "No server for the rank", "unexplained": "Not explained",
            "right_again": "Right at the end"}
NAMES = {"names": "Names", "names_on_the_dead": "of the dead server", **{
    f"{client}_{what}_{part}": f"{_WORDS[what]}, {who}, {server}" for client, who in _CLIENTS.items()
    for what in ("right", "unobtainable") for part, server in (("dead", "the dead's"), ("living", "the living's"))}}
CRASH = {"noticed_s": "Noticed after, s", "map_updated_s": "In the map after, s", "active_s": "Active after, s",
         "fresh_mounted": "Fresh client mounts", "survivor_asked": "Requests of the surviving client's look",
         "survivor_unasked": "Names it had no time for", "load_names": "Names left by the load",
         "load_lost": "lost of them", "load_back": "there though deleted"}
RECOVERY = {"came_back": "Active again, of all", "detection_s": "Detection, s", "takeover_s": "Takeover, s",
            "longest_blocked_s": "Longest blocked operation, s", "rate_before": "Operations a second before",
            "rate_during": "meanwhile", "rate_after": "after", "failed_calls": "Failed",
            "kept": "Metadata as before, of all", "kept_fresh": "for a client that mounts afterwards"}


def with_arm(summary: pd.DataFrame, *parameters: str) -> pd.DataFrame:
    """The summary with a column `arm`: the names of these parameters' values."""
    if not len(summary):
        return summary
    rows = zip(*(summary[parameter] for parameter in parameters))
    return summary.assign(arm=[", ".join(map(name, values, parameters)) for values in rows])


def with_cache(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary with a column `cache`: the size of the client's cache, as text."""
    return summary.assign(cache=[f"{n:,} inodes" for n in summary["cache_inodes"]]) if len(summary) else summary


def by_phase(summary: pd.DataFrame, op: str) -> pd.DataFrame:
    """The rates of one operation as `phase_per_s`, a row for each `phase` (order and operation)."""
    columns = [metric for metric in (f"sequential_{op}_per_s", f"random_{op}_per_s") if metric in summary]
    if not columns:
        return summary
    others = [column for column in ("mds", "directories", "tool", "repeat", *origin(summary)) if column in summary]
    return pd.concat([summary[others].assign(
        client_limited=client_limited(summary, metric).astype(float), phase=metric.removesuffix("_per_s"),
        phase_per_s=summary[metric]) for metric in columns], ignore_index=True)


def of_own_clients(summary: pd.DataFrame) -> pd.DataFrame:
    """The points of this study's clients, which read again by a fresh mount; those of earlier runs do not."""
    if not len(summary):
        return summary
    again = summary[summary["tool"].isin(REREADING)]
    return again if len(again) else of(summary, tool="own")


def by_number(summary: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A sweep's rates, a row for each number of `directories`."""
    found = {int(name.rpartition("_")[2]): name for name in summary
             if name.startswith(f"{metric}_") and name.rpartition("_")[2].isdigit()}
    if not len(summary) or not found:
        return summary
    return pd.concat([summary.assign(**{"directories": number, metric: summary[name]})
                      for number, name in sorted(found.items())], ignore_index=True)


def rates_over_directories(summary: pd.DataFrame, op: str, x_label: str, label: str) -> Picture:
    """Figure 6, 7 or 8: panels for each tool and order, a line for each number of MDSs."""
    tools = sorted(set(summary["tool"])) if len(summary) else []
    pictures = [line_chart(by_phase(of(summary, tool=tool), op), x="directories", hue="mds", col="phase",
                     metric="phase_per_s", x_label=x_label, label=label, note=name(tool)) for tool in tools]
    if not any(picture.panels for picture in pictures):
        return NOT_MEASURED
    return Picture(tuple(one for picture in pictures for one in picture.panels),
                   " ".join(dict.fromkeys(picture.caption for picture in pictures if picture.panels)))


def settings(summary: pd.DataFrame, rates: dict) -> tuple[list[str], list[int]]:
    """Tools and numbers of directories of the points that are shown, which may be published ones; without any, those of
    the run."""
    found = summary if len(summary) else pd.DataFrame({"tool": rates["tools"]}).merge(
        pd.DataFrame({"directories": rates["directories"]}), how="cross")
    return in_order(found["tool"], "tool"), sorted(found["directories"].unique().tolist())


def beside_the_paper(summary: pd.DataFrame, tools: list[str], directories: list[int]) -> Table:
    """The rate with two MDSs over that with one, beside what the paper states of it."""
    two, one = {"mds": 2}, {"mds": 1}
    rows = tuple((name(phase), str(number), STATED[phase.partition("_")[2]],
                  *(times(summary, f"{phase}_per_s", two, one, tool=tool, directories=number) for tool in tools))
                 for phase in PHASES for number in directories)
    return Table(("Rate with two metadata servers over that with one", "Directories", "Paper", *map(name, tools)), rows,
                 label="rates beside the paper's statements", caption="Medians of the repeats, and their intervals.")


def printed_deleting(printed: pd.DataFrame) -> str:
    """The paper's range of the rate of deleting with two MDSs over that with one: "0.1 to 0.5"."""
    lower = printed.set_index("what")["value"]
    return f'{(100 - lower["delete_less_most"]) / 100:g} to {(100 - lower["delete_less_least"]) / 100:g}'


def runs_with(runs: pd.DataFrame, metric: str, **where) -> str:
    """The number of runs in which the metric is not 0, of those of which it is known, as text: "2 of 18 runs"."""
    chosen = of(runs, **where)
    known = chosen[metric].dropna() if len(chosen) else ()
    if not len(known):
        return NOT_MEASURED_TEXT
    return counted(f"{int((known != 0).sum())} of {plural(len(known), 'run')}", chosen)


def ways_left(runs: pd.DataFrame):
    """Number of the paper's four ways to fail that were observed; a text if nothing was measured."""
    return sum(bool((runs[way].dropna() != 0).any()) for way in WAYS) if len(runs) else NOT_MEASURED_TEXT


def versions(summary: pd.DataFrame) -> dict:
    """The measured versions, by their names in paper.yml; those of the last record."""
    texts = {metric: [one for one in (summary[metric] if metric in summary else ()) if isinstance(one, str)]
             for metric in ("ceph_version", "fuse_version", "bonnie_version")}
    return {metric: of_metric[-1] if of_metric else NOT_MEASURED_TEXT for metric, of_metric in texts.items()}


@says_run
def cached_metadata(summary: pd.DataFrame, *, by: list[str]) -> Picture:
    """A panel for each setting of `by`, of its first repeat with the lists: a line for each
    rank's cached inodes over time, bands for the phases, an arrow where inodes migrated.

    `summary` has the lists of labbook.papers.ceph_mds.cache.figure_lists. Panels of the first MOST settings.
    """
    if "cached_t_s" not in summary:
        return NOT_MEASURED
    found = summary[summary["cached_t_s"].map(_is_list).astype(bool)]
    if not len(found):
        return NOT_MEASURED
    chosen = [(setting, rows.sort_values("repeat").iloc[0])
              for setting, rows in list(found.groupby(by, sort=True))[:MOST]]
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
    return panel(figure, _alt(title, rank, inodes, phases, moved))


def _bands(axes, phases):
    """A band for every second phase; each phase's name stands upright at its start."""
    for i, (phase, since, to) in enumerate(phases):
        axes.axvspan(since, to, color=WASH if i % 2 else "none", linewidth=0, zorder=0)
        axes.axvline(since, color=FAINT, linewidth=0.6, linestyle=(0, (1, 2)))
        axes.annotate(name(phase), (since, 1), (2, -3), xycoords=("data", "axes fraction"), va="top",
                      ha="left", textcoords="offset points", fontsize=7.5, color=FAINT, rotation=90)


def _alt(title, rank, inodes, phases, moved) -> str:
    parts = [f"rank {one}: at most {number(inodes[rank == one].max())} inodes, "
            f"{number(inodes[rank == one][-1])} at the end" for one in sorted(set(rank))]
    parts += [f"{name(phase)} from {number(since)} to {number(to)} s" for phase, since, to in phases]
    parts += [f"{number(count)} inodes migrate at {number(at)} s" for at, count in moved]
    return f"Chart through time, {title}: metadata cached by each metadata server. " + "; ".join(parts) + "."

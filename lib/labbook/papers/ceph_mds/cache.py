"""What metadata servers (MDSs) cached through a benchmark's phases, and what moved between them. Pure.

`seen` has a row a look at one MDS: t_s (epoch), daemon, rank, inodes, dirs (cached now),
exported (trees), exported_inodes and further counters since its start, owned (paths of the subtrees
that it owns).
`phases` has a row a phase that came to its end, in order: phase, from_s, to_s (epoch).
"""

import math

import numpy as np
import pandas as pd

from labbook.papers.ceph_mds.moves import (
    SLACK_S,
    cached_at,
    each_mds,
    migrating_over_quiet,
    moves,
    shared_out,
)

__all__ = ["asked_numbers", "both_orders", "cache_numbers", "drawn", "grown",
           "migrating_over_quiet", "moves", "shared_out"]


def grown(seen: pd.DataFrame, counter: str, from_s: float, to_s: float) -> float:
    """How much a counter of all MDSs together grew between two moments, which looks taken a moment
    before and after are interpolated for. NaN where nobody looked."""
    found = [np.interp([from_s, to_s], one["t_s"], one[counter]) for _, one in each_mds(seen)]
    return float(sum(late - early for early, late in found)) if found else math.nan


def cache_numbers(seen: pd.DataFrame, phases: pd.DataFrame) -> dict:
    """Figure 5 in numbers; shares are of all files that there were, which are the `operations` of the
    last create before: phases that go on for long make more files.

    one_has_after_create: the share of all that is cached then which one MDS has. moved_creating,
    moved_reading, moved_deleting: inodes that migrated in these phases, in the mean of a phase.
    moved_at_once: in the largest migration, left_after_move: what of its cache the one that gave
    still had then, most_directories_at_once: directories in one migration; directories_a_tree: the
    most that moved as one tree, while names were gone through in order, so that one directory alone
    was worked in. migrations: how many.
    shared_out: directories of which two MDSs had a part. NaN where there was none to tell of.
    """
    found = moves(seen)
    largest = found.loc[found["inodes"].idxmax()] if len(found) else None
    told = {f"moved_{word}": _moved(seen, phases, ends) for word, ends in
            (("creating", "create"), ("reading", "stat"), ("deleting", "delete"))}
    return told | {
        "one_has_after_create": _one_has(seen, phases), "migrations": float(len(found)),
        "moved_at_once": (float(largest["inodes"]) / _files(phases, largest["from_s"])
                          if len(found) else 0.0),
        "left_after_move": float(largest["left"]) if len(found) else math.nan,
        "most_directories_at_once": float(found["directories"].max()) if len(found) else 0.0,
        "directories_a_tree": _untouched(found, phases), "shared_out": float(shared_out(seen))}


def _untouched(found, phases) -> float:
    """Directories of the largest tree that moved while one alone of all was worked in."""
    in_order = phases[phases["phase"].str.startswith("sequential")]
    sizes = [one.directories / one.trees for one in found.itertuples() if one.trees
             and ((in_order["from_s"] <= one.from_s) & (one.from_s <= in_order["to_s"])).any()]
    return max(sizes, default=math.nan)


def _moved(seen, phases, ends) -> float:
    """By the counters, which tell to whom a migration belongs that goes on at a phase's end."""
    which = phases[phases["phase"].str.endswith(ends)]
    found = [grown(seen, "exported_inodes", one.from_s, one.to_s) / _files(phases, one.from_s)
             for one in which.itertuples()]
    return sum(found) / len(found) if found else math.nan


def _files(phases, at_s) -> float:
    """How many files the last create made that had begun by then; of none, the first's."""
    made = phases[phases["phase"].str.endswith("create")]
    begun = made[made["from_s"] <= at_s]
    which = begun.iloc[-1:] if len(begun) else made.iloc[:1]
    return float(which["operations"].sum()) or math.nan


def _one_has(seen, phases) -> float:
    made = phases[phases["phase"].str.endswith("create")]
    if not len(made):
        return math.nan
    cached = [cached_at(looks, "inodes", made["to_s"].iloc[0]) for _, looks in each_mds(seen)]
    return max(cached) / sum(cached) if sum(cached) else math.nan


def asked_numbers(seen: pd.DataFrame, phases: pd.DataFrame) -> dict:
    """Of each phase with its number of `operations`: {phase}_asked, requests that MDSs had for each
    operation, but for those that they sent on to another: {phase}_forwarded; and {phase}_cached, the
    share of operations that took none. Phases that follow one another sooner than two looks do are
    not told apart to the last request."""
    found = {}
    for one in phases.itertuples():
        came, sent = (grown(seen, counter, one.from_s, one.to_s) / one.operations if one.operations
                      else math.nan for counter in ("requests", "forward"))
        found |= {f"{one.phase}_asked": came - sent, f"{one.phase}_forwarded": sent,
                  f"{one.phase}_cached": 1 - min(1.0, came - sent)}
    return found


def both_orders(metrics: dict) -> dict:
    """Of a benchmark's rates ({order}_{op}_per_s, both orders of as many operations): {op}_per_s of
    both together, and {op}_random_over_sequential. NaN where one of them is missing; nothing of a
    benchmark without orders, which has rates of that name itself."""
    found = {}
    for op in ("create", "stat", "delete"):
        names = [f"{order}_{op}_per_s" for order in ("sequential", "random")]
        if not set(names) <= set(metrics):
            continue
        one, other = map(metrics.get, names)
        there = one > 0 and other > 0       # false for NaN, too
        found[f"{op}_per_s"] = 2 / (1 / one + 1 / other) if there else math.nan
        found[f"{op}_random_over_sequential"] = other / one if there else math.nan
    return found


def drawn(seen: pd.DataFrame, phases: pd.DataFrame, most: int = 400) -> dict:
    """Lists for figures.cached_metadata, times from the first phase's begin: cached_t_s,
    cached_rank, cached_inodes (thinned to about `most` looks), phase_name, phase_from_s, phase_to_s,
    move_t_s, move_inodes."""
    zero, end = float(phases["from_s"].min()), float(phases["to_s"].max())
    looks = seen[seen["t_s"].between(zero - SLACK_S, end + SLACK_S) & seen["rank"].notna()].sort_values("t_s")
    # Of each rank by itself: the looks take turns, and every second one of all is one rank's.
    nth = looks.groupby("rank").cumcount() % max(1, math.ceil(len(looks) / most))
    looks = looks[nth == 0]
    moved = moves(seen)
    moved = moved[moved["to_s"].between(zero, end)]
    return {"cached_t_s": _rounded(looks["t_s"] - zero), "cached_rank": [int(r) for r in looks["rank"]],
            "cached_inodes": [int(n) for n in looks["inodes"]], "phase_name": list(phases["phase"]),
            "phase_from_s": _rounded(phases["from_s"] - zero), "phase_to_s": _rounded(phases["to_s"] - zero),
            "move_t_s": _rounded(moved["to_s"] - zero), "move_inodes": [int(n) for n in moved["inodes"]]}


def _rounded(values) -> list[float]:
    return [round(float(value), 2) for value in values]

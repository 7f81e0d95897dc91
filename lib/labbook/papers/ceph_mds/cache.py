"""Metrics of metadata servers' (MDSs') caches and migrations during a benchmark. Pure functions.

`seen`: DataFrame with a row for each observation of one MDS: t_s (epoch), daemon, rank, inodes and
dirs (currently cached), exported (trees), exported_inodes and other counters since its start, owned
(paths of the subtrees that it owns).
`phases`: DataFrame with a row for each completed phase, in order: phase, from_s, to_s (epoch),
operations.
"""

import math

import numpy as np
import pandas as pd

LEFT_S = 0.5        # within which a source drops exported inodes from its cache
SLACK_S = 1.0       # tolerance between observations of different MDSs
GAP_S = 0.5         # without an export, between two migrations: the balancer's rounds are a second apart or more


def counter_growth(seen: pd.DataFrame, counter: str, from_s: float, to_s: float) -> float:
    """Sum over all MDSs of a counter's growth between two times, interpolated between observations.

    NaN without observations.
    """
    readings = [np.interp([from_s, to_s], one["t_s"], one[counter]) for _, one in each_mds(seen)]
    return float(sum(late - early for early, late in readings)) if readings else math.nan


def cache_metrics(seen: pd.DataFrame, phases: pd.DataFrame) -> dict:
    """Metrics of figure 5. Numbers of moved inodes are shares of all files at that time, which are the
    `operations` of the latest create phase.

    one_has_after_create: the largest share of all cached inodes in one MDS after the first create
    phase. moved_creating, moved_reading, moved_deleting: the inodes that the MDS which gave away most gave away in a
    phase (what moves there and back counts once); the mean over phases of that kind. migrations: their number.
    moved_at_once: inodes of the largest migration;
    left_after_move: the share of its cache that the largest migration's source still had afterwards.
    most_directories_at_once: the most directories in one migration. directories_a_tree: the most
    directories that moved as one tree in sequential phases, which use one directory at a time.
    shared_out: number of directories split between MDSs. Without a migration, its numbers are 0 and its shares NaN.
    """
    found = migrations(seen)
    largest = found.loc[found["inodes"].idxmax()] if len(found) else None
    metrics = {f"moved_{word}": _moved(seen, phases, ends) for word, ends in
            (("creating", "create"), ("reading", "stat"), ("deleting", "delete"))}
    return metrics | {
        "one_has_after_create": _one_has(seen, phases), "migrations": float(len(found)),
        "moved_at_once": (float(largest["inodes"]) / _files(phases, largest["from_s"])
                          if len(found) else 0.0),
        "left_after_move": float(largest["left"]) if len(found) else math.nan,
        "most_directories_at_once": float(found["directories"].max()) if len(found) else 0.0,
        "directories_a_tree": _untouched(found, phases), "shared_out": float(shared_out(seen))}


def _untouched(found, phases) -> float:
    """Directories in the largest tree that moved during a sequential phase."""
    in_order = phases[phases["phase"].str.startswith("sequential")]
    sizes = [one.directories / one.trees for one in found.itertuples() if one.trees
             and ((in_order["from_s"] <= one.from_s) & (one.from_s <= in_order["to_s"])).any()]
    return max(sizes, default=math.nan)


def _moved(seen, phases, ends) -> float:
    """Migrated inodes, by counters, which split a migration that continues after a phase's end."""
    which = phases[phases["phase"].str.endswith(ends)]
    shares = [max((counter_growth(looks, "exported_inodes", one.from_s, one.to_s) for _, looks in each_mds(seen)),
                  default=math.nan) / _files(phases, one.from_s) for one in which.itertuples()]
    return sum(shares) / len(shares) if shares else math.nan


def _files(phases, at_s) -> float:
    """Files made by the last create that had begun by then; by the first create if none had."""
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


def request_metrics(seen: pd.DataFrame, phases: pd.DataFrame) -> dict:
    """Metrics of each phase's requests to MDSs, per operation.

    {phase}_asked: requests by clients; {phase}_forwarded: requests forwarded from MDS to MDS;
    {phase}_cached: the share of operations that needed no request. The borders of phases are exact to
    one observation.
    """
    metrics = {}
    for one in phases.itertuples():
        came, sent = (counter_growth(seen, counter, one.from_s, one.to_s) / one.operations if one.operations
                      else math.nan for counter in ("requests", "forward"))
        metrics |= {f"{one.phase}_asked": came - sent, f"{one.phase}_forwarded": sent,
                    f"{one.phase}_cached": 1 - min(1.0, came - sent)}
    return metrics


def of_both_orders(metrics: dict) -> dict:
    """Combine the rates of sequential and random phases, {order}_{op}_per_s.

    {op}_per_s: the rate over both, where both have as many operations; of phases of a given time the harmonic mean.
    {op}_random_over_sequential: the ratio. NaN where one rate is missing. Empty for a benchmark
    without orders, which reports {op}_per_s itself.
    """
    combined = {}
    for op in ("create", "stat", "reread", "delete"):
        names = [f"{order}_{op}_per_s" for order in ("sequential", "random")]
        if not set(names) <= set(metrics):
            continue
        one, other = map(metrics.get, names)
        known = one > 0 and other > 0       # false for NaN, too
        combined[f"{op}_per_s"] = 2 / (1 / one + 1 / other) if known else math.nan
        combined[f"{op}_random_over_sequential"] = other / one if known else math.nan
    return combined


def figure_lists(seen: pd.DataFrame, phases: pd.DataFrame, most: int = 400) -> dict:
    """Lists for figures.cached_metadata; times are seconds since the start of the first phase: cached_t_s,
    cached_rank, cached_inodes (thinned to about `most` observations), phase_name, phase_from_s, phase_to_s,
    move_t_s, move_inodes."""
    zero, end = float(phases["from_s"].min()), float(phases["to_s"].max())
    looks = seen[seen["t_s"].between(zero - SLACK_S, end + SLACK_S) & seen["rank"].notna()].sort_values("t_s")
    # Thinned for each rank, since observations alternate between ranks.
    nth = looks.groupby("rank").cumcount() % max(1, math.ceil(len(looks) / most))
    looks = looks[nth == 0]
    moved = migrations(seen)
    moved = moved[moved["to_s"].between(zero, end)]
    return {"cached_t_s": _rounded(looks["t_s"] - zero), "cached_rank": [int(r) for r in looks["rank"]],
            "cached_inodes": [int(n) for n in looks["inodes"]], "phase_name": list(phases["phase"]),
            "phase_from_s": _rounded(phases["from_s"] - zero), "phase_to_s": _rounded(phases["to_s"] - zero),
            "move_t_s": _rounded(moved["to_s"] - zero), "move_inodes": [int(n) for n in moved["inodes"]]}


def _rounded(values) -> list[float]:
    return [round(float(value), 2) for value in values]


def each_mds(seen):
    """Iterate over (daemon, its observations in the order of time)."""
    for daemon, looks in seen.groupby("daemon"):
        yield daemon, looks.sort_values("t_s")


def migrations(seen: pd.DataFrame) -> pd.DataFrame:
    """DataFrame with a row for each migration: from_s, to_s (epoch), source, target (daemons), inodes,
    trees, directories, and left: the share of its cache that the source still has afterwards. Exports
    in consecutive observations are one migration; GAP_S without one divides two."""
    steps = _steps(seen)
    number = (steps["gap_s"] > GAP_S).cumsum()
    return pd.DataFrame([_move(seen, part) for _, part in steps.groupby(number)],
                        columns=["from_s", "to_s", "source", "target", "inodes", "trees",
                                 "directories", "left"])


def _steps(seen) -> pd.DataFrame:
    """Pairs of consecutive observations of an MDS with an export between them, in the order of time:
    daemon, since_s, t_s, inodes, and gap_s, the time since the previous export."""
    parts = []
    for daemon, looks in each_mds(seen):
        exported = looks["exported_inodes"].diff().clip(lower=0)    # negative after a restart
        parts.append(pd.DataFrame({
            "daemon": daemon, "since_s": looks["t_s"].shift(), "t_s": looks["t_s"],
            "inodes": exported}).dropna())
    steps = pd.concat(parts) if parts else pd.DataFrame(columns=["daemon", "since_s", "t_s", "inodes"])
    steps = steps[steps["inodes"] > 0].sort_values("t_s", ignore_index=True)
    return steps.assign(gap_s=(steps["since_s"] - steps["t_s"].cummax().shift()).fillna(0))


def _move(seen, part) -> dict:
    source = part.groupby("daemon")["inodes"].sum().idxmax()
    since, to = float(part["since_s"].min()), float(part["t_s"].max())
    others = {daemon: cached_at(looks, "dirs", to + SLACK_S) - cached_at(looks, "dirs", since)
              for daemon, looks in each_mds(seen) if daemon != source}
    target = max(others, key=others.get, default="")
    own = seen[seen["daemon"] == source].sort_values("t_s")
    before, after = cached_at(own, "inodes", since), _least(own, to, to + LEFT_S)
    counted = own["exported"][own["t_s"].between(since, to + LEFT_S)]     # counted up to LEFT_S later than the inodes
    trees = float(counted.max() - counted.min())
    return {"from_s": since, "to_s": to, "source": source, "target": target,
            "inodes": float(part["inodes"].sum()), "trees": trees,
            "directories": max(0.0, others.get(target, 0.0)),
            "left": after / before if before else math.nan}


def cached_at(looks, column, t_s) -> float:
    """A column of one MDS's observations at a time, interpolated."""
    return float(np.interp(t_s, looks["t_s"], looks[column]))


def _least(looks, from_s, to_s) -> float:
    within = looks["inodes"][looks["t_s"].between(from_s, to_s)]
    return float(within.min()) if len(within) else cached_at(looks, "inodes", to_s)


def shared_out(seen: pd.DataFrame) -> int:
    """Number of directories of which an MDS owned only a part in two consecutive observations; in a single
    one, parts may be in transit. `/x#01*` names a quarter of /x, by two bits."""
    split = set()
    for _, looks in each_mds(seen):
        parts = [_in_part(owned) for owned in looks["owned"]]
        split.update(path for one, other in zip(parts, parts[1:]) for path in one & other)
    return len(split)


def _in_part(owned) -> set[str]:
    shares = {}
    for name in owned:
        path, mark, part = name.partition("#")
        if mark:
            shares[path] = shares.get(path, 0) + 0.5 ** len(part.rstrip("*"))
    return {path for path, share in shares.items() if share < 1}


def migrating_over_quiet(rows: pd.DataFrame, seen: pd.DataFrame) -> float:
    """Ratio of mean times: operations that began during a migration over all others of their phase, the geometric
    mean of the phases. Those that merely overlap a migration are not counted to it, since the longer one lasts, the
    more of them it overlaps.

    rows: DataFrame with phase, started_s (epoch) and seconds. NaN where no phase has operations of both groups.
    """
    spans, logs = list(migrations(seen).itertuples()), []
    for _, phase in rows.groupby("phase"):
        begun, seconds = phase["started_s"].to_numpy(), phase["seconds"].to_numpy()
        during = np.zeros(len(phase), bool)
        for one in spans:
            during |= (begun >= one.from_s) & (begun < one.to_s)
        if during.any() and not during.all():
            logs.append(math.log(seconds[during].mean() / seconds[~during].mean()))
    return math.exp(sum(logs) / len(logs)) if logs else math.nan

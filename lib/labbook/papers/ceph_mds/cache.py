"""What metadata servers (MDSs) cached through a benchmark's phases, and what migrated between them. Pure.

`seen` has a row a look at one MDS: t_s (epoch), daemon, rank, inodes, dirs (cached now),
exported (trees), exported_inodes and further counters since its start, owned (paths of the subtrees
that it owns).
`phases` has a row a completed phase, in order: phase, from_s, to_s (epoch), operations.
"""

import math

import numpy as np
import pandas as pd

LEFT_S = 0.5        # in which a source drops what it exported
SLACK_S = 1.0       # between two looks at all MDSs, so that no step seems to end before it began



def counter_growth(seen: pd.DataFrame, counter: str, from_s: float, to_s: float) -> float:
    """Growth of a counter of all MDSs together between two times, interpolated between looks. NaN
    without looks."""
    found = [np.interp([from_s, to_s], one["t_s"], one[counter]) for _, one in each_mds(seen)]
    return float(sum(late - early for early, late in found)) if found else math.nan


def cache_metrics(seen: pd.DataFrame, phases: pd.DataFrame) -> dict:
    """Metrics of figure 5. Shares are of all files at that time: the `operations` of the last create
    before, since long phases make more files.

    one_has_after_create: the share of all cached inodes that one MDS has after creating.
    moved_creating, moved_reading, moved_deleting: inodes that migrated in such a phase, mean of the
    phases. migrations: their number. moved_at_once: inodes of the largest; left_after_move: the share
    of its cache that its source still had afterwards. most_directories_at_once: directories in one
    migration. directories_a_tree: the most directories that moved as one tree while files were worked
    on in order, in one directory at a time. shared_out: directories split between two MDSs. NaN
    without such an event.
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
    """Directories of the largest tree that moved while one directory was worked in."""
    in_order = phases[phases["phase"].str.startswith("sequential")]
    sizes = [one.directories / one.trees for one in found.itertuples() if one.trees
             and ((in_order["from_s"] <= one.from_s) & (one.from_s <= in_order["to_s"])).any()]
    return max(sizes, default=math.nan)


def _moved(seen, phases, ends) -> float:
    """By the counters: they split a migration that goes on at a phase's end."""
    which = phases[phases["phase"].str.endswith(ends)]
    found = [counter_growth(seen, "exported_inodes", one.from_s, one.to_s) / _files(phases, one.from_s)
             for one in which.itertuples()]
    return sum(found) / len(found) if found else math.nan


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
    """For each phase: {phase}_asked, requests to MDSs for each operation, without {phase}_forwarded, those
    that an MDS forwarded to another; {phase}_cached, the share of operations without a request. The
    border between two phases is exact to one look."""
    found = {}
    for one in phases.itertuples():
        came, sent = (counter_growth(seen, counter, one.from_s, one.to_s) / one.operations if one.operations
                      else math.nan for counter in ("requests", "forward"))
        found |= {f"{one.phase}_asked": came - sent, f"{one.phase}_forwarded": sent,
                  f"{one.phase}_cached": 1 - min(1.0, came - sent)}
    return found


def of_both_orders(metrics: dict) -> dict:
    """From rates of the same number of operations in both orders ({order}_{op}_per_s): {op}_per_s of
    both together, and {op}_random_over_sequential. NaN where one of them is missing; nothing for a
    benchmark without orders, which has {op}_per_s itself."""
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


def figure_lists(seen: pd.DataFrame, phases: pd.DataFrame, most: int = 400) -> dict:
    """Lists for figures.cached_metadata, times from the start of the first phase: cached_t_s,
    cached_rank, cached_inodes (thinned to about `most` looks), phase_name, phase_from_s, phase_to_s,
    move_t_s, move_inodes."""
    zero, end = float(phases["from_s"].min()), float(phases["to_s"].max())
    looks = seen[seen["t_s"].between(zero - SLACK_S, end + SLACK_S) & seen["rank"].notna()].sort_values("t_s")
    # Thinned for each rank: looks alternate between ranks.
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
    """Each daemon with its looks in the order of time."""
    for daemon, looks in seen.groupby("daemon"):
        yield daemon, looks.sort_values("t_s")


def migrations(seen: pd.DataFrame) -> pd.DataFrame:
    """Migrations, a row each: from_s, to_s, source, target (daemons), inodes, trees (each moved as
    one), directories, and left: the share of its cache that the source still has. Exports in
    consecutive looks are one migration."""
    steps = _steps(seen)
    number = (steps["gap_s"] > SLACK_S).cumsum()
    return pd.DataFrame([_move(seen, part) for _, part in steps.groupby(number)],
                        columns=["from_s", "to_s", "source", "target", "inodes", "trees",
                                 "directories", "left"])


def _steps(seen) -> pd.DataFrame:
    """Pairs of looks at an MDS that exported meanwhile, in the order of time: daemon, since_s, t_s,
    inodes, and gap_s, the time without any export before."""
    parts = []
    for daemon, looks in each_mds(seen):
        given = looks["exported_inodes"].diff().clip(lower=0)       # a restarted counter
        parts.append(pd.DataFrame({
            "daemon": daemon, "since_s": looks["t_s"].shift(), "t_s": looks["t_s"],
            "inodes": given}).dropna())
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
    counted = own["exported"][own["t_s"].between(since, to + LEFT_S)]     # not in the look of its inodes
    trees = float(counted.max() - counted.min())
    return {"from_s": since, "to_s": to, "source": source, "target": target,
            "inodes": float(part["inodes"].sum()), "trees": trees,
            "directories": max(0.0, others.get(target, 0.0)),
            "left": after / before if before else math.nan}


def cached_at(looks, column, t_s) -> float:
    return float(np.interp(t_s, looks["t_s"], looks[column]))


def _least(looks, from_s, to_s) -> float:
    within = looks["inodes"][looks["t_s"].between(from_s, to_s)]
    return float(within.min()) if len(within) else cached_at(looks, "inodes", to_s)


def shared_out(seen: pd.DataFrame) -> int:
    """How many directories an MDS owned in part only in two consecutive looks (one look may catch parts
    in transit). `/x#01*` is the quarter of /x of that name."""
    found = set()
    for _, looks in each_mds(seen):
        parts = [_in_part(owned) for owned in looks["owned"]]
        found.update(path for one, other in zip(parts, parts[1:]) for path in one & other)
    return len(found)


def _in_part(owned) -> set[str]:
    shares = {}
    for name in owned:
        path, mark, part = name.partition("#")
        if mark:
            shares[path] = shares.get(path, 0) + 0.5 ** len(part.rstrip("*"))
    return {path for path, share in shares.items() if share < 1}


def migrating_over_quiet(rows: pd.DataFrame, seen: pd.DataFrame) -> float:
    """Mean time of the operations that overlapped a migration over that of the others. rows: started_s
    (epoch), seconds. NaN where one of the two groups is empty."""
    begun, over = rows["started_s"].to_numpy(), (rows["started_s"] + rows["seconds"]).to_numpy()
    during = np.zeros(len(rows), bool)
    for one in migrations(seen).itertuples():
        during |= (begun < one.to_s) & (over > one.from_s)
    if during.all() or not during.any():
        return math.nan
    seconds = rows["seconds"].to_numpy()
    return float(seconds[during].mean() / seconds[~during].mean())

"""What metadata servers (MDSs) gave to each other, from looks at each of them: see mds_cache. Pure."""

import math

import numpy as np
import pandas as pd

LEFT_S = 0.5        # in which a giver has let go of what it gave
SLACK_S = 1.0       # between two looks at all MDSs, so that no step seems to end before it began


def each_mds(seen):
    """(daemon, its looks in the order of time) of each."""
    for daemon, looks in seen.groupby("daemon"):
        yield daemon, looks.sort_values("t_s")


def moves(seen: pd.DataFrame) -> pd.DataFrame:
    """Migrations, a row each: from_s, to_s, source, target (daemons), inodes, trees (each moved as
    one), directories, and left: the share of what the source had cached that it still has. What is
    given away in looks that follow one another is one migration."""
    steps = _steps(seen)
    number = (steps["gap_s"] > SLACK_S).cumsum()
    return pd.DataFrame([_move(seen, part) for _, part in steps.groupby(number)],
                        columns=["from_s", "to_s", "source", "target", "inodes", "trees",
                                 "directories", "left"])


def _steps(seen) -> pd.DataFrame:
    """Of each two looks at an MDS that gave something away meanwhile: daemon, since_s, t_s, inodes,
    and gap_s, how long nobody had given anything; in the order of time."""
    parts = []
    for daemon, looks in each_mds(seen):
        given = looks["exported_inodes"].diff().clip(lower=0)       # began anew: nothing is known
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
    """How many directories an MDS owned a part of and not the whole, in two looks that followed one
    another; one may tell of parts on their way. `/x#01*` is the quarter of /x of that name."""
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
    """How many times as long operations took that were under way while metadata migrated, in the
    mean, as the others. rows: started_s (epoch), seconds. NaN where one of the two is none."""
    begun, over = rows["started_s"].to_numpy(), (rows["started_s"] + rows["seconds"]).to_numpy()
    during = np.zeros(len(rows), bool)
    for one in moves(seen).itertuples():
        during |= (begun < one.to_s) & (over > one.from_s)
    if during.all() or not during.any():
        return math.nan
    seconds = rows["seconds"].to_numpy()
    return float(seconds[during].mean() / seconds[~during].mean())

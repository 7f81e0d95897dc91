"""What joins come to in a few numbers, and what became of the calls made meanwhile. Pure.

A join is a dict: node, token, share (of the ring), asked_s and normal_s (when it was asked for and
when the ring had it, epoch), join_s, fixed_wait_s (its sleeps), streaming_s, received_bytes,
expected_bytes, donor_bytes_before and donor_bytes_after.
"""

import math

MEGABYTE = 1e6


def join_numbers(joins: list[dict], together: bool = False) -> dict:
    """Measures of joins in the order in which they were asked for, at once or one after another.

    join_s, fixed_wait_s, streaming_s, rest_s (neither of the two: Java's start and the like) and
    moving_s (all but the fixed waits) are means over the joiners, join_1_s, moving_1_s and
    received_1_mb the first one's, and so on; least_join_s the shortest, last_over_first the last
    one's moving_s over the first one's (NaN of one). all_joined_s and moving_all_s: until all were
    there, of joins at once the longest, else their sum. received_mb: all together; most_received_mb
    and least_received_mb of one. grown_times: the donor's files after the last over those before
    the first. ValueError without joins.
    """
    if not joins:
        raise ValueError("there are no joins")
    moving = [one["join_s"] - one["fixed_wait_s"] for one in joins]
    times = [one["join_s"] for one in joins]
    received = [one["received_bytes"] / MEGABYTE for one in joins]
    until_all = max if together else sum
    found = {name: _mean(one[name] for one in joins)
             for name in ("join_s", "fixed_wait_s", "streaming_s")}
    found |= {"moving_s": _mean(moving), "rest_s": _mean(moving) - found["streaming_s"],
              "least_join_s": min(times),
              "all_joined_s": until_all(times), "moving_all_s": until_all(moving),
              "received_mb": sum(received), "most_received_mb": max(received),
              "least_received_mb": min(received),
              "stream_mb_per_s": sum(received) / sum(one["streaming_s"] for one in joins),
              "grown_times": joins[-1]["donor_bytes_after"] / joins[0]["donor_bytes_before"]}
    for i, values in enumerate(zip(times, moving, received), 1):
        found |= dict(zip((f"join_{i}_s", f"moving_{i}_s", f"received_{i}_mb"), values))
    return found | {"last_over_first": moving[-1] / moving[0] if len(joins) > 1 else math.nan}


def marks(joins: list[dict], started: float) -> dict:
    """When each join began and ended, in seconds since `started` (epoch)."""
    return {"join_starts_s": [one["asked_s"] - started for one in joins],
            "join_ends_s": [one["normal_s"] - started for one in joins]}


def streams(joins: list[dict], started: float) -> dict:
    """The same of the streaming alone, which ends as a join does."""
    return {"join_starts_s": [one["normal_s"] - one["streaming_s"] - started for one in joins],
            "join_ends_s": [one["normal_s"] - started for one in joins]}


def begun_while(rows, join_starts_s: list[float], join_ends_s: list[float]):
    """Those of the calls `rows` that began while a node joined."""
    begun, joins = rows["started_s"], zip(join_starts_s, join_ends_s)
    return rows[sum((begun >= start) & (begun < end) for start, end in joins) > 0]


def calls_through(rows, join_starts_s: list[float], join_ends_s: list[float],
                  since_s: float = 0.0) -> dict:
    """Mean times of the calls that came out: before_ms (began at `since_s` or later and ended before
    the first join began), during_ms (began while a node joined), after_ms (began after the last
    join's end), and during_over_before and after_over_before; NaN where there is no such call.

    rows: started_s, seconds, ok.
    """
    ok = rows[rows["ok"].astype(bool)]
    begun, over = ok["started_s"], ok["started_s"] + ok["seconds"]
    times = {"before": ok["seconds"][(begun >= since_s) & (over < min(join_starts_s))],
             "during": begun_while(ok, join_starts_s, join_ends_s)["seconds"],
             "after": ok["seconds"][begun >= max(join_ends_s)]}
    found = {f"{when}_ms": float(seconds.mean()) * 1000 for when, seconds in times.items()}
    return found | {f"{when}_over_before": found[f"{when}_ms"] / found["before_ms"]
                    for when in ("during", "after")}


def in_thirds(rows, since_s: float, seconds: float) -> dict:
    """The same of calls while nothing joins, for comparison: of `seconds` from `since_s` on the
    first third is before, the middle one during, the last one after."""
    return calls_through(rows, [since_s + seconds / 3], [since_s + 2 * seconds / 3], since_s)


def _mean(values) -> float:
    values = list(values)
    return sum(values) / len(values)

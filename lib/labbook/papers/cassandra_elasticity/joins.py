"""Metrics of joins, and of calls before, during and after them. Pure functions.

A join is a dict: node, token, share (of the ring), asked_s and normal_s (when it was requested and
when the ring showed it as complete, epoch), join_s, fixed_wait_s (its sleeps), streaming_s, streamed_from_s and
streamed_to_s (by its log, epoch), received_bytes, expected_bytes, donor_bytes_before and donor_bytes_after.
"""

import math

import pandas as pd

MEGABYTE = 1e6


def join_metrics(joins: list[dict], together: bool = False) -> dict:
    """Metrics of joins in the order of their requests; `together`: they were requested at once.

    join_s, fixed_wait_s, streaming_s, rest_s (neither of the two: the start of Java and the like) and
    moving_s (all but the fixed waits) are means over the joiners. join_1_s, moving_1_s and
    received_1_mb are of the first joiner, and so on. least_join_s: the shortest. last_over_first: the
    last joiner's moving_s over the first one's (NaN for one joiner). all_joined_s and moving_all_s:
    time until all have joined; the longest of joins at once, otherwise the sum. received_mb: of all
    joiners; most_received_mb and least_received_mb: of one. grown_times: size of the donor's files
    after the last join over that before the first (NaN without data). from_request_s: of a join, from when
    the node, whose Java has started by then, asks for its place in the ring; moving_from_request_s: of that all but
    the fixed waits. ValueError without joins.
    """
    if not joins:
        raise ValueError("there are no joins")
    moving = [one["join_s"] - one["fixed_wait_s"] for one in joins]
    times = [one["join_s"] for one in joins]
    received = [one["received_bytes"] / MEGABYTE for one in joins]
    until_all = max if together else sum
    metrics = {name: _mean(one[name] for one in joins)
               for name in ("join_s", "fixed_wait_s", "streaming_s")}
    metrics |= {"moving_s": _mean(moving), "rest_s": _mean(moving) - metrics["streaming_s"],
                "least_join_s": min(times),
                "all_joined_s": until_all(times), "moving_all_s": until_all(moving),
                "received_mb": sum(received), "most_received_mb": max(received),
                "least_received_mb": min(received),
                "stream_mb_per_s": _over(sum(received), sum(one["streaming_s"] for one in joins)),
                "grown_times": _over(joins[-1]["donor_bytes_after"], joins[0]["donor_bytes_before"])}
    if all(one.get("from_request_s") is not None for one in joins):
        metrics["from_request_s"] = _mean(one["from_request_s"] for one in joins)
        metrics["moving_from_request_s"] = metrics["from_request_s"] - metrics["fixed_wait_s"]
    for i, values in enumerate(zip(times, moving, received), 1):
        metrics |= dict(zip((f"join_{i}_s", f"moving_{i}_s", f"received_{i}_mb"), values))
    return metrics | {"last_over_first": moving[-1] / moving[0] if len(joins) > 1 else math.nan}


def join_rows(joins: list[dict]) -> pd.DataFrame:
    """DataFrame of joins as rows of a record, one operation each; times are seconds since the first request."""
    first = joins[0]["asked_s"]
    return pd.DataFrame([one | {"token": str(one["token"]), "started_s": one["asked_s"] - first,
                                "seconds": one["join_s"], "ok": True} for one in joins]).drop(columns="killed_s")


def joiners_apart(summary: pd.DataFrame) -> pd.DataFrame:
    """DataFrame with a row for each joiner of each point: `joiner` (from 1) and its `one_join_s`."""
    if not len(summary):
        return summary
    columns = {name: int(name.split("_")[1]) for name in summary
               if name.startswith("join_") and name.split("_")[1].isdigit()}
    own = [name for name in ("version", "data_mb", "load", "repeat", "run", "machine", "client_limited")
           if name in summary]
    rows = summary.melt(own, list(columns), "joiner", "one_join_s").dropna(subset="one_join_s")
    return rows.assign(joiner=rows["joiner"].map(columns))


def join_times(joins: list[dict], started: float) -> dict:
    """When each join began and ended, in seconds since `started` (epoch)."""
    return {"join_starts_s": [one["asked_s"] - started for one in joins],
            "join_ends_s": [one["normal_s"] - started for one in joins]}


def stream_times(joins: list[dict], started: float) -> dict:
    """The same for the streaming: the ring shows a join as complete up to two seconds after it."""
    return {"join_starts_s": [one["streamed_from_s"] - started for one in joins],
            "join_ends_s": [one["streamed_to_s"] - started for one in joins]}


def calls_during(rows, join_starts_s: list[float], join_ends_s: list[float]):
    """The rows of calls that began while a node joined."""
    began, joins = rows["started_s"], zip(join_starts_s, join_ends_s)
    return rows[sum((began >= start) & (began < end) for start, end in joins) > 0]


def call_times(rows, join_starts_s: list[float], join_ends_s: list[float],
               since_s: float = 0.0) -> dict:
    """Mean times of successful calls: before_ms (began at `since_s` or later and before the first join
    began), during_ms (began while a node joined), after_ms (began after the last join's end), and
    during_over_before and after_over_before. NaN where there is no such call. A call belongs to when it began: to
    leave out those of before that ended later would leave out the slow ones.

    rows: started_s, seconds, ok.
    """
    ok = rows[rows["ok"].astype(bool)]
    began = ok["started_s"]
    times = {"before": ok["seconds"][(began >= since_s) & (began < min(join_starts_s))],
             "during": calls_during(ok, join_starts_s, join_ends_s)["seconds"],
             "after": ok["seconds"][began >= max(join_ends_s)]}
    metrics = {f"{when}_ms": float(seconds.mean()) * 1000 for when, seconds in times.items()}
    return metrics | {f"{when}_over_before": metrics[f"{when}_ms"] / metrics["before_ms"]
                      for when in ("during", "after")}


def streaming_over_before(rows, joins: list[dict], started: float, since_s: float) -> float:
    """Mean time of calls while nodes streamed over that just before their joins: the geometric mean over the joins,
    each with the calls since the join before it ended (the first one: since `since_s`), when as many nodes served.
    Joins that overlap are one. NaN where there are no such calls.

    rows: started_s, seconds, ok. started: epoch seconds at started_s 0.
    """
    ratios = []
    for group in _apart(joins):
        times = join_times(group, started)
        before = call_times(rows, **times, since_s=since_s)["before_ms"]
        streaming = call_times(rows, **stream_times(group, started))["during_ms"]
        ratios.append(streaming / before)
        since_s = max(times["join_ends_s"])
    return _geometric_mean(ratios)


def streaming_over_waiting(rows, joins: list[dict], started: float, wait_s: float) -> float:
    """As streaming_over_before, but over the `wait_s` before the stream, in which the node that joins runs already and
    waits. So calls that become faster by themselves, while the page cache fills, have little time to."""
    ratios = []
    for group in _apart(joins):
        streams = stream_times(group, started)
        since_s = min(streams["join_starts_s"]) - wait_s
        ratios.append(call_times(rows, **streams, since_s=since_s)["during_over_before"])
    return _geometric_mean(ratios)


def _apart(joins: list[dict]) -> list[list[dict]]:
    """The joins in their order; those that overlap are together."""
    groups = []
    for one in sorted(joins, key=lambda one: one["asked_s"]):
        if groups and one["asked_s"] < max(other["normal_s"] for other in groups[-1]):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def beginning_and_end(rows, first: tuple[float, float], last: tuple[float, float]) -> dict:
    """beginning_ms, end_ms: mean times of successful calls that began and ended in a window, from and to in seconds
    as started_s; end_over_beginning. NaN where there is no such call. rows: started_s, seconds, ok."""
    ok = rows[rows["ok"].astype(bool)]
    over = ok["started_s"] + ok["seconds"]
    early, late = (float(ok["seconds"][(ok["started_s"] >= start) & (over <= end)].mean())
                   for start, end in (first, last))
    return {"beginning_ms": early * 1000, "end_ms": late * 1000, "end_over_beginning": late / early}


def _over(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _geometric_mean(ratios: list[float]) -> float:
    """NaN without ratios, and where one is NaN or 0."""
    return math.exp(_mean(math.log(one) if one > 0 else math.nan for one in ratios)) if ratios else math.nan


def _mean(values) -> float:
    values = list(values)
    return sum(values) / len(values)

"""Metrics of a rank's recovery, from states in the monitor's map and from clients' calls. Pure functions."""

import math

import pandas as pd

from labbook.workloads.files.rows import BLOCKED_WORD

ACTIVE = "active"
STEPS = ("replay", "resolve", "reconnect", "rejoin", "clientreplay")   # before active, in order
ORDER = ("replay", "resolve", "reconnect", "rejoin", ACTIVE)    # as the paper names them


def recovery_metrics(states: pd.DataFrame, rank: int, killed_s: float) -> dict:
    """Metrics of the recovery of `rank` after the kill at `killed_s` (epoch), in seconds.

    states: DataFrame with a row for each change of state, in the order of time: t_s (epoch), rank,
    daemon, state.

    detection_s: from the kill until the map no longer shows the dead server as active; takeover_s: from
    then until the rank is active; recovery_s: their sum. replay_s, resolve_s, ...: time in each of
    STEPS, 0 where it was skipped; a step between two maps may be missed. unserved_s: time without a
    server. active_at_s: epoch. NaN for events that did not happen.
    """
    mine = states[(states["rank"] == rank) & (states.t_s >= killed_s)].sort_values(
        "t_s", kind="stable")
    metrics = {name: math.nan for name in ("detection_s", "takeover_s", "recovery_s", "active_at_s",
                                           "unserved_s", *(f"{step}_s" for step in STEPS))}
    left = mine[mine.state != ACTIVE]
    if not len(left):
        return metrics
    noticed = float(left.t_s.iloc[0])
    metrics["detection_s"] = noticed - killed_s
    back = mine[(mine.state == ACTIVE) & (mine.t_s >= noticed)]
    if not len(back):
        return metrics
    active = float(back.t_s.iloc[0])
    between = mine[(mine.t_s >= noticed) & (mine.t_s < active)]
    durations = [*between.t_s.iloc[1:], active] - between.t_s
    steps = durations.groupby(between.state).sum()
    return metrics | {"takeover_s": active - noticed, "recovery_s": active - killed_s,
                      "active_at_s": active,
                      "unserved_s": float(durations[~between.state.isin(STEPS)].sum()),
                      **{f"{step}_s": float(steps.get(step, 0.0)) for step in STEPS}}


def in_order(states: pd.DataFrame, rank: int, killed_s: float) -> bool:
    """Whether the rank went through the paper's steps in ORDER and became active."""
    mine = states[(states["rank"] == rank) & (states.t_s >= killed_s)].sort_values(
        "t_s", kind="stable")
    return [state for state in mine.state if state in ORDER] == list(ORDER)


def metrics_through(rows, killed_s: float, active_s: float, *, before_s: float = math.inf,
                    settle_s: float = 2.0) -> dict:
    """Metrics of clients' calls before, during and after a recovery.

    rows: DataFrame with a row for each call: started_s, seconds, ok, error, client. killed_s and
    active_s (when the rank was active again) are in the clock of the rows.

    rate_before (of the last `before_s` before the kill: the first calls come while directories still lie on one
    server, several times as fast), rate_during (from the kill until active_s), rate_after (from `settle_s` after
    that): successful calls a second, counted at their end; during_over_before and
    after_over_before. before_ms and after_ms: their mean times. longest_blocked_s: the longest of the
    calls in progress at the kill or begun between it and active_s; blocked_clients: clients with such
    a call of 1 s or more. errors: calls that failed after the kill; blocked: calls that never ended. With
    `active_s` NaN, when the rank did not return, there is no after. ValueError without successful
    calls in the time before the kill.
    """
    ends = rows["started_s"] + rows["seconds"]
    last = float(ends[rows["error"] != BLOCKED_WORD].max())     # others were waited for after the load
    until = last if math.isnan(active_s) else active_s
    first = max(float(rows["started_s"].min()), killed_s - before_s)
    spans = {"before": (first, killed_s), "during": (killed_s, until), "after": (until + settle_s, last)}
    good = rows["ok"].astype(bool)
    if not (good & (ends > first) & (ends <= killed_s)).any():
        raise ValueError("no call succeeded before the kill")
    metrics = {}
    for span, (since, to) in spans.items():
        within = good & (ends > since) & (ends <= to)
        metrics[f"rate_{span}"] = float(within.sum()) / (to - since) if to > since else math.nan
        if span != "during":
            metrics[f"{span}_ms"] = float(rows["seconds"][within].mean()) * 1e3
    hit = rows[(ends > killed_s) & (rows["started_s"] < until)]
    late = rows[~good & (ends > killed_s)]
    return metrics | {
        **{f"{span}_over_before": metrics[f"rate_{span}"] / metrics["rate_before"]
           for span in ("during", "after")},
        "longest_blocked_s": float(hit["seconds"].max()) if len(hit) else 0.0,
        "blocked_clients": int(hit[hit["seconds"] >= 1]["client"].nunique()),
        "errors": len(late), "blocked": int((late["error"] == BLOCKED_WORD).sum())}

"""Metrics of a rank's recovery, from the states in the monitor's map and from clients' calls. Pure."""

import math

import pandas as pd

ACTIVE = "active"
STEPS = ("replay", "resolve", "reconnect", "rejoin", "clientreplay")   # to active, in their order
ORDER = ("replay", "resolve", "reconnect", "rejoin", ACTIVE)    # of the paper


def recovery_metrics(states: pd.DataFrame, rank: int, killed_s: float) -> dict:
    """`states`: t_s (epoch), rank, daemon, state; a row a change, in the order of time.

    detection_s: from the kill until the map no longer has the dead server as active in the rank;
    takeover_s: from then until the rank is active; recovery_s: both. replay_s, resolve_s, ...: time in
    each of STEPS, 0 where it was skipped; a step between two maps may be missed. unserved_s: time
    without a server. active_at_s: epoch. NaN for what did not happen.
    """
    mine = states[(states["rank"] == rank) & (states.t_s >= killed_s)].sort_values(
        "t_s", kind="stable")
    found = {name: math.nan for name in ("detection_s", "takeover_s", "recovery_s", "active_at_s",
                                         "unserved_s", *(f"{step}_s" for step in STEPS))}
    left = mine[mine.state != ACTIVE]
    if not len(left):
        return found
    noticed = float(left.t_s.iloc[0])
    found["detection_s"] = noticed - killed_s
    back = mine[(mine.state == ACTIVE) & (mine.t_s >= noticed)]
    if not len(back):
        return found
    active = float(back.t_s.iloc[0])
    way = mine[(mine.t_s >= noticed) & (mine.t_s < active)]
    lasted = [*way.t_s.iloc[1:], active] - way.t_s
    steps = lasted.groupby(way.state).sum()
    return found | {"takeover_s": active - noticed, "recovery_s": active - killed_s,
                    "active_at_s": active,
                    "unserved_s": float(lasted[~way.state.isin(STEPS)].sum()),
                    **{f"{step}_s": float(steps.get(step, 0.0)) for step in STEPS}}


def in_order(states: pd.DataFrame, rank: int, killed_s: float) -> bool:
    """Whether the rank went through all of the paper's steps in their order and became active."""
    mine = states[(states["rank"] == rank) & (states.t_s >= killed_s)].sort_values(
        "t_s", kind="stable")
    came = [state for state in mine.state if state in ORDER]
    return came == list(ORDER)


def metrics_through(rows, killed_s: float, active_s: float, *, settle_s: float = 2.0) -> dict:
    """Metrics of clients' calls; times in the clock of the rows (started_s, seconds, ok, error).

    rate_before, rate_during (from the kill until the rank was active), rate_after (from `settle_s`
    after that): successful calls a second, counted at their end; during_over_before and
    after_over_before. before_ms and after_ms: their mean times. longest_blocked_s: the longest of the
    calls in progress at the kill or begun between it and active_s; blocked_clients: clients with such
    a call of 1 s or more. errors: calls that failed after the kill; blocked: those that never ended.
    `active_s` NaN: the rank did not return, and there is no after. ValueError without calls before
    the kill.
    """
    ends = rows["started_s"] + rows["seconds"]
    last = float(ends.max())
    until = last if math.isnan(active_s) else active_s
    spans = {"before": (float(rows["started_s"].min()), killed_s), "during": (killed_s, until),
             "after": (until + settle_s, last)}
    good = rows["ok"].astype(bool)
    if not (good & (ends <= killed_s)).any():
        raise ValueError("no call succeeded before the kill")
    found = {}
    for span, (since, to) in spans.items():
        there = good & (ends > since) & (ends <= to)
        found[f"rate_{span}"] = float(there.sum()) / (to - since) if to > since else math.nan
        if span != "during":
            found[f"{span}_ms"] = float(rows["seconds"][there].mean()) * 1e3
    hit = rows[(ends > killed_s) & (rows["started_s"] < until)]
    late = rows[~good & (ends > killed_s)]
    return found | {
        **{f"{span}_over_before": found[f"rate_{span}"] / found["rate_before"]
           for span in ("during", "after")},
        "longest_blocked_s": float(hit["seconds"].max()) if len(hit) else 0.0,
        "blocked_clients": int(hit[hit["seconds"] >= 1]["client"].nunique()),
        "errors": len(late), "blocked": int((late["error"] == "blocked").sum())}

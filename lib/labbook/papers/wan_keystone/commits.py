"""Commits without Keystone: what a write waits for, and what it sends over the WAN.

Two clouds as in labbook.papers.wan_keystone.pairs, of which only the database cluster and its proxy are
called. A point holds the clouds' settings, the WAN, `concurrency` (clients a cloud), `writes` (transactions
a call, one after the other), value_bytes, warmup_s (of calls before those that count), calling_s and slice_s.
With `counted_s` the WAN's traffic is
counted too: first of idle clusters, then of one cloud's calls at a time, since the routers do not tell
the clouds apart.
"""

import time
from functools import partial

import pandas as pd

from labbook.papers.wan_keystone.experiments import SITES, WAN, check, chosen, increase, new_cloud
from labbook.papers.wan_keystone.pairs import busy_of, in_slices, together
from labbook.systems.keystone.stack import KeystoneCloud
from labbook.workloads.clients.cpu import THRESHOLD
from labbook.workloads.crew.crew import Crew
from labbook.workloads.transactions.commits import TABLE_STATEMENTS, commits_side_by_side

QUANTILES = {"p50": 0.5, "p95": 0.95}
LEAST_RTT_MS = 2.0  # of a WAN
WAITED = 1.1        # round trips: a commit that took more has waited for something beside its own


def measure_commits(study, experiment) -> None:
    """Measure the time of the point's calls on both clouds at the same time, one after the other where the
    machine's memory does not carry both. InputError for a cloud or link that cannot exist."""
    check(experiment)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            slices, arm_metrics, facts = [], {}, {}
            for clouds in together(attempt, new_cloud, with_table):
                wan_rtt_ms = shaped(attempt)
                commit(attempt, list(clouds.values()), point.warmup_s)
                loads = dict(zip(clouds, commit(attempt, list(clouds.values()), point.calling_s)))
                facts |= {arm: cloud.facts()["galera"] for arm, cloud in clouds.items()}
                busy = busy_of(attempt.lab, loads)
                arm_metrics |= {arm: load.metrics | in_round_trips(load.rows, wan_rtt_ms, point.writes) | {
                    "client_limited": float(busy[arm] > THRESHOLD)} for arm, load in loads.items()}
                if "counted_s" in point.params:
                    for arm, counted in traffic(attempt, clouds).items():
                        arm_metrics[arm] |= counted
                slices += [one for arm, load in loads.items()
                           for one in in_slices(load.rows, arm, point.slice_s, point.calling_s)]
            attempt.record_slices(slices, metrics={"wan_rtt_ms": wan_rtt_ms}, facts=facts, arm_metrics=arm_metrics)


def with_table(_lab, _point, cloud) -> KeystoneCloud:
    """The cloud with the table of commits on all nodes."""
    for statement in TABLE_STATEMENTS:
        cloud.galera.query(statement)
    cloud.galera.query_each("SELECT 1")     # each node has applied all of them
    return cloud


def shaped(attempt) -> float:
    """Shape the WAN for the point: its measured round-trip time in ms."""
    attempt.lab.link(*SITES).shape(**chosen(attempt.point, WAN))
    return attempt.check_links()[0]["measured_rtt_ms"]


def commit(attempt, clouds: list, seconds: float) -> list:
    """Make the point's calls through the clouds' proxies, all at the same time: a Load of each."""
    point = attempt.point
    return commits_side_by_side(Crew.of(attempt.lab), [cloud.haproxy for cloud in clouds], clients=point.concurrency,
                                writes=point.writes, value_bytes=point.value_bytes, seconds=seconds)


def in_round_trips(rows, rtt_ms: float, writes: int) -> dict:
    """mean_round_trips, p50_round_trips, p95_round_trips: the time of a call of so many transactions in round trips of
    the WAN, and waited_longer: the share of calls of more than WAITED a transaction. Of calls that succeeded; empty
    without a WAN, whose measured round trip is never quite 0."""
    calls = rows[(rows["step"] == "") & rows["ok"]]
    if rtt_ms < LEAST_RTT_MS or not len(calls):
        return {}
    trips = calls["seconds"] * 1e3 / rtt_ms
    return {"mean_round_trips": trips.mean(), "waited_longer": (trips > WAITED * writes).mean(),
            **{f"{name}_round_trips": trips.quantile(share) for name, share in QUANTILES.items()}}


def traffic(attempt, clouds: dict) -> dict:
    """{arm: wan_net_bytes_per_call, wan_net_packets_per_call}: what crosses the WAN both ways for a call
    beyond what all clusters send while they are idle. Empty where nobody counts."""
    point = attempt.point
    read = partial(over_wan, attempt.lab)
    idle, seconds = increase(read, lambda: time.sleep(point.counted_s))
    found = {}
    for arm, cloud in clouds.items():
        loads = []
        during, took = increase(read, lambda cloud=cloud, loads=loads: loads.extend(
            commit(attempt, [cloud], point.counted_s)))
        calls = (loads[0].rows["step"] == "").sum()
        net = (during - idle * took / seconds) / calls
        found[arm] = {f"wan_net_{what}_per_call": net[what] for what in during.index}
    return found


def over_wan(lab) -> pd.Series:
    """Bytes and packets over the WAN so far, both ways together; empty where nobody counts."""
    ways = [counts for counts in lab.link(*SITES).traffic().values() if counts]
    return pd.DataFrame(ways).sum() if ways else pd.Series(dtype=float)

"""Faults of two clouds that differ in their segments, at the same time on one link.

A point is as in labbook.papers.wan_keystone.experiments, with `segments` paired, the stream of calls
(`concurrency` clients a cloud, `seconds_at_most`, `call_seconds`), how long they call before the fault and
after its repair, and the fault's own parameters. Where memory does not carry both clouds, each has the
fault in its turn.
"""

import time

import pandas as pd

from labbook.errors import SystemFailure
from labbook.lab import LabDescription
from labbook.papers.wan_keystone.experiments import SITES, check, chosen, host_sets, new_cloud, reset, warmed
from labbook.papers.wan_keystone.pairs import together
from labbook.study.paired import Slice
from labbook.study.point import check_values
from labbook.systems.cluster import in_parallel
from labbook.systems.galera.node import TRANSFERS
from labbook.workloads.clients.outage import outage, timeline
from labbook.workloads.crew.crew import Crew
from labbook.workloads.histories import calls as histories
from labbook.workloads.keystone.history import last_lists
from labbook.workloads.keystone.users import NOTED, begin_users

STREAM = ("scenario", "concurrency", "seconds_at_most", "call_seconds")
USERS = "SELECT name FROM keystone.local_user"
RETURN_SECONDS = 240    # for nodes to be in step again; a stream goes on for longer


def measure_faults(study, experiment, fault) -> None:
    """Measure calls during a fault: their times, the outage, which acknowledged users remain, and the
    anomalies in the calls' history (histories.calls.metrics), which ends with each node's own list.

    `fault(attempt, clouds, now)` causes a fault of each cloud, {arm: cloud}, repairs it and returns {arm:
    events as metrics}; it is kill_node, cut_wan, or by_name. `now()`: seconds since the calls began.
    """
    check(experiment)
    nodes = database_nodes(LabDescription.load(study.folder / "lab.yml"))
    check_values(experiment.points(), {"fault": FAULTS, "rejoin": TRANSFERS, "victim": nodes, "scenario": NOTED})
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            slices, arm_metrics, facts, series = [], {}, {}, []
            for clouds in together(attempt, new_cloud, warmed):
                reset(attempt, *clouds.values())
                stream = begin_users(Crew.of(attempt.lab), list(clouds.values()), **chosen(point, STREAM))
                time.sleep(point.before_seconds)
                events = fault(attempt, clouds, stream.since_start)
                time.sleep(point.after_seconds)
                until_s = stream.since_start()
                for (arm, cloud), load in zip(clouds.items(), stream.end()):
                    metrics, history = through(load, cloud, events[arm], point.bin_seconds, stream.since_start, until_s)
                    slices.append(Slice(arm, 1, load.rows))
                    arm_metrics[arm], facts[arm] = metrics, cloud.facts()
                    series.append(histories.frame(history).assign(**dict.fromkeys(point.paired, arm)))
            attempt.record_slices(slices, arm_metrics=arm_metrics, facts=facts,
                                  series={"history": pd.concat(series, ignore_index=True)})


def through(load, cloud, events: dict, bin_seconds: float, now, until_s: float) -> tuple[dict, list]:
    """(metrics, history) of one cloud's load through a fault, which was told to end at until_s; asks each of its nodes
    for its users."""
    begun = now()
    nodes = users_on_each(cloud)
    history = [*load.history, *last_lists(nodes, begun, now())]
    return {**load.metrics, **events, **interruption(load.rows, events, until_s), **recovery(load.rows, events),
            **timeline(load.rows, bin_seconds), **acknowledged(nodes, load.rows),
            **histories.metrics(history, load.slack_s)}, history


def kill_node(attempt, clouds: dict, now) -> dict:
    """Kill the point's database node, restart it, and wait until it is synchronised: of all clouds at the
    same time. `victim` names the node as in the first cloud.

    Events: times in seconds, the rejoin's duration and its kind (`came_by`: IST or SST).
    """
    fault = now()
    victims = {arm: cloud.galera.nodes[number_of(attempt.point.victim) - 1] for arm, cloud in clouds.items()}
    for node in victims.values():
        node.process.kill()

    def repair(arm) -> dict:
        cloud, node = clouds[arm], victims[arm]
        cloud.galera.synced([host.name for host in cloud.galera.hosts if host is not node.host], seconds=RETURN_SECONDS)
        begin = now()
        rejoin = node.rejoin(by=attempt.point.rejoin)
        if rejoin["by"] != attempt.point.rejoin:    # a donor may not have the missed writes any more
            raise SystemFailure(f"{node.host.name} was to rejoin by {attempt.point.rejoin}, and did by {rejoin['by']}")
        return {"fault_s": fault, "restarted_s": begin, "rejoined_s": now(),
                "rejoin_s": rejoin["seconds"], "came_by": rejoin["by"]}

    return dict(zip(clouds, in_parallel(clouds, repair)))


def database_nodes(lab: LabDescription) -> list[str]:
    """Names of the database nodes of the first cloud in lab.yml, one of which a point's `victim` is."""
    return [name for name in host_sets(lab)[0] if lab.host(name).role == "db"]


def number_of(victim: str) -> int:
    """2 for db2."""
    return int(victim.removeprefix("db"))


def cut_wan(attempt, clouds: dict, now) -> dict:
    """Cut the WAN for the point's `cut_seconds`, restore it, and wait until all nodes are synchronised.

    Events: times in seconds, and the time from the WAN's return until then.
    """
    link = attempt.lab.link(*SITES)
    fault = now()
    link.cut()
    time.sleep(max(0, fault + attempt.point.cut_seconds - now()))
    heal = now()
    link.heal()

    def repair(arm) -> dict:
        clouds[arm].galera.synced(seconds=RETURN_SECONDS)
        synced = now()
        return {"fault_s": fault, "healed_s": heal, "rejoined_s": synced, "rejoin_s": synced - heal}

    return dict(zip(clouds, in_parallel(clouds, repair)))


def by_name(attempt, clouds: dict, now) -> dict:
    """The fault that the point names, one of FAULTS."""
    return FAULTS[attempt.point.fault](attempt, clouds, now)


FAULTS = {"kill": kill_node, "cut": cut_wan}


def interruption(rows, events: dict, until_s: float) -> dict:
    """Metrics of the outage after the fault, as far as until_s, when the clients were told to end; `back_s`: from the
    WAN's return to the first success, s."""
    metrics = outage(rows, events["fault_s"], until_s)
    if "healed_s" in events:
        after = outage(rows, events["healed_s"], until_s)
        metrics |= {"back_s": after["first_success_s"]} if "first_success_s" in after else {}
    return metrics


def recovery(rows, events: dict) -> dict:
    """before_ms, rejoining_ms: mean time of successful calls that ended before the fault, and of those that
    began while the nodes came back; rejoining_times: the second over the first. What has no calls is left out."""
    calls = rows[(rows["step"] == "") & rows["ok"]]
    begin = events.get("restarted_s", events.get("healed_s"))
    parts = {"before_ms": calls["started_s"] + calls["seconds"] < events["fault_s"],
             "rejoining_ms": calls["started_s"].between(begin, events["rejoined_s"])}
    found = {name: 1e3 * calls.loc[part, "seconds"].mean() for name, part in parts.items() if part.any()}
    if len(found) == len(parts):
        found["rejoining_times"] = found["rejoining_ms"] / found["before_ms"]
    return found


def users_on_each(cloud) -> dict:
    """{node: the set of all names of users that it has}."""
    return {node: {name for name, in users} for node, users in cloud.galera.query_each(USERS).items()}


def acknowledged(nodes: dict, rows) -> dict:
    """acknowledged: number of users whose creation was acknowledged; kept: the share that every node has."""
    made = set(rows["user"]) - {""}       # includes calls that failed after the creation
    everywhere = set.intersection(*nodes.values())
    return {"acknowledged": len(made), "kept": len(made & everywhere) / max(1, len(made))}

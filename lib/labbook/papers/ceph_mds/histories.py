"""Histories of files' registers and sets through the crash of a metadata server.

Parameters of a point, beside the cluster's: how and rank, as of a recovery; clients (each with a mount),
keys (registers of each rank's folder), calls_per_s (of each client), before_s of calls before the kill
and after_s once all ranks are active again, noticed_within_s (of a restart: for the monitor to notice the death),
active_within_s (for all ranks to be active), seconds_at_most and call_seconds
(time limits of the calls and of each of them).
"""

import time

from labbook.errors import SystemFailure
from labbook.papers.ceph_mds.clusters import bring_up, check_points, mounted, paths
from labbook.papers.ceph_mds.experiments import kill_and_await
from labbook.papers.ceph_mds.recovery import recovery_metrics
from labbook.workloads.crew.crew import Crew
from labbook.workloads.files.registers import Registers
from labbook.workloads.histories import calls as histories

CALLS = ("clients", "calls_per_s", "seconds_at_most", "call_seconds")
FRESH = "fresh"     # the mount that is made after the crash


def measure_histories(experiment) -> None:
    """Kill the server of the point's rank under calls, and check the history of these
    (histories.calls.metrics), which ends with a read of all through each mount and a fresh one."""
    check_points(experiment)
    for point in experiment.remaining():
        with experiment.study.attempt(point) as attempt:
            ceph = bring_up(attempt)
            facts = ceph.facts()        # while all servers can answer
            with mounted(attempt, ceph, point.clients) as mounts:
                load, history, metrics = calls_through_a_crash(attempt, ceph, mounts)
            attempt.record(load.rows, facts=facts, series={"history": histories.frame(history)},
                           metrics={**load.metrics, **metrics, **histories.metrics(history, load.slack_s)})


def calls_through_a_crash(attempt, ceph, mounts):
    """Returns the load, its history with the last reads, and the events' times as metrics."""
    point, crew, first = attempt.point, Crew.of(attempt.lab), mounts[0][0]
    homes = [ceph.pin_folder(first, f"{point.key}-rank{rank}", rank) for rank in range(point.mds)]
    files = Registers(crew, paths(mounts), homes=homes, keys=point.keys)
    with files.begin(seed=point.seed, **{name: point.params[name] for name in CALLS}) as stream:
        time.sleep(point.before_s)
        killed_s, metrics = kill_and_await(point, ceph, stream.started)
        if not metrics["came_back"]:
            raise SystemFailure(f"rank {point.rank} was not active again within {point.active_within_s:g} s")
        time.sleep(point.after_s)
    load = stream.end()
    fresh = ceph.mount(first.host, name=FRESH).up()
    last = files.last_reads([[*paths(mounts)[0], str(fresh.path)], *paths(mounts)[1:]], stream.since_start)
    fresh.end()
    recovery = recovery_metrics(ceph.fault_log(killed_s).states, point.rank, killed_s)
    active_s = recovery.pop("active_at_s") - stream.started
    return load, [*load.history, *last], metrics | recovery | {
        "fault_s": killed_s - stream.started, "active_s": active_s}

"""The experiments on running servers: rates of metadata operations, caches, and recoveries.

Every point has osds ("memory" or "disk"), replication, mds (active metadata servers), mds_share (of a core, of each),
balance_s (between two rounds of the balancer), and directories and files (of each directory), and seconds_at_most (time
limit of the benchmark or the load). Points of MetadataBench also have watch_s (interval of observing the metadata
servers) and rest_within_s (time limit for purging earlier files from the OSDs), where mds is paired also slices (see
pairs.py); recoveries bin_seconds (of calls over time).
"""

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from labbook.errors import SystemFailure
from labbook.papers.ceph_mds import client_limits, pairs
from labbook.papers.ceph_mds.cache import (
    cache_metrics,
    figure_lists,
    migrating_over_quiet,
    of_both_orders,
    request_metrics,
)
from labbook.papers.ceph_mds.clusters import (
    PINS,
    REREADING,
    at_rest,
    await_pinned,
    bring_up,
    check_points,
    fuse_processes,
    has_left,
    mounted,
    paths,
    reached,
    remounted,
)
from labbook.papers.ceph_mds.recovery import in_order, metrics_through, recovery_metrics
from labbook.papers.ceph_mds.server_load import server_shares, servers_watched
from labbook.systems.cluster import in_parallel
from labbook.workloads.clients.cpu import cpus_together
from labbook.workloads.clients.cpu_watch import CpuWatch
from labbook.workloads.clients.driver import clocks
from labbook.workloads.clients.outage import outage, timeline
from labbook.workloads.crew.crew import Crew
from labbook.workloads.files.bonnie import bonnie
from labbook.workloads.files.inventory import compare, take
from labbook.workloads.files.load import PHASES, begin_metadata, metadata
from labbook.workloads.files.sample_tree import sample_tree

NAN = float("nan")


def measure_ceiling(ceilings) -> None:
    """Measure the clients' highest rate, with the same calls on a file system in memory."""
    for point in ceilings.remaining():
        with ceilings.study.attempt(point) as attempt:
            crew = Crew.of(attempt.lab)
            load = metadata(crew, [in_memory(host) for host in crew.hosts[:point.clients]], pattern=point.pattern,
                            clients=point.clients, directories=point.directories, files=point.files,
                            seed=point.repeat, seconds_at_most=point.seconds_at_most)
            attempt.record(load.rows, metrics=load.metrics)


def in_memory(host) -> str:
    """A folder in memory; on a remote host, one in the lab's folder, which is removed with the lab."""
    return f"{host.root}/ceiling" if host.is_remote else "/dev/shm"


@dataclass
class Measured:
    """What a run of the benchmark gives to a record."""

    rows: object
    metrics: dict
    facts: dict
    series: dict


class MetadataBench:
    """Measure metadata operations of new clients while all metadata servers are observed.

    ceilings: the experiment of measure_ceiling, measured before.
    """

    def __init__(self, ceilings):
        self.study, self.ceilings = ceilings.study, ceilings

    def rates(self, experiment) -> None:
        """Create, stat and delete files, in order and at random, by the point's tool ("bonnie"; "own"; or one of
        REREADING, which are own clients that also reread by a fresh mount; own if it has none). Optional: clients
        (each with a mount), shared (whether they share their directories), cache_inodes (of each client), pattern
        (other calls) for phase_s."""
        self._measure(experiment, by_tool)

    def cached(self, experiment) -> None:
        """The same, with metrics of each server's cache and migrations."""
        self._measure(experiment, by_tool, cached_through_phases)

    def long_phases(self, experiment) -> None:
        """The same in phases of phase_s. `pin`: "none" (directories may migrate), "one" (pinned to rank 0)
        or "spread" (pinned to the ranks in turn)."""
        self._measure(experiment, by_own, cached_by_pin)

    def _measure(self, experiment, act, more=lambda *_: {}):
        """`act(run, mounts, fresh)` -> (rows, phases, metrics), where `run` has a point and a lab;
        `more(point, rows, phases, seen)` -> further metrics."""
        check_points(experiment)
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                if point.paired:
                    pairs.measure_pair(attempt, experiment, partial(self.measured, act=act, more=more))
                    continue
                ceph = bring_up(attempt)
                rested = at_rest(ceph, point.rest_within_s)
                done = self.measured(attempt, ceph, act, more)
                attempt.record(done.rows, metrics=done.metrics | {"rested": float(rested)}, facts=done.facts,
                               series=done.series)

    def measured(self, run, ceph, act, more) -> "Measured":
        """What new clients of a cluster that is at rest did, and what was seen meanwhile."""
        point = run.point
        with mounted(run, ceph, *_mount(point)) as mounts, remounted(
                run, ceph, _stages(point), *_mount(point)) as fresh:
            with CpuWatch(fuse_processes(mounts, *fresh)) as cpu, servers_watched(
                    ceph, point.watch_s) as servers, ceph.watch(point.watch_s) as watch:
                rows, phases, metrics = act(run, mounts, fresh)
            seen, fuse = watch.end(), [mounts, *fresh][-1][0][0].facts()
            metrics |= self.limits(run, metrics, phases, cpu)
        metrics |= server_shares(servers, phases, point.mds_share)
        facts = ceph.facts()
        metrics |= server_metrics(metrics, seen, phases) | more(point, rows, phases, seen)
        metrics |= {"up_s": ceph.up_s, "cached_at_begin": float(seen.groupby("daemon")["inodes"].first().sum()),
                    "ceph_version": facts["version"], "fuse_version": fuse["version"]}
        return Measured(rows, metrics, facts | {"mount": fuse}, {"seen": seen.drop(columns="owned"), "phases": phases})

    def limits(self, run, metrics, phases, cpu) -> dict:
        """The phases that the clients may have limited; see client_limits."""
        clients = _clients(run.point)
        return client_limits.client_limits(
            metrics, phases, client_limits.ceilings_of(self.ceilings.summary(), clients), cpu.used,
            cpus_together(Crew.of(run.lab).hosts[:clients]))


def _clients(point) -> int:
    return point.params.get("clients", 1)


def _mount(point) -> tuple:
    """Number of mounts, and the size of each client's cache."""
    return _clients(point), point.params.get("cache_inodes")


def _stages(point) -> int:
    """How many rereadings by fresh mounts the point's tool has."""
    tool = point.params.get("tool")
    return sum(phase.endswith("reread") for phase in PHASES[tool]) if tool in REREADING else 0


def by_tool(run, mounts, fresh=()):
    """Run the point's tool; returns rows (None for bonnie++), phases and metrics."""
    by = by_bonnie if run.point.params.get("tool") == "bonnie" else by_own
    return by(run, mounts, fresh)


def by_bonnie(run, mounts, fresh=()):
    """Run bonnie++; returns None, its phases (with from_s, to_s (epoch) and operations) and metrics."""
    mount, point = mounts[0][0], run.point
    offset_s = clocks(Crew.of(run.lab))[0][0]
    load = bonnie(mount.host, mount.path, directories=point.directories, files=point.files,
                  seconds_at_most=point.seconds_at_most, clock_offset_s=offset_s)
    from_s = load.started + load.rows["started_s"]
    phases = load.rows.assign(from_s=from_s, to_s=from_s + load.rows["seconds"], operations=load.rows["files"])
    return None, phases, load.metrics | {"bonnie_version": load.csv.split(",")[1]}


def by_own(run, mounts, fresh=()):
    """Run this library's clients; returns rows, phases and metrics.

    fresh: lists of mounts, in the next of which each rereading goes on once the earlier mount has ended, so
    that no client's cache answers.

    Phases last phase_s, or until all operations are done. Between phases is a pause of two
    observations, so that each observation belongs to one phase.
    """
    point, first = run.point, mounts[0][0]
    ranks = PINS[point.params.get("pin", "none")](point.mds)
    homes = [first.ceph.pin_folder(first, f"rank{rank}", rank) for rank in ranks]
    pattern = point.params.get("pattern", point.params["tool"] if fresh else "bonnie")
    earlier = iter([mounts, *fresh])

    def before_phase(phase):
        if phase.endswith("reread"):
            in_parallel([one for of_host in next(earlier) for one in of_host], lambda one: one.end())

    load = metadata(Crew.of(run.lab), paths(mounts), pattern=pattern, fresh=[paths(stage) for stage in fresh],
                    before_phase=before_phase, clients=_clients(point),
                    directories=point.directories, files=point.files,
                    shared=point.params.get("shared", False), phase_s=point.params.get("phase_s", 0.0),
                    pause_s=2 * point.watch_s, homes=homes, seed=point.repeat, seconds_at_most=point.seconds_at_most)
    phases = load.phases.assign(from_s=load.started + load.phases["started_s"],
                                to_s=load.started + load.phases["ended_s"])
    left_out = set(PHASES["remount"]) - set(PHASES[pattern]) if pattern in REREADING else ()
    return load.rows, phases, load.metrics | {f"{phase}_per_s": NAN for phase in left_out}


def server_metrics(metrics: dict, seen, phases) -> dict:
    """Metrics of rates in both orders, requests per operation, and the difference between random and
    sequential reads in the share answered from the client's cache."""
    combined = of_both_orders(metrics) | request_metrics(seen, phases)
    return combined | {"stat_cached_random_less_sequential": (
        combined.get("random_stat_cached", NAN) - combined.get("sequential_stat_cached", NAN))}


def cached_through_phases(point, rows, phases, seen) -> dict:
    """Metrics and lists for figure 5."""
    in_sequence = phases["phase"].str.startswith("sequential")
    seconds = phases["seconds"]
    return cache_metrics(seen, phases) | _lists_once(point, seen, phases) | {
        "sequential_over_random": float(seconds[in_sequence].sum() / seconds[~in_sequence].sum())}


def cached_by_pin(point, rows, phases, seen) -> dict:
    """The same for long phases, and migrating_over_quiet: ratio of the time of deletes that begin in a
    migration to that of other deletes. Lists only where directories may migrate."""
    deletes = rows[rows["phase"].str.endswith("delete") & rows["ok"] & (rows["op"] == "unlink")]
    begun = deletes["started_s"] + phases["from_s"].iloc[0] - phases["started_s"].iloc[0]
    slower = migrating_over_quiet(deletes.assign(started_s=begun), seen)
    lists = _lists_once(point, seen, phases) if point.mds > 1 and point.pin == "none" else {}
    return cache_metrics(seen, phases) | {"migrating_over_quiet": slower} | lists


def _lists_once(point, seen, phases) -> dict:
    """Lists of the first repeat, which the figure shows; empty for others."""
    return figure_lists(seen, phases) if point.repeat == 1 else {}


def measure_recoveries(experiment) -> None:
    """Kill the server of the point's rank under load, and measure its replacement.

    `how`: by a "standby", by a standby that follows the rank ("standby_replay"), by its own "restart",
    or by a standby after `ceph mds fail` ("mds_fail").
    """
    check_points(experiment)
    for point in experiment.remaining():
        with experiment.study.attempt(point) as attempt:
            ceph = bring_up(attempt)
            facts = ceph.facts()        # while all servers can answer
            with mounted(attempt, ceph, point.clients) as mounts:
                rows, metrics = recover(attempt, ceph, mounts)
            attempt.record(rows, metrics=metrics, facts=facts)


def recover(attempt, ceph, mounts):
    """Measure one recovery; returns rows of the load, and metrics."""
    point, mount = attempt.point, mounts[0][0]
    tree = sample_tree(mount.host, mount.path, directories=point.kept_directories, files=point.kept_files,
                       seed=point.repeat, pins=[0, 1])
    before = take(mount.host, tree)
    with begin_metadata(Crew.of(attempt.lab), paths(mounts), clients=point.clients, directories=point.directories,
                        files=point.files, pins=[0, 1], seed=point.repeat,
                        seconds_at_most=point.seconds_at_most) as stream:
        await_pinned(ceph, stream.folder, point.clients * point.directories // 2)
        time.sleep(point.before_s)
        killed_s, metrics = kill_and_await(point, ceph, stream.started)
        time.sleep(point.after_s)
        until_s = stream.since_start()
    load = stream.end()
    states = ceph.fault_log(killed_s).states
    recovery = recovery_metrics(states, point.rank, killed_s)
    active_s, fault_s = recovery.pop("active_at_s") - stream.started, killed_s - stream.started
    metrics |= recovery | metrics_through(load.rows, fault_s, active_s, before_s=point.before_s)
    metrics |= {"fault_s": fault_s, "active_s": active_s,
                "in_order": float(in_order(states, point.rank, killed_s)),
                "detection_over_takeover": metrics["detection_s"] / metrics["takeover_s"],
                "failed_calls": metrics["errors"], "after_restart_s": active_s - metrics.get("restarted_s", NAN)}
    counts = compare(before, take(mount.host, tree, list(before["name"])))
    metrics |= {"kept": counts["right"] / len(before),
                **{f"kept_{verdict}": counts[verdict] for verdict in ("wrong", "missing", "unobtainable", "unasked")},
                "kept_fresh": kept_for_another(ceph, mount, tree, before)}
    return load.rows, metrics | outage(load.rows, fault_s, until_s) | timeline(load.rows, point.bin_seconds)


def kept_for_another(ceph, mount, tree: str, before) -> float:
    """The share of names whose metadata are as `before` for a client that mounts now, and so has nothing of them in its
    cache; 0 if it cannot mount."""
    other = ceph.mount(mount.host, name="afterwards")
    try:
        try:
            seen = f"{other.up().path}{tree.removeprefix(str(mount.path))}"
        except SystemFailure:
            return 0.0
        return compare(before, take(other.host, seen, list(before["name"])))["right"] / len(before)
    finally:
        other.end()


def kill_and_await(point, ceph, started: float) -> tuple[float, dict]:
    """Kill the point's rank and wait up to active_within_s until all ranks are active.

    Returns the time of the kill (epoch), and metrics: came_back (0 or 1); for a restart also noticed
    (0 or 1) and restarted_s (seconds since `started`).
    """
    metrics = {"came_back": 0.0}
    name, killed_s = ceph.kill(point.rank)
    if point.how == "mds_fail":
        ceph.fail(point.rank)
    if point.how == "restart":
        metrics["noticed"] = float(reached(lambda: has_left(ceph, point.rank, name), point.noticed_within_s))
        metrics["restarted_s"] = ceph.start_mds(name) - started
    with suppress(SystemFailure):       # a rank that does not come back is a result
        ceph.await_active(seconds=point.active_within_s)
        metrics["came_back"] = 1.0
    return killed_s, metrics

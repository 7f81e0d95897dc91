"""Clouds that differ in their segments, up at once on one link, and called at the same time.

What disturbs one cloud, such as a core's clock or a neighbour of the machine, then disturbs the other
one at the same moment. A point is as in labbook.papers.wan_keystone.experiments, with `segments` paired,
calling_s (how long calls begin), slice_s (calls that begin within the same slice of time are compared) and perhaps
think_s (a client's mean pause before each call).
"""

from functools import partial

from labbook.lab import LabDescription
from labbook.papers.wan_keystone import experiments
from labbook.papers.wan_keystone.experiments import (
    SITES,
    check,
    limited,
    new_cloud,
    reset,
    versions,
    warmed,
)
from labbook.study.paired import Slice
from labbook.systems.cluster import Together, in_parallel, start_together
from labbook.workloads.clients.cpu import busy_shares, core_seconds
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keystone.users import keystone_users_side_by_side


def host_sets(lab: LabDescription, values: list) -> dict:
    """{value of the paired parameter: names of the hosts of its cloud}, of both clouds in lab.yml."""
    return dict(zip(values, experiments.host_sets(lab)))


def measure_pairs(study, experiment, ceiling) -> None:
    """Measure the time of the point's calls on both clouds at the same time; one after the other where
    the machine's memory does not carry both.

    `ceiling`: the experiment of measure_ceiling. InputError for a cloud or link that cannot exist.
    """
    check(experiment)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            loads, facts, slices, busy, machine = {}, {}, [], {}, {}
            for clouds in together(attempt, new_cloud, warmed):
                wan_rtt_ms, crew = reset(attempt, *clouds.values()), Crew.of(attempt.lab)
                look = partial(core_seconds, crew.hosts[0], cores_of(attempt))
                before = look()
                loads |= dict(zip(clouds, keystone_users_side_by_side(
                    crew, list(clouds.values()), scenario=point.scenario, concurrency=point.concurrency,
                    seconds=point.calling_s, think_s=point.params.get("think_s", 0), seed=point.repeat)))
                busy |= busy_of(attempt.lab, {arm: loads[arm] for arm in clouds})
                machine |= dict.fromkeys(clouds, machine_busy(before, look()))
                facts |= dict(zip(clouds, in_parallel(clouds.values(), lambda cloud: cloud.facts())))
            for arm, load in loads.items():
                slices += in_slices(load.rows, arm, point.slice_s, point.calling_s)
            attempt.record_slices(slices, metrics={"wan_rtt_ms": wan_rtt_ms}, facts=facts, arm_metrics={
                arm: {**load.metrics, **versions(facts[arm]), **machine[arm], "client_limited": float(limited(
                    point, load.metrics | {"clients_cpu_share": busy[arm]}, ceiling))}
                for arm, load in loads.items()})


def cores_of(attempt) -> set[int]:
    """The cores of this machine that the lab's hosts have; none of users' own hosts, nor where only one cloud is called
    at a time."""
    if not attempt.at_once:
        return set()
    return set().union(*(host.cores or () for host in attempt.lab.hosts.values() if not host.is_remote))


def machine_busy(before: tuple, after: tuple) -> dict:
    """machine_busy: the share of some cores' time in which they were busy, between two readings of core_seconds; empty
    of no cores."""
    busy, every = (then - first for first, then in zip(before, after))
    return {"machine_busy": busy / every} if every else {}


def busy_of(lab, loads: dict) -> dict:
    """{arm: how much of its clients' CPU is busy} of loads that were made at the same time, {arm: Load}."""
    shares = [load.metrics["clients_cpu_share"] for load in loads.values()]
    return dict(zip(loads, busy_shares(Crew.of(lab).hosts, shares)))


def together(attempt, start, prepare):
    """Yield {arm: its cloud} of the clouds to measure at the same time: all of the point's, or one after the
    other where the machine's memory does not carry them.

    `start(lab, point, hosts)` brings a cloud up, `prepare(lab, point, cloud)` returns it ready. Clouds that are
    measured together start together, and the first that is up is prepared while the others still start. They are
    in the order of their hosts, so that each set of hosts has the same client, whichever arm is on it.
    """
    arms = sorted(attempt.slices(1), key=lambda one: one.hosts)
    if attempt.at_once:
        clouds = attempt.setup(lambda lab: ready(lab, arms, start, prepare))
        yield {one.arm: clouds[one.arm] for one in arms}
        return
    for one in arms:
        clouds = attempt.setup(lambda lab, one=one: ready(lab, [one], start, prepare), arm=one.arm)
        yield {one.arm: clouds[one.arm]}


def ready(lab, arms, start, prepare) -> Together:
    """{arm: its cloud} of these arms, started at the same time over a WAN without delay, and prepared one by one."""
    lab.link(*SITES).shape()
    clouds = start_together([partial(start, lab, one.point, one.hosts) for one in arms],
                            lambda number, cloud: prepare(lab, arms[number].point, cloud))
    return Together(zip((one.arm for one in arms), clouds))


def in_slices(rows, arm, seconds: float, calling_s: float) -> list[Slice]:
    """The calls by the slice of time in which they began, with their steps; those after the last whole slice of
    `calling_s` with it."""
    calls = rows[rows["step"] == ""].set_index(["client", "call"])["started_s"]
    last = max(1, int(calling_s // seconds))
    numbers = (1 + calls // seconds).clip(upper=last).astype(int)
    of_row = numbers.reindex(list(zip(rows["client"], rows["call"]))).to_numpy()
    return [Slice(arm, int(number), rows[of_row == number]) for number in sorted(set(numbers))]

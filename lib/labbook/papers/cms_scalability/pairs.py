"""Servers that are up at the same time and measured in turn: the two stores, many small nodes beside a
large server, and Cassandra with few threads in its stages beside one with many.

A point has paired arms (see labbook.study.paired), each on hosts of its own. All arms start together, and
each is warmed as soon as it answers; then they are measured in `slices`, while all other hosts are frozen.
"""

from functools import partial

import pandas as pd

from labbook.papers.cms_scalability import experiments
from labbook.papers.cms_scalability.experiments import (
    CLIENT,
    SERVER_OF,
    Layout,
    Place,
    check,
    check_rings,
    check_stores,
)
from labbook.systems.cassandra import stages
from labbook.systems.cassandra.node import Cassandra
from labbook.systems.cluster import Together

SMALL_NODES = "small_nodes"     # the arm of many_servers that is a ring; the others are "large_STORE"
STAGES = {"read": "ReadStage", "write": "MutationStage"}


def measure_stores(study, experiment, ceiling) -> None:
    """Measure both stores, on servers of the point's size.

    `ceiling`: the experiment of measure_ceiling. One client calls each store for `alone_seconds` on its share, and
    then both in turns without (see experiments.alone).
    """
    testbed = Layout.of(study)
    check_stores(experiment, testbed)
    _measure(study, experiment, ceiling, lambda point, hosts: store_place(point, hosts, testbed))


def measure_many(study, experiment, ceiling) -> None:
    """Measure a ring of the point's number of `nodes`, of `node_share` each, beside stores on large servers
    (`servers` small_nodes, large_cassandra, large_mysql)."""
    testbed = Layout.of(study)
    check_rings(experiment, testbed.nodes)
    _measure(study, experiment, ceiling, lambda point, hosts: server_place(point, hosts, testbed))


def measure_rings(study, experiment, ceiling) -> None:
    """Measure rings of as many nodes as each arm has hosts, of `node_share` each."""
    check_rings(experiment, Layout.of(study).nodes)
    _measure(study, experiment, ceiling, ring_place)


def measure_stages(study, experiment, ceiling) -> None:
    """Measure Cassandra with each number of threads a stage, and how many of its tasks work and wait meanwhile:
    the metrics of stages.queue, and the samples themselves as the series `stages`."""
    for point in (arm for paired in experiment.points() for arm in paired.arm_points):
        Cassandra.checked(stage_settings(point))
    _measure(study, experiment, ceiling, threads_place, watch=sampled)


def stage_settings(point) -> dict:
    """The settings of Cassandra among the parameters of a point of measure_stages."""
    return {name: point.params[name] for name in ("version", "stage_threads", "stage_samples_ms")}


def store_place(point, hosts: list[str], testbed: Layout) -> Place:
    """A store on that of its hosts that is of the point's size."""
    host = hosts[list(SERVER_OF).index(point.cores)]
    return Place(point, {host: point.params[f"{experiments.size_of(point)}_share"]},
                 lambda lab: experiments.new_store(lab, point, testbed, host))


def server_place(point, hosts: list[str], testbed: Layout) -> Place:
    """The ring on as many hosts as it has nodes, or a store on its large server."""
    if point.servers == SMALL_NODES:
        return ring_place(point, hosts[:point.nodes])
    return Place(point, {hosts[0]: point.large_share}, lambda lab: experiments.new_store(
        lab, point, testbed, hosts[0], store=point.servers.removeprefix("large_")))


def ring_place(point, hosts: list[str]) -> Place:
    """A node of a ring on each host."""
    return Place(point, dict.fromkeys(hosts, point.node_share), lambda lab: experiments.new_ring(lab, point, hosts))


def threads_place(point, hosts: list[str]) -> Place:
    """A node of Cassandra on a large server."""
    def new(lab):
        node = Cassandra(lab.host(hosts[0]), **stage_settings(point)).up()
        node.create_table()
        return node

    return Place(point, {hosts[0]: point.large_share}, new)


def sampled(measure, one, target, frames: list):
    """Make a slice's load; its metrics get those of its stage, and `frames` the samples."""
    begun = stages.begin(target)
    load, metrics = measure()
    last = load.started + (load.rows["started_s"] + load.rows["seconds"]).max()
    frame, samples = stages.since(target, begun, load.started, last)
    frames.append(frame.assign(stage_threads=one.arm, slice=one.number))
    return load, metrics | stages.queue(frame, samples, STAGES[one.point.op])


def _measure(study, experiment, ceiling, place, watch=None) -> None:
    """Measure each point's arms. `place(point, hosts)`: the Place of an arm. `watch(measure, slice, target,
    frames)` returns what `measure()` does, the load and its metrics, with further ones."""
    check(experiment)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            slices, servers, frames = attempt.slices(point.slices), {}, []
            for one in slices:
                if one.arm not in servers:
                    servers |= _servers(attempt, slices if attempt.at_once else [one], place)
                target, shares = servers[one.arm]
                measure = partial(experiments.measure_server, attempt.lab, one.point, target, ceiling, shares)
                with attempt.lab.only(CLIENT, *shares):
                    load, one.metrics = watch(measure, one, target, frames) if watch else measure()
                one.rows = load.rows
                _measure_alone(attempt, slices, one, servers)
            series = {"series": {"stages": pd.concat(frames, ignore_index=True)}} if frames else {}
            attempt.record_slices(slices, **series, facts={
                arm: target.facts_when_warm for arm, (target, _) in servers.items()}, arm_metrics={
                arm: target.warmth.metrics
                for arm, (target, _) in servers.items()})


def _measure_alone(attempt, slices, one, servers: dict) -> None:
    """Give the slices of a pair, of which `one` was measured last, what their stores take for a call of one client:
    all in turns where they are up at once."""
    pair = [each for each in slices if each.number == one.number] if attempt.at_once else [one]
    if not experiments.is_alone(one.point) or not all(each.metrics for each in pair):
        return
    targets = [servers[each.arm][0] for each in pair]
    with attempt.lab.only(CLIENT, *(host for each in pair for host in servers[each.arm][1])):
        for each, metrics in zip(pair, experiments.alone(attempt.lab, one.point, targets)):
            each.metrics |= metrics


class Servers(Together):
    """{arm: its servers, warm}."""

    def with_all(self, lab, places: dict) -> "Servers":
        """With those of `places`, {arm: Place}, that were not up: a point may have fewer arms than the next
        one of its set-up."""
        missing = {arm: one for arm, one in places.items() if arm not in self}
        if missing:
            self.update(zip(missing, experiments.warm_places(lab, list(missing.values()))))
        return self


def _servers(attempt, slices, place) -> dict:
    """{arm: (its servers, warm, and {host: share})} of the slices' arms, on the shares of their points. A cold
    server is used up by its first calls."""
    places = {one.arm: place(one.point, one.hosts) for one in slices}
    arm = None if attempt.at_once else slices[0].arm
    found = attempt.setup(lambda lab: Servers().with_all(lab, places), arm=arm, used_up=any(
        experiments.is_cold(one.point) for one in slices)).with_all(attempt.lab, places)
    for one in places.values():
        for host, share in one.shares.items():
            if attempt.lab.host(host).limits["quota"] != share:     # of another point of this set-up
                attempt.lab.limit(host, share)
    return {arm: (found[arm], one.shares) for arm, one in places.items()}

"""Clusters that differ in their active metadata servers, up at once in one lab, and measured in turn.

They share the cores, and so are measured one after the other, in slices of seconds to a minute: A B, then B A. What
a cluster's start or a slow drift of the machine does is the same for both as far as it can be; the hosts are
swapped from repeat to repeat. The one that is not measured is idle: no client has mounted it, and what was deleted
has left its OSDs. A point has `mds` paired, and slices (of each cluster); its unit of chance is a start of the pair.
"""

from dataclasses import dataclass

import pandas as pd

from labbook.lab.disk.hurry import in_a_hurry
from labbook.papers.ceph_mds.clusters import at_rest, cluster_up
from labbook.systems.cluster import in_parallel


@dataclass
class Run:
    """What a benchmark needs to know: the point of one arm, and the lab."""

    point: object
    lab: object


def host_sets(description, numbers: list[int]) -> dict:
    """{active metadata servers: names of the hosts of their cluster}, of the clusters in lab.yml, which have as many
    hosts: those of the first one's metadata servers that stand by are left out."""
    sets = [list(system["hosts"]) for system in description.systems]
    fewest = min(sum(_is_mds(description, name) for name in names) for names in sets)
    return {number: [name for name in names if not _is_mds(description, name)]
            + [name for name in names if _is_mds(description, name)][:fewest] for number, names in zip(numbers, sets)}


def _is_mds(description, name: str) -> bool:
    return description.host(name).role == "mds"


def measure_pair(attempt, experiment, measure) -> None:
    """Measure the point's clusters in turn. `measure(run, ceph)` -> Measured, of one slice; where the machine's
    memory does not carry both clusters at once, all slices of one come before those of the other."""
    point, slices, clusters, done = attempt.point, attempt.slices(attempt.point.slices), {}, []
    if attempt.at_once:
        clusters = both_up(attempt, experiment)
    for one in slices:
        if one.arm not in clusters:
            clusters = {one.arm: attempt.setup(lambda lab, one=one: cluster_up(lab, one.point, one.hosts), arm=one.arm)}
        with in_a_hurry(attempt.lab):
            rested = in_parallel(list(clusters.values()), lambda ceph: at_rest(ceph, point.rest_within_s))
        done.append(measure(Run(one.point, attempt.lab), clusters[one.arm]))
        one.rows, one.metrics = done[-1].rows, done[-1].metrics | {"rested": float(all(rested))}
    attempt.record_slices(slices, facts={str(one.arm): each.facts for one, each in zip(slices, done)},
                          series=together(slices, done))


def both_up(attempt, experiment) -> dict:
    """{arm: cluster} of all arms of the experiment, also of those that this point leaves out."""
    arms = sorted({arm for point in experiment.points() for arm in point.arm_values})

    def up(lab):
        with in_a_hurry(lab):
            return in_parallel(arms, lambda arm: cluster_up(lab, attempt.point.of(arm), attempt.hosts(arm)))

    return dict(zip(arms, attempt.setup(up)))


def together(slices, done) -> dict:
    """The series of all slices, with the columns `mds` and `slice`."""
    return {name: pd.concat([each.series[name].assign(mds=one.arm, slice=one.number)
                             for one, each in zip(slices, done)], ignore_index=True)
            for name in done[0].series}

"""Creating in several numbers of directories on one cluster, and how far each is off their trend.

The paper has 8, 16 and 24 directories, and finds 16 the fastest. Here several numbers are measured one after the
other on one cluster, in random order, each by a new mount, so that neither a cluster's start nor a slow drift
decides. A number's residual is its rate over that of the trend of all others.

Parameters of a point, beside the cluster's: least, most and step (of the numbers of directories), files (of each
directory), cache_inodes, seconds_at_most, watch_s, rest_within_s.
"""

import random

import numpy as np
import pandas as pd

from labbook.papers.ceph_mds.client_limits import ceilings_of, client_limits
from labbook.papers.ceph_mds.clusters import at_rest, bring_up, check_points, fuse_processes, mounted, paths
from labbook.workloads.clients.cpu import cpus_together
from labbook.workloads.clients.cpu_watch import CpuWatch
from labbook.workloads.crew.crew import Crew
from labbook.workloads.files.load import metadata

PHASE = "sequential_create"
SHIPPED = 16    # directories of 1024 files that a client's cache holds as shipped


def measure_sweep(experiment, ceilings) -> None:
    """Measure each number of directories of a point in turn. The files stay, since deleting them takes longer."""
    check_points(experiment)
    for point in experiment.remaining():
        with experiment.study.attempt(point) as attempt:
            ceph, found, limited, rested = bring_up(attempt), {}, [], []
            written = Journal(ceph)
            for number in in_turn(point):
                rested.append(at_rest(ceph, point.rest_within_s))
                with mounted(attempt, ceph, 1, point.cache_inodes) as mounts:
                    found[number], limits = create(attempt, mounts, number, ceilings.summary())
                limited.append(limits[f"{PHASE}_per_s_limited"])
            attempt.record(pd.concat([load.rows.assign(directories=number) for number, load in found.items()]),
                           facts=ceph.facts(), metrics=sweep_metrics(
                               {number: load.metrics[f"{PHASE}_per_s"] for number, load in found.items()}) | {
                               "client_limited": float(any(limited)), "rested": float(all(rested))} | against_journal(
                               [load.rows for load in found.values()], written.mean_s()))


class Journal:
    """The times that the metadata server's journal takes to write to the OSDs, from now on."""

    def __init__(self, ceph):
        self.ceph, self.name = ceph, ceph.ranks()[0].name
        self.before = self._counted()

    def mean_s(self) -> float:
        """Mean time of a write until now, in s; NaN without one."""
        count, total = (now - before for now, before in zip(self._counted(), self.before))
        return total / count if count else float("nan")

    def _counted(self) -> tuple[float, float]:
        """Number of writes, and seconds that they took together."""
        found = self.ceph.ask(self.name, "perf dump")["mds_log"]["jlat"]
        return found["avgcount"], found["sum"]


def against_journal(rows: list, journal_s: float) -> dict:
    """Metrics: create_median_ms, of a call; journal_ms, mean of a write of the journal; create_over_journal, the first
    over the second. Below 1 a call is answered before what it did is written. rows: DataFrames of calls."""
    calls = pd.concat(rows)
    create_s = float(calls["seconds"][calls["ok"].astype(bool)].median())
    return {"create_median_ms": create_s * 1e3, "journal_ms": journal_s * 1e3,
            "create_over_journal": create_s / journal_s}


def in_turn(point) -> list[int]:
    """The numbers of directories, in an order of this point's."""
    numbers = range(point.least, point.most + 1, point.step)
    return random.Random(point.seed).sample(numbers, len(numbers))


def create(attempt, mounts, number: int, ceilings):
    """Create files in so many directories; returns the load, and what the clients limited."""
    point, crew = attempt.point, Crew.of(attempt.lab)
    with CpuWatch(fuse_processes(mounts)) as cpu:
        load = metadata(crew, paths(mounts), pattern="creates", directories=number, files=point.files,
                        seed=point.seed, seconds_at_most=point.seconds_at_most)
    phases = load.phases.assign(from_s=load.started + load.phases["started_s"],
                                to_s=load.started + load.phases["ended_s"])
    return load, client_limits(load.metrics, phases, ceilings_of(ceilings, 1), cpu.used, cpus_together(crew.hosts[:1]))


def sweep_metrics(rates: dict[int, float]) -> dict:
    """Metrics of the rates by the number of directories.

    create_per_s_N: the rate in N; create_residual_N: over that of the trend of all other numbers, for each
    number between the least and the most; create_most_over_least: the trend's ratio of these two;
    create_per_s_beyond: mean rate in more directories than a client caches as shipped.
    """
    numbers = sorted(rates)
    beyond = [rates[number] for number in numbers if number > SHIPPED]
    return {f"create_per_s_{number}": rates[number] for number in numbers} | {
        f"create_residual_{number}": rates[number] / trend(rates, without=number)(number)
        for number in numbers[1:-1]} | {
        "create_most_over_least": trend(rates)(numbers[-1]) / trend(rates)(numbers[0]),
        "create_per_s_beyond": float(np.mean(beyond)) if beyond else float("nan")}


def trend(rates: dict[int, float], without: int | None = None):
    """The function of a number of directories that gives the rate of the line through the logarithms (least
    squares) of all rates but one. It takes two others."""
    numbers = [number for number in sorted(rates) if number != without]
    slope, level = np.polyfit(np.log(numbers), np.log([rates[number] for number in numbers]), 1)
    return lambda number: float(np.exp(level + slope * np.log(number)))

"""The experiments: joins under load, with the donor's disk traced, and nodes that die or leave.

Parameters of a point, beside the ring's (donor.RING, donor.DATA): load ("none", "read", "write", "read_capped",
"write_capped"), clients, capped_per_s (calls a second of all clients of a capped load), before_s and
after_s (of load before and after the joins), compaction, share (of the ring, for each joiner),
seconds_at_most (of one join or departure, which has failed after that, and of the load), bin_seconds (of
calls through time).
"""

import time
from contextlib import ExitStack, nullcontext

import pandas as pd

from labbook.errors import InputError, SystemFailure
from labbook.lab import clock
from labbook.lab.disk import models
from labbook.lab.disk.io_classes import io_class
from labbook.papers.cassandra_elasticity.bottleneck import Windows
from labbook.papers.cassandra_elasticity.disk import THREADS, disk_metrics
from labbook.papers.cassandra_elasticity.donor import SHIPPED_RING_DELAY_MS, Donor, node_names, protocols, rows_of
from labbook.papers.cassandra_elasticity.joins import (
    beginning_and_end,
    call_times,
    calls_during,
    join_metrics,
    join_rows,
    join_times,
    stream_times,
    streaming_over_before,
    streaming_over_waiting,
)
from labbook.papers.cassandra_elasticity.oscillation import oscillation_metrics
from labbook.study.point import check_range, check_values
from labbook.study.summary import summarise
from labbook.systems.null.server import NullServer
from labbook.workloads.clients.cpu import ceilings_in
from labbook.workloads.clients.outage import over_time
from labbook.workloads.clients.pace import limited_in_phases
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue.contents import readable
from labbook.workloads.keyvalue.load import begin_pairs
from labbook.workloads.keyvalue.spec import check_load

# I/O class and level of the donor's streaming threads.
IO_CLASSES = {"alike": ("none", 0), "stream_first": ("realtime", 4), "gets_first": ("idle", 0)}
AT_ONCE = {"none": 0, "one_by_one": 1, "two_at_a_time": 2}      # how many nodes join, by the `how` of growth
ALLOWED = {"load": ("none", "read", "write", "read_capped", "write_capped"), "priority": IO_CLASSES,
           "disk_order": models.ORDERS}


def check(points, more=()) -> None:
    """InputError for values that no ring, load or disk can have, before a lab is brought up. `more`: of parameters
    that not all experiments have, as ALLOWED."""
    check_values(points, ALLOWED | dict(more))
    for point in points:
        check_load(op="read", clients=point.clients, rows=max(1, rows_of(point.params)), value_bytes=point.value_bytes,
                   seconds_at_most=point.seconds_at_most,
                   rate_per_s=point.capped_per_s if point.load.endswith("_capped") else None)
        if point.load != "none" and not rows_of(point.params):
            raise InputError(f"a load of {point.load} on 0 rows", key=f"{point.experiment}: data_mb",
                             allowed="more than 0")
        check_range([point], {}, {"ends_s": point.seconds_at_most})
        if not 0 < point.params.get("part", 0.5) < 1:
            raise InputError(f"{point.part} of a joiner's data", key=f"{point.experiment}: part",
                             allowed="more than 0 and less than 1")


def measure_ceiling(ceilings) -> None:
    """Measure the clients' highest rate: calls for calling_s to a server that stores nothing."""
    for point in ceilings.remaining():
        with ceilings.study.attempt(point) as attempt:
            null = attempt.setup(lambda lab: NullServer(
                lab.host("idle"), protocol=point.protocol, value_bytes=point.value_bytes, values="random").up())
            stream = _begin(attempt, null, point.op, point.rows)
            time.sleep(point.calling_s)
            calls = stream.end()
            attempt.record(calls.rows, metrics=calls.metrics, facts=null.facts())


def measure_seeks(seeks, schedulers=()) -> None:
    """Measure seek_ratio: the time of a random read of the donor's disk over that of a sequential one.

    Each kind of read runs for reading_s. InputError where the disk lacks one of `schedulers`, which
    later experiments set.
    """
    for point in seeks.remaining():
        with seeks.study.attempt(point) as attempt:
            disk = attempt.lab.disk(point.disk)
            if absent := set(schedulers) - set(disk.schedulers()):
                raise InputError(f"{point.disk}'s disk has no {', '.join(sorted(absent))}", file="parameters",
                                 key="scheduler.schedulers", allowed=disk.schedulers())
            cost = disk.seek_cost(point.reading_s)
            attempt.record(metrics={"seek_ratio": cost["ratio"], "sequential_ms": cost["sequential_ms"],
                                    "random_ms": cost["random_ms"]}, facts=disk.facts())


class JoinBench:
    """Measure a study's experiments with one donor. `ceilings`, `seeks`: experiments measured before."""

    def __init__(self, ceilings, seeks):
        self.study, self.ceilings, self.seeks = ceilings.study, ceilings, seeks
        self.donor = Donor(node_names(self.study))

    def joins(self, experiment, act=None, trace=False, draw=True) -> None:
        """Measure joins under the point's load.

        `act(attempt, ring)` makes the joins and returns them with further metrics; by default the
        point's `joiners` join one after another. `trace`: trace the requests to the donor's disk; `draw`: and
        keep some of them for figures. InputError for a load or a priority that there is not.
        """
        check(experiment.points())
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                ring, disk = self.donor.restore(attempt), attempt.lab.disk(self.donor.name)
                traced = disk.trace() if trace else nullcontext()
                with traced:
                    (joins, more), calls, changes = _under_load(
                        attempt, ring, lambda: (act or one_after_another)(attempt, ring))
                metrics = more | join_metrics(joins, together=point.params.get("how") == "together")
                metrics |= self._place() | self._load_metrics(point, calls, joins, changes)
                metrics["waits_over_delay"] = metrics["fixed_wait_s"] * 1000 / point.ring_delay_ms
                facts, series = ring.facts() | {"disk": disk.facts()}, {}
                if calls is not None:
                    series["calls"] = over_time(calls.rows, point.bin_seconds)
                if trace:
                    metrics |= disk_metrics(traced.requests, lists=draw and point.repeat == 1)
                    facts["trace"], series["requests"] = traced.facts, traced.requests
                attempt.record(join_rows(joins), metrics=metrics, facts=facts, series=series)

    def growth(self, experiment) -> None:
        """Measure calls over time before, during and after the joins of the point's `how`.

        The load runs for warm_s, then for steady_s before the first join and between two. It ends
        after ends_s, with joins or without. So the last steady_s of all runs are as long after their beginnings.
        """
        check(experiment.points(), {"how": AT_ONCE})
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                ring = self.donor.restore(attempt)
                stream, began = _begin_load(attempt, ring), time.monotonic()
                time.sleep(point.warm_s)
                look, windows = Windows(attempt.lab, ring), []

                def rest():
                    start = clock.now()
                    look.rest(point.steady_s)
                    windows.append((start, clock.now()))

                rest()
                joins = grow(point, ring, rest)
                time.sleep(rest_of(point, time.monotonic() - began))
                rest()
                busy = look.metrics()
                calls = whole(stream.end())
                metrics = self._place() | growth_metrics(point, joins, calls, windows) | busy | {
                    "client_limited": self._limited(point, "read", calls, [
                        calls.started + point.warm_s,
                        *(edge for one in joins for edge in (one["asked_s"], one["normal_s"]))])}
                attempt.record(calls.rows, metrics=metrics, facts=ring.facts())

    def deaths(self, experiment) -> None:
        """Kill a joiner under load once `part` of its share has arrived; let it join again later."""
        check(experiment.points())
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                ring = self.donor.restore(attempt)
                stream = _begin_load(attempt, ring)
                time.sleep(point.before_s)
                killed_s, metrics = kill_joiner(point, ring)
                time.sleep(point.after_s)
                calls = whole(stream.end())
                metrics |= _readable(attempt, ring)
                metrics |= join_again(ring, point.share, point.again_within_s, point.most_tries)
                metrics["readable"] = min(metrics["readable"], _readable(attempt, ring)["readable"])
                metrics |= self._place() | per_bin(calls.rows, point.bin_seconds) | {
                    "died_s": killed_s - calls.started,
                    "client_limited": self._limited(point, "read", calls, [killed_s])}
                attempt.record(calls.rows, metrics=metrics, facts=ring.facts())

    def departures(self, experiment) -> None:
        """Let a node join without load, and leave under the point's load, its files no longer in the page cache. Calls
        while it streams are compared with those of the before_s before, when the load had gone on for warm_s."""
        check(experiment.points())
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                ring = self.donor.restore(attempt)
                joins, _ = one_after_another(attempt, ring)
                ring.drop_page_cache(joins[0]["node"])
                left, calls, changes = _under_load(attempt, ring, lambda: ring.leave(
                    joins[0]["node"], point.seconds_at_most), point.warm_s)
                metrics = join_metrics(joins) | self._place() | _readable(attempt, ring)
                metrics |= leave_metrics(left, joins[0], point.load)
                if calls is not None:
                    streamed = stream_times([left], calls.started)
                    since_s = streamed["join_starts_s"][0] - point.before_s
                    metrics |= call_times(calls.rows, **streamed, since_s=since_s) | {
                        "errors": float((~calls.rows["ok"].astype(bool)).sum()),
                        "client_limited": self._limited(point, op_of(point.load), calls, changes)}
                attempt.record(join_rows(joins), metrics=metrics, facts=ring.facts())

    def _place(self) -> dict:
        """Metrics of the disk's seek time and of loading the data, which claims' `needs` refer to."""
        probed = self.seeks.summary()
        ratio = {"seek_ratio": probed["seek_ratio"].median()} if len(probed) else {}
        return ratio | self.donor.metrics

    def _limited(self, point, op, calls, changes=()) -> float:
        """1.0 where the clients may have been the limit of these calls, otherwise 0.0. Their ceiling is that of the
        protocol that the point's version speaks.

        changes: epoch times at which a phase of the load ends and the next begins, such as the one in
        which nodes join. Each phase is judged by itself.
        """
        measured = self.ceilings.summary()
        if len(measured):
            measured = measured[(measured["op"] == op) & measured["protocol"].isin(protocols([point.version]))]
        ceilings = ceilings_in(measured)
        return float(limited_in_phases(calls, [change - calls.started for change in changes], ceilings))

    def _load_metrics(self, point, calls, joins, changes) -> dict:
        if calls is None:
            return {}
        return load_metrics(point, calls, joins) | {
            "client_limited": self._limited(point, op_of(point.load), calls, changes)}


def one_after_another(attempt, ring):
    """The point's joiners, one after another."""
    point = attempt.point
    return ring.one_after_another([point.share] * point.joiners, point.seconds_at_most), {}


def several(attempt, ring):
    """The point's `number` of joiners, at once ("together") or one after another."""
    point = attempt.point
    shares = [point.share] * point.number
    if point.how == "together":
        return ring.join(shares).wait(point.seconds_at_most), {}
    return ring.one_after_another(shares, point.seconds_at_most), {}


def with_priority(attempt, ring):
    """The point's joins, with the I/O class of its `priority` for the donor's streaming threads."""
    with io_class(ring.process, THREADS["stream"], *IO_CLASSES[attempt.point.priority]) as given:
        joins, _ = one_after_another(attempt, ring)
        return joins, {"io_classes": len(given.seen())}


def is_apart(point, share: float, size: dict) -> bool:
    """Whether the joins of `size` leave a point out: a load without data, and where the growth over the data has
    a share of its own, loads at that share and all but the most data at the other."""
    if not point.data_mb and point.load != "none":
        return True
    if share == size["growth_share"]:
        return False
    return point.load != "none" if point.share == size["growth_share"] else point.data_mb < max(size["data_mb"])


def is_repetition(point) -> bool:
    """Whether another point of `several` measures the same: one joiner joins the same way for each `how`."""
    return point.number == 1 and point.how == "one_after_another"


def is_dear(point, parallel: dict) -> bool:
    """Whether `several` leaves a point out for its time, where it has ring delays as shipped and others: under
    `shipped_load`, where moving outweighs the waits, the delay is as shipped and `shipped_numbers` join; under
    another it is shorter."""
    if len(parallel["ring_delay_ms"]) == 1:
        return False
    shipped = point.ring_delay_ms == SHIPPED_RING_DELAY_MS
    if point.load != parallel["shipped_load"]:
        return shipped
    return not shipped or point.number not in parallel["shipped_numbers"]


def grow(point, ring, rest) -> list[dict]:
    """Let the point's nodes join, one by one or two at a time, with a `rest()` between; returns the joins, none
    with `how` "none"."""
    at_once, joins = AT_ONCE[point.how], []
    while at_once and len(joins) < point.joiners:
        if joins:
            rest()
        joins += ring.join([point.share] * min(at_once, point.joiners - len(joins))).wait(point.seconds_at_most)
    return joins


def rest_of(point, seconds: float) -> float:
    """Seconds from `seconds` after the load began to the last steady_s of ends_s. SystemFailure if these have begun."""
    if seconds > point.ends_s - point.steady_s:
        raise SystemFailure(f"the joins ended {seconds:.0f} s after the load began, and the last {point.steady_s:g} of "
                            f"{point.ends_s:g} s are to be without one; use a larger ends_s")
    return point.ends_s - point.steady_s - seconds


def growth_metrics(point, joins, calls, windows) -> dict:
    """Metrics of calls over time; the oscillation is that after warm_s, without the last bin. `windows`: from and to
    (epoch seconds) of each rest, of which the first and the last are compared."""
    times = join_times(joins, calls.started)
    first, *_, last = ((start - calls.started, end - calls.started) for start, end in windows)
    metrics = per_bin(calls.rows, point.bin_seconds) | times | beginning_and_end(calls.rows, first, last)
    if joins:
        metrics |= join_metrics(joins) | {
            "streaming_ms": call_times(calls.rows, **stream_times(joins, calls.started))["during_ms"],
            "streaming_over_before": streaming_over_before(calls.rows, joins, calls.started, point.warm_s),
            "streaming_over_waiting": streaming_over_waiting(calls.rows, joins, calls.started,
                                                             point.ring_delay_ms / 1000)}
    warm = metrics["mean_ms_per_bin"][int(point.warm_s / point.bin_seconds):-1]
    return metrics | oscillation_metrics(warm, point.bin_seconds)


def load_metrics(point, calls, joins) -> dict:
    """call_*: summary of the calls that began during joins; rate_kept: their rate over that of a capped load, whose
    times count from when a call was due, with lists of them over time; during_ms and streaming_ms: mean time of calls
    during joins and during their streaming."""
    times = join_times(joins, calls.started)
    metrics = {f"call_{name}": value for name, value in summarise(calls_during(calls.rows, **times)).items()}
    if point.load.endswith("_capped"):
        metrics["rate_kept"] = metrics["call_rate_per_s"] / point.capped_per_s
        metrics |= per_bin(calls.rows, point.bin_seconds) | times
    return metrics | {
        "during_ms": call_times(calls.rows, **times)["during_ms"],
        "streaming_ms": call_times(calls.rows, **stream_times(joins, calls.started))["during_ms"]}


def per_bin(rows, bin_s: float) -> dict:
    """Lists of call times over time: mean_ms_per_bin, p95_ms_per_bin and, of calls at a rate,
    service_p95_ms_per_bin (None for bins without calls)."""
    bins = over_time(rows, bin_s)
    names = [name for name in ("mean_ms", "p95_ms", "service_p95_ms") if name in bins]
    return {"bin_s": bin_s} | {f"{name}_per_bin": [None if pd.isna(one) else round(float(one), 3)
                                                   for one in bins[name]] for name in names}


def kill_joiner(point, ring) -> tuple[float, dict]:
    """Start a join and kill the joiner when `part` of its share has arrived.

    Returns the time of the kill (epoch), and metrics of the ring's state in the following looking_s.
    SystemFailure if the node had already joined.
    """
    joins = ring.join([point.share])
    name = joins.joiners[0].name
    received = joins.await_share(name, point.part, point.seconds_at_most)
    joins.kill(name)
    killed_s = joins.joiners[0].killed_s
    if len(ring.owners()) > 1:
        raise SystemFailure(f"{name} had joined before it was killed; use more data")
    metrics = {"came_mb": received / 1e6} | times_of_death(ring, name, killed_s, point.looking_s, point.between_s)
    return killed_s, metrics | {"owners": len(ring.owners()), "shown": len(ring.status())}


def times_of_death(ring, name: str, killed_s: float, seconds: float, between_s: float) -> dict:
    """noticed_s, forgotten_s: seconds from the kill (epoch) until the donor shows a node as down, and no longer shows
    it.

    The ring is asked every `between_s`, and nodetool takes its time too. A metric is absent if its event does not
    happen within `seconds`.
    """
    metrics = {}
    while clock.now() < killed_s + seconds and "forgotten_s" not in metrics:
        status, after = ring.status().get(name), clock.now() - killed_s
        if not status:
            metrics["forgotten_s"] = after
        elif not status["up"]:
            metrics.setdefault("noticed_s", after)
        time.sleep(between_s)
    return metrics


def join_again(ring, share: float, seconds: float, most_tries: int) -> dict:
    """Try joins, each for up to `seconds`, until one succeeds.

    Metrics: tries, joined_again (0 or 1), and of the successful join again_join_s, again_received_mb.
    """
    rows, tries = ring.join_with_retries([share], seconds, most_tries)
    metrics = {"tries": float(tries), "joined_again": float(bool(rows))}
    if rows:
        joined = join_metrics(rows)
        metrics |= {f"again_{name}": joined[name] for name in ("join_s", "received_mb")}
    return metrics


def leave_metrics(left: dict, joined: dict, load: str) -> dict:
    """Metrics of a node that left; `joined`: its join. left_mb is NaN under writes, since the bytes sent
    then include the clients' data; left_mb_per_s is that of the streaming alone."""
    sent = left["moved_bytes"] if op_of(load) != "write" else float("nan")
    streaming = left["streaming_s"]
    return {"leave_s": left["leave_s"], "leaving_wait_s": left["fixed_wait_s"],
            "leaving_s": left["leave_s"] - left["fixed_wait_s"],
            "left_mb": sent / 1e6, "left_mb_per_s": sent / 1e6 / streaming if streaming else float("nan"),
            "left_over_joined": sent / joined["received_bytes"]}


def _under_load(attempt, ring, act, warm_s: float = 0.0):
    """Run `act()` under the point's load, warm_s and before_s after that began; returns its result, the load's calls
    (None without load), and when it began and ended (epoch)."""
    point = attempt.point
    if point.load == "none":
        return act(), None, ()
    stream = _begin_load(attempt, ring)
    time.sleep(warm_s + point.before_s)
    began_s = clock.now()
    done = act()
    ended_s = clock.now()
    time.sleep(point.after_s)
    return done, whole(stream.end()), (began_s, ended_s)


def whole(calls):
    """The load's calls. SystemFailure where it reached its own end before what it was to go on through."""
    if calls.metrics.get("truncated"):
        raise SystemFailure("the load ended before what happened under it: seconds_at_most is too short for both")
    return calls


def op_of(load: str) -> str:
    """The operation of a load: "read" of "read_capped"."""
    return load.partition("_")[0]


def _begin_load(attempt, ring):
    point = attempt.point
    capped = point.capped_per_s if point.load != op_of(point.load) else None
    return _begin(attempt, ring, op_of(point.load), rows_of(point.params), rate_per_s=capped)


def _begin(attempt, target, op, rows, **more):
    point = attempt.point
    return begin_pairs(Crew.of(attempt.lab), target, op=op, clients=point.clients, rows=rows,
                       value_bytes=point.value_bytes, values="random", seed=point.repeat,
                       seconds_at_most=point.seconds_at_most, **more)


def _readable(attempt, ring) -> dict:
    """readable: the share of all rows that can be read with correct values. A modelled disk takes none of its
    time meanwhile: 1 GB of rows in a random order would take it six minutes."""
    params = attempt.point.params
    with ExitStack() as hurry:
        for name in ring.joined:
            hurry.enter_context(attempt.lab.disk(name).in_a_hurry())
        return readable(Crew.of(attempt.lab), ring, rows=rows_of(params), value_bytes=params["value_bytes"])

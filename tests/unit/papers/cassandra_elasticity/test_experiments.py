"""The experiments without servers: what they ask of a ring, and the metrics that they record."""

import math
from contextlib import contextmanager
from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn
from paper_stand_ins import point as a_point

from labbook.errors import InputError, SystemFailure
from labbook.papers.cassandra_elasticity import donor, experiments

RING = {"version": "1.0.7", "heap_mb": 384, "stream_mbit": None, "whole_files": None, "files": "by_size",
        "coordinators": "donor", "ring_delay_ms": 3000, "data_mb": 16, "value_bytes": 16384,
        "loading_mb_per_s": 70}


def point(**params):
    return a_point(**{**RING, "load": "none", "share": 0.2, "joiners": 1, "clients": 4, "capped_per_s": 100,
                      "before_s": 0, "after_s": 0, "compaction": True, "seconds_at_most": 3600, "bin_seconds": 1, **params})


def join(asked_s, join_s, node="node2"):
    return {"node": node, "token": 1, "share": 0.2, "asked_s": asked_s, "normal_s": asked_s + join_s, "join_s": join_s,
            "fixed_wait_s": 6.0, "streaming_s": 2.0, "streamed_from_s": asked_s + join_s - 2,
            "streamed_to_s": asked_s + join_s, "received_bytes": 3e6, "expected_bytes": 3e6,
            "donor_bytes_before": 16e6, "donor_bytes_after": 16e6, "killed_s": None}


class Ring:
    """Notes its calls."""

    def __init__(self):
        self.calls, self.nodes = [], {"node1": {"up": True}}

    def one_after_another(self, shares, seconds):
        self.calls.append(("in turn", shares))
        return [join(100 + 20 * i, 10) for i, _ in enumerate(shares)]

    def join(self, shares):
        self.calls.append(("at once", shares))
        killed = []
        return SimpleNamespace(
            wait=lambda seconds: [join(100, 10) for _ in shares], joiners=[SimpleNamespace(name="node2", killed_s=90.0)],
            await_share=lambda name, part, seconds: 1_600_000, kill=killed.append)

    def drop_page_cache(self, name):
        self.calls.append(("cold", name))

    def leave(self, name, seconds):
        self.calls.append(("leaves", name))
        return {"leave_s": 10.0, "fixed_wait_s": 6.0, "moved_bytes": 3e6, "streaming_s": 2.0,
                "streamed_from_s": 1004.0, "streamed_to_s": 1006.0}

    def join_with_retries(self, shares, seconds, most_tries):
        self.calls.append(("again", shares, seconds, most_tries))
        return [join(300, 12)], 2

    def owners(self):
        return {"node1": 0}

    def status(self):
        return self.nodes

    def facts(self):
        return {"version": "1.0.7"}


def calls(*rows, started=90.0, **metrics):
    frame = pd.DataFrame(rows, columns=["started_s", "seconds", "ok"])
    return SimpleNamespace(rows=frame, started=started, metrics={"rate_per_s": 50.0, "clients_cpu_share": 0.2, **metrics})


def test_the_rings_settings_leave_a_shipped_ring_delay_to_cassandra():
    assert donor.ring_settings(RING)["ring_delay_ms"] == 3000
    assert donor.ring_settings(RING | {"ring_delay_ms": 30_000})["ring_delay_ms"] is None
    assert set(donor.ring_settings(RING)) == set(donor.RING) and donor.rows_of(RING) == 976


def test_rings_and_joins_that_cannot_be_are_refused_before_a_lab(monkeypatch):
    monkeypatch.setattr(donor, "node_names", lambda study: ["node1", "node2", "node3"])
    study = object()
    donor.check_rings(study, RING, versions=["5.0.8"], heaps_mb=[480], shares=[0.2, 0.4], numbers=[2])
    for wrong in ({"versions": ["9.9"]}, {"shares": [0.2], "numbers": [5]}, {"shares": [1.5]}):
        with pytest.raises(InputError):
            donor.check_rings(study, RING, **wrong)


def test_the_ceiling_calls_a_null_server_for_the_points_time(monkeypatch):
    slept, begun = [], []
    monkeypatch.setattr(experiments.time, "sleep", slept.append)
    monkeypatch.setattr(experiments, "NullServer", lambda host, **settings: SimpleNamespace(
        up=lambda: SimpleNamespace(facts=lambda: settings)))
    monkeypatch.setattr(experiments.Crew, "of", lambda lab: "crew")
    monkeypatch.setattr(experiments, "begin_pairs", lambda crew, target, **spec: begun.append(spec) or
                        SimpleNamespace(end=lambda: calls((0, 1, True))))
    study = StandIn(SimpleNamespace(host=lambda name: name))
    ceilings = study.experiment(a_point(protocol="thrift", value_bytes=100, op="read", clients=4, calling_s=3, rows=7,
                                        seconds_at_most=60))
    ceilings.study = study
    experiments.measure_ceiling(ceilings)
    assert slept == [3] and begun[0]["op"] == "read" and begun[0]["rows"] == 7 and begun[0]["clients"] == 4
    assert begun[0]["seconds_at_most"] == 60
    recorded, = study.recorded
    assert recorded["metrics"]["rate_per_s"] == 50 and recorded["facts"]["protocol"] == "thrift"


def test_a_scheduler_that_the_disk_lacks_is_an_input_error():
    disk = SimpleNamespace(schedulers=lambda: ["none"], facts=dict,
                           seek_cost=lambda seconds: {"ratio": 4.0, "sequential_ms": 1.0, "random_ms": 4.0})
    study = StandIn(SimpleNamespace(disk=lambda name: disk))
    seeks = study.experiment(a_point(disk="node1", reading_s=2))
    seeks.study = study
    experiments.measure_seeks(seeks, ["none"])
    assert study.recorded[0]["metrics"]["seek_ratio"] == 4
    with pytest.raises(InputError, match="no bfq"):
        experiments.measure_seeks(seeks, ["none", "bfq"])


def bench(monkeypatch, ring, *points):
    monkeypatch.setattr(experiments, "node_names", lambda study: ["node1", "node2"])
    disk = SimpleNamespace(facts=lambda: {"scheduler": "none"})
    study = StandIn(SimpleNamespace(disk=lambda name: disk))
    ceilings = study.experiment(summary=pd.DataFrame(
        {"op": ["read"], "protocol": ["thrift"], "issued_per_s": [[1000.0]]}))
    ceilings.study = study
    made = experiments.JoinBench(ceilings, study.experiment(summary=pd.DataFrame({"seek_ratio": [1.0, 3.0]})))
    made.donor = SimpleNamespace(restore=lambda attempt: ring, metrics={"loader_mb_per_s": 60.0}, name="node1",
                                 nodes=["node1", "node2"])
    return made, study, study.experiment(*points)


def test_a_join_is_recorded_with_its_waits_the_disk_and_the_loader(monkeypatch):
    ring = Ring()
    made, study, experiment = bench(monkeypatch, ring, point(joiners=2))
    made.joins(experiment)
    recorded, = study.recorded
    metrics = recorded["metrics"]
    assert ring.calls == [("in turn", [0.2, 0.2])]
    assert metrics["waits_over_delay"] == 2 and metrics["all_joined_s"] == 20
    assert metrics["seek_ratio"] == 2 and metrics["loader_mb_per_s"] == 60
    assert list(recorded["rows"]["started_s"]) == [0, 20] and "killed_s" not in recorded["rows"]
    assert "call_n" not in metrics and recorded["facts"]["disk"] == {"scheduler": "none"}


@pytest.mark.parametrize("measure, wrong", [
    ("joins", {"load": "reads"}), ("joins", {"priority": "streams_first"}), ("growth", {"how": "one_at_a_time"}),
    ("deaths", {"load": "raed"}), ("departures", {"load": "writes"})])
def test_what_there_is_not_is_refused_before_the_ring_is_loaded(monkeypatch, measure, wrong):
    ring = Ring()
    made, _, experiment = bench(monkeypatch, ring, point(joiners=1, **wrong))
    made.donor.restore = lambda attempt: pytest.fail("loaded")
    with pytest.raises(InputError, match=next(iter(wrong))):
        getattr(made, measure)(experiment)


def test_clients_that_are_the_limit_before_a_join_alone_are_the_limit(monkeypatch):
    """They call as fast as they can until the join, and wait for the servers during it."""
    made, _, _ = bench(monkeypatch, Ring())
    load = calls(*((i * 0.00125, 0.00125, True) for i in range(800)), *((1 + i * 0.1, 0.1, True) for i in range(90)),
                 issued_per_s=[80.0])
    load.rows = load.rows.assign(client=0, host=pd.Categorical(["c1"] * len(load.rows)))
    old, new = point(version="1.0.7"), point(version="5.0.8")
    assert made._limited(old, "read", load) == 0 and made._limited(old, "read", load, [91.0, 100.0]) == 1
    assert made._limited(old, "write", load, [91.0, 100.0]) == 1   # no ceiling, but ten times the usual share
    load.metrics["clients_cpu_share"] = 0.05
    assert made._limited(old, "write", load, [91.0, 100.0]) == 0
    assert made._limited(old, "read", load, [91.0, 100.0]) == 1
    assert made._limited(new, "read", load, [91.0, 100.0]) == 0     # the ceiling is another protocol's


def test_where_growth_has_a_share_of_its_own_loads_have_the_other_and_the_most_data():
    size, runs = {"growth_share": 0.2, "data_mb": [0, 128, 1024]}, []
    for share in (0.02, 0.2):
        runs.append({(mb, load, one) for mb in size["data_mb"] for load in ("none", "read") for one in {share, 0.2}
                     if not experiments.is_apart(point(data_mb=mb, load=load, share=one), share, size)})
    assert runs[0] == {(0, "none", 0.2), (128, "none", 0.2), (1024, "none", 0.2), (1024, "none", 0.02), (1024, "read", 0.02)}
    assert runs[1] == {(0, "none", 0.2), (128, "none", 0.2), (128, "read", 0.2), (1024, "none", 0.2), (1024, "read", 0.2)}


def test_joins_at_once_last_as_long_as_the_longest(monkeypatch):
    ring = Ring()
    together = point(how="together", number=3)
    made, study, experiment = bench(monkeypatch, ring, together, point(how="one_after_another", number=3))
    made.joins(experiment, experiments.several)
    assert ring.calls == [("at once", [0.2] * 3), ("in turn", [0.2] * 3)]
    assert [one["metrics"]["all_joined_s"] for one in study.recorded] == [10, 30]
    assert not experiments.is_repetition(together)
    assert experiments.is_repetition(point(how="one_after_another", number=1))


def test_the_waits_as_shipped_are_measured_for_few_joins_and_others_for_the_rest():
    parallel = {"ring_delay_ms": [3000, 30000], "shipped_load": "read", "shipped_numbers": [1, 3]}
    points = {(delay, load, number) for delay in (3000, 30000) for load in ("none", "read") for number in (1, 2, 3)
              if not experiments.is_dear(point(ring_delay_ms=delay, load=load, number=number), parallel)}
    assert points == {(3000, "none", 1), (3000, "none", 2), (3000, "none", 3), (30000, "read", 1), (30000, "read", 3)}
    assert not experiments.is_dear(point(load="read", number=2), parallel | {"ring_delay_ms": [3000]})


def test_calls_during_joins_and_during_their_streaming_have_times_of_their_own():
    capped = point(load="read_capped")
    rows = [(9, 0.001, True), (11, 0.002, True), (19, 0.004, True), (25, 0.001, True)]    # a join from 10 to 20 s
    metrics = experiments.load_metrics(capped, calls(*rows), [join(100, 10)])
    assert metrics["call_n"] == 2 and metrics["during_ms"] == pytest.approx(3)
    assert metrics["streaming_ms"] == pytest.approx(4)
    assert metrics["rate_kept"] == metrics["call_rate_per_s"] / 100
    assert "rate_kept" not in experiments.load_metrics(point(load="read"), calls(*rows), [join(100, 10)])


def test_nodes_join_one_by_one_or_two_at_a_time_with_a_steady_time_after_each():
    for how, shares in (("one_by_one", [1, 1, 1]), ("two_at_a_time", [2, 1]), ("none", [])):
        ring = Ring()
        joins = experiments.grow(point(how=how, joiners=3), ring, lambda: ring.calls.append("rest"))
        assert [one if one == "rest" else len(one[1]) for one in ring.calls] == (
            [each for share in shares for each in ("rest", share)][1:])
        assert len(joins) == sum(shares)


def test_with_joins_or_without_the_same_seconds_are_compared():
    steady = calls(*((float(t), 0.002 if t < 40 else 0.004, True) for t in range(60)))
    windows = [(steady.started + start, steady.started + end) for start, end in ((0, 20), (30, 35), (41, 60))]
    for how, joins in (("none", []), ("one_by_one", [join(steady.started + 20, 7), join(steady.started + 32, 8)])):
        metrics = experiments.growth_metrics(point(how=how, warm_s=0), joins, steady, windows)
        assert metrics["beginning_ms"] == pytest.approx(2) and metrics["end_over_beginning"] == pytest.approx(2)
        assert metrics["join_starts_s"] == [20, 32][:len(joins)]
        assert len(metrics["mean_ms_per_bin"]) == 60 and "oscillates" in metrics
        assert ("streaming_over_before" in metrics) == ("streaming_over_waiting" in metrics) == bool(joins)


def test_joins_that_take_too_long_to_be_compared_are_a_failure_that_says_what_to_change():
    short = point(how="one_by_one", steady_s=8, ends_s=60)
    assert experiments.rest_of(short, 40.0) == 12
    with pytest.raises(SystemFailure, match="larger ends_s"):
        experiments.rest_of(short, 52.5)


def test_a_dead_node_is_noticed_and_then_forgotten(monkeypatch):
    monkeypatch.setattr(experiments.time, "sleep", lambda seconds: None)
    states = [{"node2": {"up": True}}, {"node2": {"up": False}}, {"node2": {"up": False}}, {}]
    ring = SimpleNamespace(status=lambda: states.pop(0))
    killed_s = experiments.clock.now() - 5
    metrics = experiments.times_of_death(ring, "node2", killed_s, 60, 1)
    assert 5 <= metrics["noticed_s"] <= metrics["forgotten_s"] and states == []      # from the kill on
    up = SimpleNamespace(status=lambda: {"node2": {"up": True}})
    assert experiments.times_of_death(up, "node2", killed_s, 5, 1) == {}


def test_the_warm_time_is_left_out_of_the_oscillation_whatever_the_bins(monkeypatch):
    steady, seen = calls(*((float(t) / 4, 0.002, True) for t in range(80))), []
    monkeypatch.setattr(experiments, "oscillation_metrics", lambda means, bin_s: seen.append((len(means), bin_s)) or {})
    for bin_seconds in (1, 0.5):
        one = point(how="none", warm_s=10, bin_seconds=bin_seconds)
        experiments.growth_metrics(one, [], steady, [(steady.started, steady.started + 2)] * 2)
    assert seen == [(9, 1), (19, 0.5)]      # of 10 s, without the last bin


@pytest.mark.parametrize("params, message", [
    ({"part": 1.5}, "part: 1.5 of a joiner's data .*more than 0 and less than 1"),
    ({"load": "read_capped", "capped_per_s": 0}, "rate_per_s"),
    ({"disk_order": "lifo"}, "disk_order: 'lifo' is not allowed .*fcfs, elevator"),
    ({"clients": 0}, "clients"), ({"seconds_at_most": 0}, "seconds_at_most"), ({"load": "reads"}, "load")])
def test_values_that_nothing_can_have_are_refused_before_a_lab(params, message):
    experiments.check([point(part=0.5, disk_order="fcfs"), point(data_mb=0)])
    with pytest.raises(InputError, match=message):
        experiments.check([point(**params)])


def test_a_joiner_that_had_joined_before_its_death_is_a_failure():
    dying, ring = point(load="read", part=0.5, looking_s=0, between_s=1), Ring()
    killed_s, metrics = experiments.kill_joiner(dying, ring)
    assert killed_s == 90 and metrics == {"came_mb": 1.6, "owners": 1, "shown": 1}
    ring.owners = lambda: {"node1": 0, "node2": 1}
    with pytest.raises(SystemFailure, match="use more data"):
        experiments.kill_joiner(dying, ring)


def test_how_many_tries_a_second_join_takes_is_a_result():
    ring = Ring()
    assert experiments.join_again(ring, 0.2, 180, 3) == {
        "tries": 2, "joined_again": 1, "again_join_s": 12, "again_received_mb": 3}
    assert ring.calls == [("again", [0.2], 180, 3)]
    ring.join_with_retries = lambda *_: ([], 3)
    assert experiments.join_again(ring, 0.2, 180, 3) == {"tries": 3, "joined_again": 0}


def test_bytes_that_a_leaving_node_sends_are_unknown_under_writes():
    left = {"leave_s": 10.0, "fixed_wait_s": 6.0, "moved_bytes": 3e6, "streaming_s": 2.0}
    found = experiments.leave_metrics(left, join(0, 10), "read")
    assert found["leaving_s"] == 4 and found["left_mb"] == 3 and found["left_mb_per_s"] == 1.5 and found["left_over_joined"] == 1
    assert math.isnan(experiments.leave_metrics(left, join(0, 10), "write")["left_mb"])


def test_a_node_leaves_with_its_files_on_its_disk_and_calls_have_times_before_and_meanwhile(monkeypatch):
    ring, leaving = Ring(), point(load="read", warm_s=0.0, before_s=3.0)
    made, study, experiment = bench(monkeypatch, ring, leaving, point(load="none", warm_s=0.0))
    monkeypatch.setattr(experiments, "_readable", lambda attempt, ring: {"readable": 1.0})
    load = calls((0.5, 0.9, True), (1, 0.002, True), (5, 0.006, True), (5.5, 0.1, False), (7, 0.9, True),
                 started=1000.0)        # the first of a cold server, the last after the stream
    monkeypatch.setattr(experiments, "_begin_load", lambda attempt, ring: SimpleNamespace(end=lambda: load))
    monkeypatch.setattr(experiments.time, "time", iter([1004.0, 1014.0]).__next__)
    monkeypatch.setattr(experiments.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(made, "_limited", lambda point, op, calls, changes: 0.0)
    made.departures(experiment)
    assert ring.calls[:3] == [("in turn", [0.2]), ("cold", "node2"), ("leaves", "node2")]
    under_reads, idle = (one["metrics"] for one in study.recorded)
    assert under_reads["during_over_before"] == pytest.approx(3) and under_reads["errors"] == 1
    assert idle["left_mb_per_s"] == under_reads["left_mb_per_s"] == 1.5 and "errors" not in idle


def test_rows_are_looked_at_without_a_modelled_disk_s_time(monkeypatch):
    did = []

    @contextmanager
    def hurry(name):
        did.append(("hurry", name))
        yield
        did.append(("as modelled", name))

    monkeypatch.setattr(experiments.Crew, "of", lambda lab: "crew")
    monkeypatch.setattr(experiments, "readable", lambda crew, ring, rows, value_bytes: did.append(rows) or {})
    lab = SimpleNamespace(disk=lambda name: SimpleNamespace(in_a_hurry=lambda: hurry(name)))
    experiments._readable(SimpleNamespace(lab=lab, point=point()), SimpleNamespace(joined=["node1"]))
    assert did == [("hurry", "node1"), 976, ("as modelled", "node1")]


def test_a_load_that_ended_before_what_happened_under_it_is_a_failure():
    whole = SimpleNamespace(metrics={"truncated": 0.0})
    assert experiments.whole(whole) is whole
    with pytest.raises(SystemFailure, match="seconds_at_most is too short"):
        experiments.whole(SimpleNamespace(metrics={"truncated": 1.0}))


@pytest.mark.parametrize("load, known", [("read", True), ("read_capped", True), ("write", False), ("write_capped", False)])
def test_what_a_node_sends_when_it_leaves_is_unknown_under_writes(load, known):
    left = {"moved_bytes": 4e6, "streaming_s": 2.0, "leave_s": 5.0, "fixed_wait_s": 1.0}
    found = experiments.leave_metrics(left, {"received_bytes": 4e6}, load)
    assert found["leaving_s"] == 4.0 and (found["left_mb"] == 4.0) is known

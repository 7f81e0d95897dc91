"""Paired arms: points, slices, records, summaries, claims and published results."""

import json
import math
from collections import Counter
from types import SimpleNamespace

import pytest
from study_stand_ins import CLAIMS

from labbook import paths
from labbook.errors import InputError
from labbook.lab import LabDescription
from labbook.pipeline.executing.progress import RunState
from labbook.pipeline.publishing import publish
from labbook.pipeline.running import plan
from labbook.study import arm_hosts, noise, paired, results
from labbook.study.experiment import grid
from labbook.study.paired import Slice
from labbook.study.records import provenance

ARMS = {"paired": {"system": ["a", "b"]}, "vary": {"clients": [1, 2]}}
HOSTS = "sites: [lan]\nhosts: {one: {site: lan, role: db, limits: {memory: 1G}}, two: {site: lan, role: db, limits: {memory: 1G}}}\n"


class Store:
    """A set-up that says when it is destroyed."""

    def __init__(self, name, story):
        self.name, self.story = name, story
        story.append(f"up {name}")

    def destroy(self):
        self.story.append(f"down {self.name}")


def rows(seconds=0.01, count=10):
    return [{"started_s": i * seconds, "seconds": seconds, "ok": True} for i in range(count)]


def measure(study, experiment, story=None, rounds=2, seconds=None, **recorded):
    seconds, story = seconds or {"a": 0.02, "b": 0.01}, [] if story is None else story
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            slices, stores = attempt.slices(rounds), {}
            for one in slices:
                if one.arm not in stores:
                    stores[one.arm] = attempt.setup(lambda _lab, one=one: Store(one.arm, story), one.arm)
                story.append(f"{one.arm}{one.number}")
                one.rows = rows(seconds[one.arm])
            attempt.record_slices(slices, **recorded)


def on_hosts(root):
    (root / "data" / "papers" / "demo" / "lab.yml").write_text(HOSTS)
    return {"hosts": {"a": "one", "b": ["two"]}}


def test_a_point_holds_all_arms_and_its_key_their_values():
    point, = grid("e", {}, {"x": 1}, 1, paired={"s": ["a", "b"]})
    assert point.params == {"x": 1} and point.arms == [{"s": "a", "x": 1}, {"s": "b", "x": 1}]
    assert point.of("b").s == "b" and not point.of("b").paired
    assert [one.s for one in point.arm_points] == ["a", "b"] and point.of("b").arm_points == [point.of("b")]
    keys = {grid("e", {}, {"x": 1}, 1, paired=one)[0].key
            for one in ({"s": ["a", "b"]}, {"s": ["a", "c"]}, {"t": ["a", "b"]}, None)}
    assert len(keys) == 4


def test_arms_are_left_out_one_by_one():
    points = grid("e", {}, {"x": [1, 2, 3]}, 1, paired={"s": ["a", "b"]},
                  leave_out=lambda arm: arm.x == 3 or (arm.x == 2 and arm.s == "b"))
    assert {p.x: p.arm_values for p in points} == {1: ["a", "b"], 2: ["a"]}


@pytest.mark.parametrize("given, message", [
    ({"paired": {"s": ["a"]}}, "two values or more"),
    ({"paired": {"s": ["a", "b"], "t": [1, 2]}}, "one parameter"),
    ({"paired": {"s": ["a", "b"]}, "vary": {"s": 1}}, "one of setup, vary, paired"),
    ({"paired": {"repeat": [1, 2]}}, "any name but"),
    ({"paired": ["a", "b"]}, "parameter: \\[values"),
])
def test_wrong_paired_parameters_name_what_is_allowed(given, message):
    with pytest.raises(InputError, match=message):
        grid("e", {}, **({"vary": {}, "repeats": 1} | given))


def test_slices_alternate_and_arms_swap_by_repeat():
    assert "".join(arm for _, arm in paired.order(["a", "b"], 4, 1)) == "abbaabba"
    assert "".join(arm for _, arm in paired.order(["a", "b"], 4, 2)) == "baabbaab"
    assert [n for n, _ in paired.order(["a", "b"], 2, 1)] == [1, 1, 2, 2]
    assert "".join(arm for _, arm in paired.in_turns(["a", "b"], 2, 2)) == "bbaa"
    assert "".join(arm for _, arm in paired.in_turns(["a", "b"], 2, 2, up="a")) == "aabb"


def test_arms_with_hosts_of_their_own_are_up_at_once(root, make):
    study, speed = make(**ARMS, **on_hosts(root))
    story = []
    measure(study, speed, story)
    assert story == ["up a", "a1", "up b", "b1", "b2", "a2", "a1", "b1", "b2", "a2"]
    assert speed.arm_hosts.words() == "a and b are up at once"
    study.close()


def test_arms_take_turns_where_memory_does_not_carry_both(root, make, monkeypatch):
    monkeypatch.setattr(arm_hosts, "memory_bytes", lambda: 2 * 2**30)
    study, speed = make(**ARMS, **on_hosts(root))
    story = []
    measure(study, speed, story)
    assert story == ["up a", "a1", "a2", "down a", "up b", "b1", "b2",
                     "b1", "b2", "down b", "up a", "a1", "a2"]
    assert speed.arm_hosts.words() == "a and b take turns: 3 GB needed at once, 2 GB here"


def test_hosts_swap_where_they_are_alike(root, make):
    _, speed = make(**ARMS, **on_hosts(root))
    assert [speed.arm_hosts.hosts(repeat)["a"] for repeat in (1, 2, 3, 4, 5)] == [
        ["one"], ["two"], ["two"], ["one"], ["one"]]


@pytest.mark.parametrize("two, swap", [("{cores_of: one, memory: 1G}", True), ("{cores: 1, memory: 1G}", True),
                                       ("{cores_of: one, memory: 2G}", False)])
def test_hosts_that_name_the_others_cores_are_alike(root, make, two, swap):
    hosts = on_hosts(root)
    (root / "data/papers/demo/lab.yml").write_text(
        "sites: [lan]\nhosts: {one: {site: lan, role: db, limits: {cores: 1, memory: 1G}}, "
        f"two: {{site: lan, role: db, limits: {two}}}}}\n")
    _, speed = make(**ARMS, **hosts)
    assert (speed.arm_hosts.hosts(2)["a"] == ["two"]) is swap


@pytest.mark.parametrize("study, arms", [
    ("wan_keystone", "db1 db2 db3 db4 db5 db6 lb keystone; db7 db8 db9 db10 db11 db12 lb2 keystone2"),
    ("cloud_platforms", "cloud store; cloud2 store2")])
def test_the_papers_arms_swap_their_hosts(study, arms):
    one, two = (names.split() for names in arms.split("; "))
    lab = LabDescription.load(paths.papers(study) / "lab.yml").of()
    assert arm_hosts.ArmHosts({1: one, 2: two}, lab).hosts(2) == {1: two, 2: one}


@pytest.mark.parametrize("hosts, message", [
    ({"a": "one"}, "hosts of each arm: a and b"), ({"a": "one", "b": "three"}, "one, two")])
def test_wrong_hosts_name_what_is_allowed(root, make, hosts, message):
    on_hosts(root)
    with pytest.raises(InputError, match=message):
        make(**ARMS, hosts=hosts)


def test_a_summary_has_a_row_an_arm(make):
    study, speed = make(**ARMS)
    measure(study, speed, metrics={"shared": 5}, arm_metrics={"b": {"own": 7}})
    frame = speed.summary()
    assert list(frame.columns[:3]) == ["point", "system", "clients"]
    assert speed.parameters == ("system", "clients")
    assert len(frame) == 4 and frame["point"].nunique() == 2
    a, b = (frame[(frame["system"] == arm) & (frame["clients"] == 1)].iloc[0] for arm in "ab")
    assert a["n"] == 20 and a["mean_ms"] == pytest.approx(20) and b["mean_ms"] == pytest.approx(10)
    assert a["seconds"] == pytest.approx(0.4) and a["rate_per_s"] == pytest.approx(50)
    assert (a["shared"], b["shared"], b["own"]) == (5, 5, 7) and math.isnan(a["own"])
    assert b["pairs"] == 2 and b["mean_ms_log_ratio"] == pytest.approx(math.log(0.5))
    assert b["mean_ms_log_ratio_sd"] == pytest.approx(0)
    raw = speed.rows(speed.points()[0])
    assert set(raw["system"]) == {"a", "b"} and set(raw["slice"]) == {1, 2} and len(raw) == 40
    assert study.judge("slower").verdict
    assert study.conditions()["points"] == 2
    meta = study.records("speed").meta(speed.points()[0].key)
    assert [one["number"] for one in meta["slices"]] == [1, 2, 1, 2] and meta["provenance"]["during"]["arms_at_once"] is False


def test_metrics_of_slices_are_averaged_and_texts_stay_if_equal():
    slices = [Slice("a", 1, metrics={"x": 1, "t": "same", "u": "one"}),
              Slice("a", 2, metrics={"x": 3, "t": "same", "u": "two"})]
    summary = paired.arm_summary(slices)
    assert summary["x"] == 2 and summary["t"] == "same" and "u" not in summary


def test_log_ratios_are_of_pairs_with_both_above_0():
    found = paired.log_ratios({1: {"x": 2, "y": 0}, 2: {"x": 8}}, {1: {"x": 1, "y": 1}, 2: {"x": 1}, 3: {"x": 1}})
    assert found["pairs"] == 2 and found["x_log_ratio"] == pytest.approx(math.log(4))
    assert found["x_log_ratio_sd"] == pytest.approx(math.log(4) / math.sqrt(2)) and "y_log_ratio" not in found


@pytest.mark.parametrize("slices, message", [
    ([Slice("a", 1)], "no slice of 'b'"), ([Slice("c", 1)], "a slice of 'c'"),
    ([Slice("a", 1), Slice("b", 1), Slice("a", 1)], "have the number 1")])
def test_slices_that_do_not_fit_are_refused(slices, message):
    with pytest.raises(InputError, match=message):
        paired.check_slices(slices, "system", ["a", "b"])


def test_a_metric_is_no_slice_and_a_paired_point_has_slices_only(make):
    study, speed = make(**ARMS)
    point = speed.points()[0]
    with pytest.raises(InputError, match="record_slices"), study.attempt(point) as attempt:
        attempt.record(rows())
    with pytest.raises(InputError, match="metric slice"), study.attempt(point) as attempt:
        attempt.record_slices([Slice("a", 1, rows()), Slice("b", 1, rows())], metrics={"slice": 1})


def test_a_claim_on_a_metric_that_no_arm_records_is_an_error(make):
    claims = [{"id": "slower", "section": "speed", "statement": "a is <slower> than b", "source": "table 1",
               "paper": {"value": 2.0, "unit": "times"}, "experiment": "speed", "metric": "nothing_like_it",
               "rule": {"name": "greater", "of": {"system": "a"}, "than": {"system": "b"}, "margin": 1.05}}]
    study, speed = make(**ARMS, claims=claims)
    with pytest.raises(InputError, match="no metric 'nothing_like_it'"):
        measure(study, speed)


def test_published_points_have_a_row_an_arm(make, monkeypatch):
    study, speed = make(**ARMS)
    measure(study, speed)
    study.complete()
    publish.export(study, "quick")
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    again, read = make(**ARMS)
    assert list(read.summary()["system"]) == ["a", "b"] * 2
    assert results.conditions(again, [read])["points"] == 2


def noisy(monkeypatch, *steals):
    """Let the points' shares of steal be these, one after the other, and then 0, of a lab with its own cores."""
    monkeypatch.delenv("LABBOOK_SHARE_CORES", raising=False)
    left, during = list(steals), provenance.during
    monkeypatch.setattr(provenance, "during", lambda *given: during(*given) | {
        "steal": left.pop(0) if left else 0.0, "reference_loop": {"off": 0.0}})


def test_a_point_that_was_measured_in_noise_is_measured_again(make, monkeypatch):
    noisy(monkeypatch, 0.02)
    study, speed = make(**ARMS | {"vary": {"clients": [1]}})
    measured = speed.remaining()
    point = next(measured)
    for again in (None, 1):
        with study.attempt(point) as attempt:
            attempt.record_slices([Slice("a", 1, rows()), Slice("b", 1, rows())])
        during = study.records("speed").meta(point.key)["provenance"]["during"]
        assert during.get("measured_again") == again
        assert next(measured, None) == (point if again is None else None)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_set_up_that_is_used_up_is_made_anew_where_a_point_is_measured_again(root, make, monkeypatch, at_once):
    monkeypatch.setattr(arm_hosts, "memory_bytes", lambda: (4 if at_once else 2) * 2**30)
    noisy(monkeypatch, 0.02)
    study, speed = make(**ARMS | {"vary": {"clients": [1]}}, **on_hosts(root))
    story = []
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            slices, stores = attempt.slices(1), {}
            for one in slices:
                stores[one.arm] = attempt.setup(lambda _lab, one=one: Store(one.arm, story), one.arm,
                                                used_up=one.arm == "a")
                one.rows = rows()
            story.append(" ".join(one.arm for one in slices))
            attempt.record_slices(slices)
    assert story == (["up a", "up b", "a b", "down a", "up a", "a b"] if at_once else
                     ["up a", "down a", "up b", "a b", "down b", "up a", "b a"])


def test_what_noise_made_visible_to_a_claim_of_none_is_not_measured_away(make, monkeypatch):
    noisy(monkeypatch, 0.02)
    never = {"id": "none", "section": "s", "statement": "None.", "source": "s", "paper": {"none": "x"}, "experiment": "speed",
             "metric": "errors", "rule": {"name": "always", "high": 0, "where": {"clients": 1}}}
    study, speed = make(claims=[never], **ARMS)
    counts = Counter()
    for point in speed.remaining():
        counts[point.clients] += 1
        noisy(monkeypatch, 0.02)
        with study.attempt(point) as attempt:
            attempt.record_slices([Slice("a", 1, rows()), Slice("b", 1, rows())])
    assert counts == {1: 1, 2: 2}


def test_what_a_claim_needs_gets_a_further_repeat_instead(make, monkeypatch):
    noisy(monkeypatch, *[0.02] * 99)
    monkeypatch.setenv("LABBOOK_ASK", json.dumps({"claims": ["slower"], "repeats": {"speed": 2}, "page": False,
                                                  "last": False}))
    study, speed = make(claims=[CLAIMS[0]], **ARMS)
    counts = Counter()
    for point in speed.remaining():
        counts[point.clients, point.repeat] += 1
        with study.attempt(point) as attempt:
            attempt.record_slices([Slice("a", 1, rows()), Slice("b", 1, rows())])
    assert counts == {(clients, repeat): 1 for clients in (1, 2) for repeat in (1, 2)}


def test_it_is_measured_again_once_at_most_and_not_where_that_never_helps(make, monkeypatch):
    noisy(monkeypatch, *[0.02] * 99)
    study, speed = make(**ARMS | {"vary": {"clients": [1, 2, 3, 4, 5]}})
    counts = Counter()
    for point in speed.remaining():
        counts[point.key] += 1
        with study.attempt(point) as attempt:
            attempt.record_slices([Slice("a", 1, rows()), Slice("b", 1, rows())])
    assert list(counts.values()) == [2, 2, 1, 1, 1]


def test_no_point_is_measured_again_where_that_helped_half_of_them_at_most(make, monkeypatch):
    noisy(monkeypatch, 0.02, 0.0, 0.02, 0.02, *[0.02] * 9)
    study, speed = make(**ARMS | {"vary": {"clients": [1, 2, 3, 4]}})
    counts = Counter()
    for point in speed.remaining():
        counts[point.key] += 1
        with study.attempt(point) as attempt:
            attempt.record_slices([Slice("a", 1, rows()), Slice("b", 1, rows())])
    assert list(counts.values()) == [2, 2, 1, 1]


def test_no_point_is_measured_again_where_labs_share_cores(make, monkeypatch):
    noisy(monkeypatch, 0.02)
    monkeypatch.setenv("LABBOOK_SHARE_CORES", "1")
    study, speed = make(**ARMS | {"vary": {"clients": [1]}})
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.record_slices([Slice("a", 1, rows()), Slice("b", 1, rows())])
    assert "measured_again" not in study.records("speed").meta(point.key)["provenance"]["during"]
    assert not list(study.records("speed").folder.glob("superseded/*"))


def test_points_without_arms_are_measured_once(make, monkeypatch):
    noisy(monkeypatch, *[0.02] * 9)
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.record(rows())
    assert study.records("speed").meta(point.key)["provenance"]["during"]["steal"] == 0.02
    assert not list(study.records("speed").folder.glob("superseded/*"))


@pytest.mark.parametrize("during, expected", [
    ({"steal": 0.004, "reference_loop": {"off": 0.02}}, []), ({}, []),
    ({"steal": 0.011}, ["steal of 1.1%"]), ({"reference_loop": {"off": 0.05}}, ["the reference loop off by 5%"])])
def test_noise_is_steal_or_a_reference_loop_that_is_off(during, expected):
    assert noise.reasons(during) == expected


def test_the_reference_loop_is_recorded():
    start = provenance.before()
    found = provenance.during(start)["reference_loop"]
    assert found["before_ms"] > 0 and found["off"] >= 0


@pytest.mark.parametrize("freezes", [True, False])
def test_the_lab_of_paired_arms_is_frozen_while_the_reference_loop_runs(make, labs, monkeypatch, freezes):
    loops = []
    monkeypatch.setattr(noise, "reference_loop", lambda: loops.append(
        labs.made[-1].frozen if labs.made else None) or 1.0)
    study, speed = make(**ARMS | {"vary": {"clients": [1, 2]}})
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.lab.freezes = freezes
            attempt.setup(lambda lab: "servers")
            attempt.record_slices([Slice("a", 1, rows()), Slice("b", 1, rows())])
    # Of the first point: at its start, after its set-up, in the end; then of the second, whose servers run.
    assert loops == [None, freezes, freezes, False, *[freezes] * 2]
    assert not labs.made[-1].frozen


def test_hosts_elsewhere_are_not_frozen_for_the_reference_loop_of_this_machine(make, labs):
    study, speed = make(**ARMS)
    with study.attempt(speed.points()[0]) as attempt:
        attempt.lab.hosts = {name: SimpleNamespace(name=name, is_remote=far) for name, far in (("h1", True), ("h2", False))}
        attempt.record_slices([Slice("a", 1, rows()), Slice("b", 1, rows())])
    assert labs.made[-1].awake == ("h1",)


def test_a_plan_says_how_arms_will_be_up(root, make, monkeypatch, tmp_path):
    monkeypatch.setenv("LABBOOK_PLAN", "1")
    monkeypatch.setenv("LABBOOK_PROGRESS", str(tmp_path / "progress"))
    _, speed = make(**ARMS, **on_hosts(root))
    assert list(speed.remaining()) == []
    story = RunState(tmp_path / "progress")
    story.read_on()
    line, = plan._experiments(story)
    assert line.startswith("  speed: ") and line.endswith("; a and b are up at once")


def test_metrics_of_an_arm_that_there_is_not_are_refused(make):
    study, speed = make(**ARMS)
    point = next(iter(speed.remaining()))
    with pytest.raises(InputError, match="metrics of 'B'.*a, b"), study.attempt(point) as attempt:
        attempt.record_slices([Slice("a", 1, rows()), Slice("b", 1, rows())], arm_metrics={"B": {"client_limited": 1}})


def test_an_arm_that_the_clients_limited_in_one_slice_is_limited():
    parts = [Slice("a", 1, rows(), {"client_limited": 1.0, "cores": 1.0}), Slice("a", 2, rows(), {"client_limited": 0.0, "cores": 2.0})]
    found = paired.arm_summary(parts)
    assert (found["client_limited"], found["cores"]) == (1.0, 1.5)

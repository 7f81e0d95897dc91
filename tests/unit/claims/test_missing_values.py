"""Verdicts where a repeat lacks a value, or has one that no ratio can be made of."""

import math

import pytest
from made_up_points import AB, PARAMETERS, factor, judged, rows

from labbook.claims.decisions import NOT_REPLICATED, NOT_RUN, NOT_TESTABLE, OPEN, REPLICATED
from labbook.claims.rules import decide, numbers


def by_op(system, op):
    """System a takes twice as long for a read, and a third for a write."""
    return (2.0 if op == "read" else 1 / 3) if system == "a" else 1.0


def measured(repeats):
    found = rows(factor(1), repeats, clients=(1,), ops=("read", "write"))
    for row in found:
        row["mean_ms"] = by_op(row["system"], row["op"]) * (1 + row["repeat"] / 100)
    return found


def with_value(data, value, **of):
    for row in data:
        if all(row[name] == wanted for name, wanted in of.items()):
            row["mean_ms"] = value
    return data


def test_a_value_that_a_later_repeat_lacks_changes_no_verdict():
    rule = {"name": "greater"} | AB
    before = judged(rule, measured(6))
    after = judged(rule, with_value(measured(7), math.nan, system="a", op="write", repeat=7))
    assert before.verdict == NOT_REPLICATED
    assert (after.verdict, after.interval.low, after.interval.high) == (
        before.verdict, before.interval.low, before.interval.high)
    assert after.reason.startswith("1 of 7 repeats lack a value")


def test_the_numbers_of_the_repeats_are_of_those_that_have_one():
    claim = {"id": "x", "metric": "mean_ms", "rule": {"name": "greater"} | AB}
    data = with_value(with_value(rows(factor(2)), math.nan, repeat=2, clients=10), 0.0, repeat=5, system="b")
    assert numbers(claim, data, PARAMETERS) == pytest.approx({repeat: 2 for repeat in (1, 3, 4, 6)})
    claim["rule"] = {"name": "always", "high": 0}
    assert len(numbers(claim, data, PARAMETERS)) == 6
    assert decide(claim, data, PARAMETERS).interval.n == 6


@pytest.mark.parametrize("rule, value", [
    ({"name": "below", "value": 10}, 3.0), ({"name": "greater"} | AB, 2.0),
    ({"name": "proportional", "along": "clients", "low": 0.5, "high": 1.5}, 2.0)])
@pytest.mark.parametrize("without, verdict", [(range(7, 13), REPLICATED), (range(1, 7), OPEN), (range(2, 13, 2), OPEN)])
def test_repeats_in_which_the_event_did_not_come_are_not_left_out(rule, value, without, verdict):
    """It came after 3 s in six repeats, and never in six others. What the first look decided stays decided."""
    data = rows(lambda system, clients, repeat: value * (clients if "along" in rule else 1) if system == "a" else 1.0, 12,
                clients=(1, 2, 3, 4) if "along" in rule else (1,))
    rule = rule if "than" in rule else rule | {"of": {"system": "a"}}
    assert judged(rule, data).verdict == REPLICATED
    for repeat in without:
        with_value(data, math.nan, system="a", repeat=repeat)
    found = judged(rule, data)
    assert (found.verdict, found.interval.n) == (verdict, 12)
    assert found.reason.startswith("6 of 12 repeats lack a value")


@pytest.mark.parametrize("rule", [
    {"name": "proportional", "along": "clients", "low": 0.5, "high": 1.5},
    {"name": "differs_over", "along": "clients", "margin": 1.5}])
@pytest.mark.parametrize("repeat", [2, 12])
def test_one_value_that_is_not_above_0_costs_a_claim_over_a_parameter_its_repeat_alone(rule, repeat):
    data = rows(lambda system, clients, repeat: clients * (1 + repeat / 100), 20, clients=(1, 2, 3, 4))
    with_value(data, 0.0, repeat=repeat, clients=2)
    assert judged(rule | {"of": {"system": "a"}}, data).verdict == REPLICATED


def test_what_no_point_recorded_was_not_run_and_what_none_could_show_is_not_testable():
    """Where a quick run left out what records a metric, its claim was called not testable here."""
    nowhere = with_value(measured(6), math.nan)
    assert judged({"name": "greater"} | AB, nowhere).verdict == NOT_TESTABLE
    for row in nowhere:
        del row["mean_ms"]
    assert judged({"name": "greater"} | AB, nowhere).verdict == NOT_RUN


def test_a_setting_without_values_in_most_of_the_first_repeats_is_left_out_of_all():
    data = measured(7)
    for repeat in (1, 2):
        with_value(data, math.nan, system="a", op="write", repeat=repeat)
    found = judged({"name": "greater"} | AB, data)
    assert (found.verdict, found.interval.n) == (REPLICATED, 7)


@pytest.mark.parametrize("rule", [
    {"name": "always", "high": 5}, {"name": "sometimes", "low": 5}])
def test_a_repeat_without_one_of_its_values_is_no_full_try(rule):
    data = rows(factor(1), 29, clients=(1,), ops=("read", "write"))
    for repeat in range(2, 30):
        with_value(data, math.nan, op="write", repeat=repeat)
    found = judged(rule, data)
    assert (found.verdict, found.interval.n) == (OPEN, 1)


@pytest.mark.parametrize("rule, said", [
    ({"name": "always", "high": 5}, "every one of 25 points in 6 repeats is at most 5"),
    ({"name": "sometimes", "low": 5}, "none of 25 points in 6 repeats is at least 5")])
def test_where_each_point_is_a_try_a_repeat_counts_for_the_points_that_it_has(rule, said):
    """Of five points a repeat, all but the first lack one."""
    data = [row for row in rows(lambda *_: 1.0, clients=(1, 2, 3, 4, 5)) if row["system"] == "a"]
    for repeat in range(2, 7):
        with_value(data, math.nan, clients=repeat - 1, repeat=repeat)
    found = judged(rule | {"per": "point", "rate": 0.1}, data)
    assert (found.verdict, found.interval.n, found.repeats_needed) == (OPEN, 6, 9)
    assert found.reason.startswith(said)
    found = judged(rule | {"per": "point", "rate": 0.2}, data)
    assert found.verdict == (REPLICATED if rule["name"] == "always" else NOT_REPLICATED)


def each_lacks_one(repeats):
    """Of two points a repeat, each repeat lacks the one or the other."""
    data = [row for row in rows(lambda *_: 1.0, repeats, clients=(1,), ops=("read", "write")) if row["system"] == "a"]
    for repeat in range(1, repeats + 1):
        with_value(data, math.nan, op=("read", "write")[repeat % 2], repeat=repeat)
    return data


@pytest.mark.parametrize("rule, said, seen", [
    ({"name": "always", "high": 5}, "every one of 6 points in 6 repeats is at most 5", NOT_REPLICATED),
    ({"name": "sometimes", "low": 5}, "none of 6 points in 6 repeats is at least 5", REPLICATED)])
def test_where_each_repeat_lacks_a_point_a_claim_by_sight_is_open_for_want_of_these(rule, said, seen):
    found = judged(rule, each_lacks_one(6))
    assert (found.verdict, found.interval) == (OPEN, None)
    assert found.reason == (f"{said}, but no repeat has all of its points; a verdict needs 29 repeats that have"
                            "; 6 points have no mean_ms")
    assert judged(rule | {"per": "point", "rate": 0.4}, each_lacks_one(6)).verdict != seen, "six points are six tries"
    assert judged(rule | {"per": "point", "rate": 0.4}, each_lacks_one(6)).verdict in (REPLICATED, NOT_REPLICATED)
    data = with_value(each_lacks_one(6), 9.0, op="write", repeat=4)
    limited = [row | {"client_limited": int(row["repeat"] == 5)} for row in each_lacks_one(6)]
    assert judged(rule, data).verdict == seen
    found = judged(rule, limited)
    assert found.verdict == NOT_TESTABLE and "the clients were the limit, or lacks one" in found.reason


def test_a_point_is_seen_though_the_repeats_with_all_points_have_no_value():
    data = rows(lambda *_: math.nan, 3, clients=(1,), ops=("read", "write"))
    data = [row for row in data if (row["repeat"], row["op"]) != (3, "write")]
    with_value(data, 9.0, op="read", repeat=3)
    assert judged({"name": "always", "high": 5}, data).verdict == NOT_REPLICATED


def test_that_all_repeats_which_test_lack_a_value_is_no_limit_of_the_clients():
    data = rows(factor(1), 3, clients=(1, 2))
    for repeat in (2, 3):
        with_value(data, math.nan, clients=repeat - 1, repeat=repeat)
    found = judged({"name": "differs_over", "along": "clients", "margin": 1.5, "of": {"system": "a"}}, data)
    assert found.verdict == NOT_TESTABLE and found.reason.startswith("no repeat that could be compared has a value of every")


def test_what_a_repeat_without_all_values_shows_still_refutes():
    data = with_value(rows(factor(1), 8, clients=(1,), ops=("read", "write")), math.nan, op="write", repeat=8)
    with_value(data, 9.0, op="read", repeat=8)
    assert judged({"name": "always", "high": 5}, data).verdict == NOT_REPLICATED


def test_a_repeat_whose_value_is_not_above_0_counts_on_either_side():
    rule = {"name": "greater"} | AB
    nine = with_value(rows(factor(2), 9), 0.0, system="b", repeat=9)
    found = judged(rule, nine)
    assert found.verdict == REPLICATED
    assert found.reason.startswith("1 of 9 repeats lack a value, or have one that is not above 0, and count on either side")
    assert judged(rule, with_value(rows(factor(2), 6), 0.0, system="b", repeat=6)).verdict == OPEN
    assert judged(rule, with_value(rows(factor(2), 6), 0.0, system="b")).verdict == NOT_TESTABLE


def test_a_need_holds_for_each_arm_and_not_for_the_middle_of_both():
    data = rows(factor(2))
    for row in data:
        row["cpu"] = 100 if row["system"] == "a" else 80
    claim = {"id": "x", "metric": "mean_ms", "rule": {"name": "greater"} | AB,
             "needs": [{"metric": "cpu", "at_most": 95, "otherwise": "the processor was the limit"}]}
    found = decide(claim, data, PARAMETERS)
    assert found.verdict == NOT_TESTABLE
    assert found.reason.startswith("the processor was the limit (cpu is 100; the claim needs at most 95)")


def test_a_need_that_no_point_of_an_arm_has_is_that_of_all_points():
    data = rows(factor(2))
    for row in data:
        row["seek_ratio"] = 5.0 if row["system"] == "b" else math.nan
    claim = {"id": "x", "metric": "mean_ms", "rule": {"name": "greater"} | AB,
             "needs": [{"metric": "seek_ratio", "at_least": 4, "otherwise": "it does not seek"}]}
    assert decide(claim, data, PARAMETERS).verdict == REPLICATED


@pytest.mark.parametrize("of, than, verdict", [(-5, -1, REPLICATED), (-1, -5, NOT_REPLICATED), (-1, -1, NOT_REPLICATED)])
def test_of_two_that_fall_the_one_that_falls_faster_grows_slower(of, than, verdict):
    data = rows(lambda system, clients, repeat: 1000 + (of if system == "a" else than) * clients)
    assert judged({"name": "grows_slower", "along": "clients"} | AB, data).verdict == verdict


def test_a_need_that_one_arm_alone_can_meet_is_not_judged_by_points_of_neither():
    """Of clusters of one server and of two, those of one say whether it was full, with as many clients."""
    points = [dict(mds=mds, clients=clients, repeat=repeat, n=5, errors=0, mean_ms=10.0 * mds,
                   **({"full": clients / 8} if mds == 1 else {}))
              for repeat in range(1, 7) for mds in (1, 2) for clients in (1, 2, 8)]
    claim = {"id": "c", "metric": "mean_ms", "rule": {
        "name": "greater", "of": {"mds": 2}, "than": {"mds": 1}, "where": {"clients": 8}},
        "needs": [{"metric": "full", "at_least": 0.9, "otherwise": "the server was not full"}]}
    assert decide(claim, points, ("mds", "clients")).verdict == REPLICATED
    few = decide(claim | {"rule": claim["rule"] | {"where": {"clients": 2}}}, points, ("mds", "clients"))
    assert few.verdict == NOT_TESTABLE and "the server was not full (full is 0.25" in few.reason


def test_there_are_no_numbers_of_a_value_that_a_run_was_not_given():
    """A quick run leaves claims out. One of these ended the page, as if its value were a slip of the pen."""
    measured = [{"scenario": "create_user", "segments": segments, "repeat": repeat, "ms": 1.0}
                for segments in (1, 2) for repeat in (1, 2, 3)]
    claim = {"id": "saves", "metric": "ms", "rule": {
        "name": "ratio_between", "of": {"segments": 1}, "than": {"segments": 2}, "low": 1.02, "high": 1.06,
        "where": {"scenario": "create_and_list_users"}}}
    assert numbers(claim, measured, ["scenario", "segments"]) == {}
    claim["rule"]["where"]["scenario"] = "create_user"
    assert numbers(claim, measured, ["scenario", "segments"]) == {1: 1.0, 2: 1.0, 3: 1.0}

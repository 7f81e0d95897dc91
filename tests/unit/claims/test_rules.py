"""Verdicts of the named rules."""

import math

import pytest
from made_up_points import AB, PARAMETERS, around_one, factor, growing, judged, noisy, rows

from labbook.claims.rules import (
    NOT_REPLICATED,
    NOT_RUN,
    NOT_TESTABLE,
    OPEN,
    REPLICATED,
    crossing,
    check_grid,
    decide,
)
from labbook.errors import InputError


@pytest.mark.parametrize("rule, time, verdict", [
    ({"name": "greater", "margin": 1.05}, factor(2), REPLICATED),
    ({"name": "greater", "margin": 1.05}, factor(1.0), NOT_REPLICATED),
    ({"name": "greater", "margin": 1.05}, factor(0.5), NOT_REPLICATED),
    ({"name": "greater"}, noisy, OPEN),
    ({"name": "greater"}, around_one, OPEN),
    ({"name": "greater", "margin": 1.02}, around_one, NOT_REPLICATED),
    ({"name": "greater", "margin": 1.02}, factor(1.01), NOT_REPLICATED),     # there, and smaller than claimed
    ({"name": "equal_within", "margin": 1.2}, factor(1.1), REPLICATED),
    ({"name": "equal_within", "margin": 1.2}, factor(1.3), NOT_REPLICATED),
    ({"name": "equal_within", "margin": 1.2}, factor(0.7), NOT_REPLICATED),
    ({"name": "equal_within", "margin": 1.2}, noisy, OPEN),
    ({"name": "ratio_between", "low": 1.02, "high": 1.045}, factor(1.03), REPLICATED),
    ({"name": "ratio_between", "low": 1.02, "high": 1.045}, factor(1.01), NOT_REPLICATED),
    ({"name": "ratio_between", "low": 1.02, "high": 1.045}, factor(1.12), NOT_REPLICATED),
    ({"name": "ratio_between", "low": 1.02, "high": 1.045}, noisy, OPEN),
    ({"name": "grows_alike", "along": "clients", "margin": 1.5}, growing(1, 1.1), REPLICATED),
    ({"name": "grows_alike", "along": "clients", "margin": 1.5}, growing(3, 0.1), NOT_REPLICATED),
    ({"name": "grows_less", "along": "clients"}, growing(0.2, 1), REPLICATED),
    ({"name": "grows_less", "along": "clients"}, growing(1, 0.2), NOT_REPLICATED),
    ({"name": "grows_less", "along": "clients", "margin": 1.2}, growing(0.9, 1), NOT_REPLICATED),
    ({"name": "grows_less", "along": "clients", "margin": 1.1}, around_one, NOT_REPLICATED),
    ({"name": "grows_slower", "along": "clients"}, growing(0.2, 1), REPLICATED),
    ({"name": "grows_slower", "along": "clients"}, growing(1, 0.2), NOT_REPLICATED),
    ({"name": "grows_slower", "along": "clients", "margin": 2}, growing(0.8, 1), NOT_REPLICATED),
    ({"name": "grows_slower", "along": "clients"}, growing(1, 0), NOT_REPLICATED),
    ({"name": "crosses_near", "along": "clients", "at": 30, "within": 15},
     lambda s, c, r: c if s == "b" else 20 + c / 5 + r, REPLICATED),
    ({"name": "crosses_near", "along": "clients", "at": 45, "within": 5},
     lambda s, c, r: c if s == "b" else 6 + r / 10, NOT_REPLICATED),
    ({"name": "crosses_near", "along": "clients", "at": 35, "within": 15}, factor(2),
     NOT_REPLICATED),
])
def test_two_arms(rule, time, verdict):
    assert judged(rule | AB, rows(time)).verdict == verdict


def test_two_equal_arms_refute_a_claim_with_a_margin_and_leave_one_without_open():
    found = judged({"name": "greater", "margin": 1.02} | AB, rows(around_one))
    assert "the claim needs a value above 1.02 times; the whole interval lies below it" in found.reason
    three = judged({"name": "greater", "margin": 1.05} | AB, rows(around_one, 3))
    assert three.tendency["verdict"] == NOT_REPLICATED and three.repeats_needed == 6
    open_ = judged({"name": "greater"} | AB, rows(around_one, 3))
    assert open_.tendency is None and open_.repeats_needed == 30     # its median is not quite 1


@pytest.mark.parametrize("of, than, verdict", [
    (2, 1, REPLICATED), (0, 1, NOT_REPLICATED), (-0.05, 1, NOT_REPLICATED)])
def test_grows_with(of, than, verdict):
    rule = {"name": "grows_with", "along": "clients", "of": {"system": "a"}, "margin": 1.05}
    found = judged(rule, rows(growing(of, than)))
    assert found.verdict == verdict
    if of == 2:
        assert found.interval.value == pytest.approx((5.035 + 100) / (5.035 + 2))


@pytest.mark.parametrize("slope, verdict", [(1, REPLICATED), (0.1, NOT_REPLICATED), (3, NOT_REPLICATED)])
def test_a_metric_rises_by_so_much(slope, verdict):
    rule = {"name": "rises_by", "along": "clients", "of": {"system": "a"}, "low": 0.5, "high": 2, "unit": "ms a client"}
    found = judged(rule, rows(growing(slope, 9)))
    assert (found.verdict, found.unit, found.interval.value) == (verdict, "ms a client", pytest.approx(slope))


def test_the_metricd_value_is_the_median_of_the_repeats_ratios():
    found = judged({"name": "greater", "where": {"clients": 10}} | AB,
                   rows(lambda s, c, r: 10.0 * r if s == "a" else 5.0))
    assert (found.interval.value, found.interval.low, found.interval.high) == pytest.approx((7, 2, 12))
    assert (found.interval.n, found.interval.level, found.unit) == (6, 0.95, "times")


@pytest.mark.parametrize("repeats", [1, 2])
def test_few_repeats_decide_nothing(repeats):
    found = judged({"name": "greater"} | AB, rows(factor(100), repeats))
    assert found.verdict == OPEN and "6 or more" in found.reason


def test_where_picks_points():
    time = lambda s, c, r: 1.0 if c < 10 or s == "b" else 9.0  # noqa: E731
    for where, verdict in (({"clients": 1}, NOT_REPLICATED), ({"clients": 50}, REPLICATED),
                           ({"clients": {"at_least": 10}}, REPLICATED),
                           ({"clients": {"at_most": 9}}, NOT_REPLICATED)):
        assert judged({"name": "greater", "where": where} | AB, rows(time)).verdict == verdict


def test_operations_that_failed_are_reported_with_the_verdict():
    data = [row | {"n": 100, "errors": 5 * (row["system"] == "a")} for row in rows(factor(2))]
    assert "90 of 3600 operations failed" in judged({"name": "greater"} | AB, data).reason
    assert "failed" not in judged({"name": "greater"} | AB, rows(factor(2))).reason
    found = decide({"id": "x", "metric": "errors", "rule": {"name": "always", "high": 9}}, data,
                   PARAMETERS)
    assert "failed" not in found.reason     # it is about them itself


def test_a_parameter_without_a_value_is_the_same_in_all_points():
    data = [row | {"op": (None, math.nan, float("nan"))[i % 3]}
            for i, row in enumerate(rows(factor(2)))]
    assert judged({"name": "greater"} | AB, data).verdict == REPLICATED


def test_a_repeat_that_lacks_a_value_counts_on_either_side():
    data = rows(lambda s, c, r: 8.0 if c == 50 and s == "a" else 1.0)
    for row in data:
        if (row["repeat"], row["clients"], row["system"]) == (2, 50, "b"):
            row["mean_ms"] = math.nan
    found = judged({"name": "greater"} | AB, data).interval
    assert (found.n, found.low, found.high) == (6, -math.inf, math.inf)
    for row in data:
        row["mean_ms"] = math.nan
    assert judged({"name": "greater"} | AB, data).verdict == NOT_TESTABLE


def test_beside_a_baseline_that_the_clients_limited_the_number_is_unknown():
    data = rows(lambda s, c, r: 10.0 if s == "a" else 9.5)
    null = [row | {"system": "null", "mean_ms": 8.5, "client_limited": 1} for row in data if row["system"] == "a"]
    rule = {"name": "greater", "margin": 1.2} | AB
    assert judged(rule | {"baseline": {"arm": {"system": "null"}}}, data + null).verdict == NOT_TESTABLE
    of_point = [row | {"idle_ms": 8.5, "idle_ms_limited": 1} for row in data]
    assert judged(rule | {"baseline": {"metric": "idle_ms"}}, of_point).verdict == NOT_TESTABLE
    free = [row | {"client_limited": 0} for row in null]
    assert judged(rule | {"baseline": {"arm": {"system": "null"}}}, data + free).verdict == REPLICATED


def test_a_rule_with_one_curve_says_which_before_anything_is_measured():
    claim = {"id": "x", "metric": "mean_ms", "rule": {"name": "crosses_near", "along": "clients", "at": 30, "within": 5} | AB}
    grid = [{"system": s, "clients": c, "op": op} for s in "ab" for c in (1, 50) for op in ("read", "write")]
    with pytest.raises(InputError, match="x.rule.where.op: there is a curve for each op: read, write"):
        check_grid(claim, grid, ("system", "clients", "op"), file="claims.yml")
    claim["rule"]["where"] = {"op": "read"}
    check_grid(claim, grid, ("system", "clients", "op"), file="claims.yml")


def test_what_repeats_without_a_value_cost_is_expected_of_further_ones():
    data = [row | {"mean_ms": math.nan if row["repeat"] in (3, 9) else 1.0} for row in rows(factor(1), 30)]
    found = judged({"name": "always", "high": 2}, data)
    assert (found.verdict, found.repeats_needed) == (OPEN, 60)


@pytest.mark.parametrize("rule, number", [({"name": "greater"} | AB, 10), ({"name": "grows_with", "along": "clients"}, 10)])
def test_repeats_that_have_a_part_of_the_settings_change_no_claim_about_all(rule, number):
    """They were measured for another claim."""
    data = rows(lambda s, c, r: {1: 1, 10: 10, 50: 100}[c] if s == "a" else 1.0, 20)
    data = [row for row in data if row["repeat"] <= 6 or row["clients"] == 1]
    assert judged(rule, data).interval.n == 6
    if "than" in rule:
        assert judged(rule, data).interval.value == pytest.approx(number)
        assert judged(rule | {"where": {"clients": 1}}, data).interval.n == 20


def test_a_setting_that_failed_in_most_of_the_first_repeats_is_left_out():
    data = [row for row in rows(factor(2), 8) if row["clients"] < 50 or row["repeat"] in (2, 7)]
    assert judged({"name": "greater"} | AB, data).interval.n == 8


def test_a_baseline_is_subtracted_before_arms_are_compared():
    data = [row | {"idle_ms": 90.0} for row in rows(lambda s, c, r: 100.0 if s == "a" else 95.0)]
    rule = {"name": "greater", "margin": 1.5} | AB
    assert judged(rule, data).verdict == NOT_REPLICATED
    found = judged(rule | {"baseline": {"metric": "idle_ms"}}, data)
    assert found.verdict == REPLICATED and found.interval.value == 2 and found.reason.endswith("; less idle_ms")
    null = [row | {"system": "null", "mean_ms": 90.0} for row in data if row["system"] == "a"]
    found = judged(rule | {"baseline": {"arm": {"system": "null"}}}, data + null)
    assert found.interval.value == 2 and found.reason.endswith("; less that with system null")
    found = judged(rule | {"baseline": {"arm": {"system": "null"}}}, data + null[:-1])
    assert "have no mean_ms" in found.reason      # where the baseline was not measured
    with pytest.raises(InputError, match="rule.baseline.arm.sytem"):
        judged(rule | {"baseline": {"arm": {"sytem": "null"}}}, data)


def test_what_a_symmetric_claim_takes_for_granted_is_stated():
    found = judged({"name": "greater", "symmetric": True} | AB, rows(factor(2)))
    assert found.verdict == REPLICATED and "log ratios are taken to be symmetric" in found.reason


@pytest.mark.parametrize("ratio, verdict, reason", [
    (1.0, REPLICATED, "the whole interval lies between"), (1.1, REPLICATED, "a difference, 1.100 to 1.100 times, and equal"),
    (1.5, NOT_REPLICATED, "different by 1.5 to 1.5 times"), (None, OPEN, "which may be within the margin or beyond")])
def test_a_claim_of_equality_says_the_difference(ratio, verdict, reason):
    value = factor(ratio) if ratio else lambda s, c, r: c * (1.1 + r / 30 if s == "a" else 1.0)
    found = judged({"name": "equal_within", "margin": 1.2} | AB, rows(value))
    assert found.verdict == verdict and reason in found.reason


def test_that_points_have_no_value_is_reported_with_the_verdict():
    """Such as what a benchmark was too fast to measure."""
    data = rows(factor(2))
    for row in data:
        if row["clients"] == 50 and row["system"] == "b" and row["repeat"] > 1:
            row["mean_ms"] = math.nan
    found = judged({"name": "greater"} | AB, data)
    assert found.verdict == REPLICATED
    assert "; 5 points have no mean_ms: settings without it in most of the first repeats are left out" in found.reason
    found = judged({"name": "always", "low": 0, "where": {"system": "b"}}, data)
    assert found.interval.n == 1 and found.reason.endswith("; 5 points have no mean_ms")
    assert "have no" not in judged({"name": "always", "low": 0, "where": {"system": "a"}}, data).reason
    assert "have no" not in judged({"name": "greater", "where": {"clients": 1}} | AB, data).reason


@pytest.mark.parametrize("rule, reason", [
    ({"name": "greater", "where": {"clients": 70}}, "quick profile measured no point with clients 70"),
    ({"name": "greater", "where": {"clients": {"at_least": 60}}}, "no point with clients at least 60"),
    ({"name": "crosses_near", "along": "clients", "at": 70, "within": 10}, "only from 1 to 50"),
    ({"name": "crosses_near", "along": "clients", "at": 45, "within": 10}, "but the claim is about 35 to 55"),
])
def test_what_the_run_did_not_measure_is_no_verdict(rule, reason):
    found = judged(AB | rule, rows(factor(2)))
    assert found.verdict == NOT_RUN and reason in found.reason and found.interval is None


def test_what_no_place_like_this_can_show_is_not_testable_here():
    found = judged({"name": "not_testable", "reason": "one core only"}, rows(factor(2)))
    assert (found.verdict, found.reason, found.interval) == (NOT_TESTABLE, "one core only", None)


def test_a_ratio_of_nothing_is_not_testable():
    assert judged({"name": "greater"} | AB, rows(lambda *_: 0.0)).verdict == NOT_TESTABLE


def test_crossing():
    assert crossing([0, 10, 20, 30], [2, 2, 0.5, 0.5]) == pytest.approx(15)
    assert crossing([0, 10, 20, 30], [2, 2, 2, 2]) == math.inf
    assert crossing([0, 10, 20, 30], [0.5] * 4) == -math.inf
    one_wild = [2, 0.9, 2, 0.5, 0.5, 0.5]
    assert 20 < crossing([0, 10, 20, 30, 40, 50], one_wild) < 30


@pytest.mark.parametrize("value, verdict", [(1.5, REPLICATED), (2.0, NOT_REPLICATED),
                                            (3, NOT_REPLICATED)])
def test_a_metric_above_a_value(value, verdict):
    rule = {"name": "above", "value": value, "unit": "ms", "where": {"system": "a", "clients": 1}}
    outcome = judged(rule, rows(lambda s, c, r: 2.0 if s == "a" else 9.0))
    assert (outcome.verdict, outcome.unit, outcome.interval.value) == (verdict, "ms", 2.0)


@pytest.mark.parametrize("value, verdict", [(2.5, REPLICATED), (2.0, NOT_REPLICATED),
                                            (1, NOT_REPLICATED)])
def test_a_metric_below_a_value(value, verdict):
    rule = {"name": "below", "value": value, "unit": "ms", "where": {"system": "a", "clients": 1}}
    assert judged(rule, rows(lambda s, c, r: 2.0 if s == "a" else 9.0)).verdict == verdict


def test_a_metric_of_zero_is_one():
    rule = {"name": "below", "value": 1, "unit": "errors"}
    found = judged(rule, rows(lambda s, c, r: 0.0 if s == "a" else 0.5))
    assert (found.verdict, found.interval.value) == (REPLICATED, 0.25)


def test_a_gain_of_one_scenario_is_below_that_of_another_by_growth_along_the_arms():
    """What a numbered setting saves is a growth below 1 along it."""
    rule = {"name": "grows_less", "of": {"system": "a"}, "than": {"system": "b"},
            "along": "clients"}
    saves = {"a": {1: 100, 2: 88}, "b": {1: 200, 2: 190}}
    found = judged(rule, rows(lambda s, c, r: saves[s][c] + r / 100, clients=(1, 2)))
    assert found.verdict == REPLICATED
    assert found.interval.value == pytest.approx(0.88 / 0.95, abs=0.001)


@pytest.mark.parametrize("power, ends, verdict", [
    (1.0, {"low": 0.8, "high": 1.25}, REPLICATED), (0.5, {"low": 0.8, "high": 1.25}, NOT_REPLICATED),
    (1.3, {"low": 1.0}, REPLICATED), (0.9, {"low": 1.0}, NOT_REPLICATED)])
def test_a_metric_goes_with_a_power_of_a_parameter(power, ends, verdict):
    rule = {"name": "scales_with", "along": "clients", "of": {"system": "a"}, **ends}
    found = judged(rule, rows(lambda s, c, r: 7.0 * c**power * (1 + r / 100), clients=(1, 2, 4, 32)))
    assert found.verdict == verdict and found.interval.value == pytest.approx(power)


@pytest.mark.parametrize("power, verdict", [(1.0, REPLICATED), (0.4, NOT_REPLICATED), (2.0, NOT_REPLICATED)])
def test_a_line_is_proportional_beside_a_constant(power, verdict):
    rule = {"name": "proportional", "along": "clients", "of": {"system": "a"}, "low": 0.8, "high": 1.25}
    for counts in ((2, 8, 32), (1, 2, 4, 32)):
        found = judged(rule, rows(lambda s, c, r: 12.0 + 0.5 * c**power * (1 + r / 100), clients=counts))
        assert found.verdict == verdict and found.interval.value == pytest.approx(power, abs=1e-3)


def test_a_constant_alone_is_proportional_to_nothing():
    rule = {"name": "proportional", "along": "clients", "of": {"system": "a"}, "low": 0.8, "high": 1.25}
    assert judged(rule, rows(lambda s, c, r: 50.0 - c / 10)).verdict == NOT_REPLICATED
    assert judged(rule, rows(lambda s, c, r: 7.0)).verdict == NOT_REPLICATED


def test_a_metric_that_falls_goes_with_no_power_however_it_is_bent():
    rule = {"name": "proportional", "along": "clients", "of": {"system": "a"}, "low": 1.0}
    counts = (1, 2, 4, 32)
    found = judged(rule, rows(lambda s, c, r: 1 + 9.0 / c, clients=counts))
    assert (found.verdict, found.reason) == (NOT_REPLICATED, "the metric does not rise with clients")
    assert judged(rule, rows(lambda s, c, r: 1 + 9.0 * c**1.5, clients=counts)).verdict == REPLICATED
    bent = {1: 9.0, 2: 1.0, 4: 1.1, 32: 9.5}
    found = judged(rule, rows(lambda s, c, r: bent[c] if r % 2 else 1 + 9.0 / c, clients=counts))
    assert found.verdict == OPEN and "whether the metric rises with clients is open" in found.reason


def test_beside_a_constant_two_points_show_no_proportion():
    rule = {"name": "proportional", "along": "clients", "low": 0.8, "high": 1.25}
    found = judged(rule, rows(factor(1), clients=(1, 10)))
    assert (found.verdict, found.reason) == (NOT_RUN, "fewer than three values of clients can be compared")
    assert "0" in judged(rule, rows(lambda *_: 0.0)).reason


def test_every_value_of_along_counts_in_a_growth():
    """The two ends alone would call this a growth."""
    rule = {"name": "grows_with", "along": "clients", "of": {"system": "a"}, "margin": 1.05}
    falling = {1: 1.0, 2: 0.9, 4: 0.8, 8: 0.7, 16: 0.6, 32: 1.2}
    found = judged(rule, rows(lambda s, c, r: falling[c], clients=tuple(falling)))
    assert found.verdict == NOT_REPLICATED and found.interval.value < 1
    from_0 = judged(rule, rows(growing(1, 0), clients=(0, 5, 10)))
    assert from_0.interval.value == pytest.approx(15.035 / 5.035)


def test_of_nothing_there_is_no_power():
    rule = {"name": "scales_with", "along": "clients", "low": 1}
    assert "0" in judged(rule, rows(lambda *_: 0.0)).reason
    assert judged(rule, rows(factor(1), clients=(0, 4))).verdict == NOT_TESTABLE
    assert "fewer than two values" in judged(rule, rows(factor(1), clients=(4,))).reason


def test_one_value_of_many_differs_from_another():
    rule = {"name": "differs_over", "along": "op", "of": {"system": "a"}, "margin": 1.2}
    data = rows(lambda s, c, r: 1.0 + r / 10, repeats=8, ops=("read", "write", "scan"))
    for row in data:
        row["mean_ms"] *= {"read": 1, "write": 1.5, "scan": 1.1}[row["op"]]
    found = judged(rule, data)
    assert (found.verdict, found.unit) == (REPLICATED, "times, write over read")
    assert found.interval.value == pytest.approx(1.5) and found.interval.n == 6
    found = judged(rule | {"margin": 1.6}, data)
    assert (found.verdict, found.reason) == (NOT_REPLICATED, "no two values of op differ by more than 1.6 times")
    found = judged(rule, [row for row in data if row["repeat"] < 8])
    assert (found.verdict, found.repeats_needed) == (OPEN, 8)
    assert found.reason == "only 5 repeats, after 2 repeats that chose the values; a verdict needs 6 or more"
    assert judged(rule, rows(factor(1))).verdict == NOT_RUN


def test_noise_is_not_taken_for_a_difference():
    """Every repeat has another largest and smallest."""
    times = {("x", 1): 1, ("y", 1): 2, ("z", 1): 1, ("x", 2): 2, ("y", 2): 1, ("z", 2): 1,
             ("x", 3): 1, ("y", 3): 1, ("z", 3): 2}
    data = [{"system": "a", "op": op, "clients": 1, "repeat": r, "mean_ms": time}
            for (op, r), time in times.items()]
    found = judged({"name": "differs_over", "along": "op", "margin": 1.2}, data)
    assert found.interval.low < 1


def test_values_that_were_chosen_wrongly_refute_no_difference():
    """The first repeats choose scan over read, but write over scan differs in the others."""
    times = {"read": (1, 1) + (1,) * 6, "write": (1.2, 1.2) + (3,) * 6, "scan": (2, 2) + (1,) * 6}
    data = [{"system": "a", "op": op, "clients": 1, "repeat": r, "mean_ms": time}
            for op, each in times.items() for r, time in enumerate(each, 1)]
    rule = {"name": "differs_over", "along": "op", "margin": 1.2}
    found = judged(rule, data)
    assert (found.verdict, found.interval.high) == (OPEN, 1) and "any two values of op" in found.reason
    assert judged(rule | {"margin": 3.1}, data).verdict == NOT_REPLICATED


@pytest.mark.parametrize("ends, verdict", [
    ({"low": 1.5, "high": 2.5}, REPLICATED), ({"low": 2.5, "high": 3}, NOT_REPLICATED)])
def test_a_metric_between_two_values(ends, verdict):
    rule = {"name": "between", **ends, "unit": "ms", "where": {"system": "a", "clients": 1}}
    assert judged(rule, rows(lambda s, c, r: 2.0 if s == "a" else 9.0)).verdict == verdict


NEEDS = [{"metric": "seek_ratio", "at_least": 4, "otherwise": "this disk does not seek"}]


@pytest.mark.parametrize("seeks, verdict, reason", [
    ((9, 10, 11), REPLICATED, "above"), ((1, 1.2, 9), NOT_TESTABLE,
     "this disk does not seek (seek_ratio is 1.2; the claim needs at least 4)"),
    ((None, math.nan, None), NOT_RUN, "needs seek_ratio, which was not measured")])
def test_where_a_need_is_unmet_the_claim_is_not_judged_and_the_value_is_still_shown(seeks, verdict, reason):
    data = [row | {"seek_ratio": seeks[row["repeat"] % 3]} for row in rows(factor(2))]
    claim = {"id": "x", "metric": "mean_ms", "rule": {"name": "greater"} | AB, "needs": NEEDS}
    found = decide(claim, data, PARAMETERS)
    assert found.verdict == verdict and reason in found.reason
    assert found.interval.value == pytest.approx(2)


def test_that_the_place_lacks_something_comes_before_what_the_profile_lacks():
    data = [row | {"seek_ratio": 1.0} for row in rows(factor(2))]
    rule = {"name": "greater", "where": {"clients": 70}} | AB
    found = decide({"id": "x", "metric": "mean_ms", "rule": rule, "needs": NEEDS}, data, PARAMETERS)
    assert (found.verdict, found.interval) == (NOT_TESTABLE, None) and "does not seek" in found.reason

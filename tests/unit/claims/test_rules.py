"""Verdicts of the named rules."""

import math

import pytest

from labbook.claims.looks import LOOKS
from labbook.claims.rules import (
    NOT_REPLICATED,
    NOT_RUN,
    NOT_TESTABLE,
    OPEN,
    REPLICATED,
    crossing,
    decide,
)
from labbook.errors import InputError

PARAMETERS = ("system", "op", "clients")
AB = {"of": {"system": "a"}, "than": {"system": "b"}}


def rows(time, repeats=6, clients=(1, 10, 50), ops=("read",), limited=()):
    """`time(system, clients, repeat)` in ms; `limited`: counts at which clients limit system a."""
    return [{"system": s, "op": op, "clients": c, "repeat": r, "mean_ms": time(s, c, r),
             "client_limited": int(s == "a" and c in limited)}
            for r in range(1, repeats + 1) for s in "ab" for op in ops for c in clients]


def judged(rule, data):
    return decide({"id": "x", "metric": "mean_ms", "rule": rule}, data, PARAMETERS)


def factor(value):
    return lambda s, c, r: (value if s == "a" else 1.0) * c * (1 + r / 100)


def growing(of, than):
    return lambda s, c, r: 5.0 + (of if s == "a" else than) * c + r / 100


def noisy(s, c, r):
    return c * ((1.5, 0.7, 1.4)[r % 3] if s == "a" else 1.0)


def around_one(s, c, r):
    return c * ((0.99, 1.01)[r % 2] if s == "a" else 1.0)


@pytest.mark.parametrize("rule, time, verdict", [
    ({"name": "greater", "margin": 1.05}, factor(2), REPLICATED),
    ({"name": "greater", "margin": 1.05}, factor(1.0), NOT_REPLICATED),
    ({"name": "greater", "margin": 1.05}, factor(0.5), NOT_REPLICATED),
    ({"name": "greater"}, noisy, OPEN),
    ({"name": "greater"}, around_one, OPEN),
    ({"name": "greater", "refuted_below": 1.02}, around_one, NOT_REPLICATED),
    ({"name": "greater", "refuted_below": 1.02}, factor(1.01), REPLICATED),     # smaller than claimed, and there
    ({"name": "greater", "refuted_below": 1.005}, around_one, OPEN),
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
    ({"name": "grows_less", "along": "clients", "refuted_above": 0.9}, around_one, NOT_REPLICATED),
    ({"name": "grows_slower", "along": "clients"}, growing(0.2, 1), REPLICATED),
    ({"name": "grows_slower", "along": "clients"}, growing(1, 0.2), NOT_REPLICATED),
    ({"name": "grows_slower", "along": "clients", "margin": 2}, growing(0.8, 1), NOT_REPLICATED),
    ({"name": "grows_slower", "along": "clients"}, growing(1, 0), NOT_REPLICATED),
    ({"name": "crosses_near", "along": "clients", "at": 30, "within": 15},
     lambda s, c, r: c if s == "b" else 20 + c / 5 + r, REPLICATED),
    ({"name": "crosses_near", "along": "clients", "at": 45, "within": 5},
     lambda s, c, r: c if s == "b" else 6 + r / 10, NOT_REPLICATED),
    ({"name": "crosses_near", "along": "clients", "at": 40, "within": 15}, factor(2),
     NOT_REPLICATED),
])
def test_two_arms(rule, time, verdict):
    assert judged(rule | AB, rows(time)).verdict == verdict


def test_what_refutes_a_claim_of_two_equal_arms_is_said():
    found = judged({"name": "greater", "refuted_below": 1.02} | AB, rows(around_one))
    assert "the whole interval lies below 1.02 times, so a difference as large as the paper's is not there" in found.reason
    three = judged({"name": "greater", "refuted_below": 1.05} | AB, rows(around_one, 3))
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


def test_points_limited_by_clients_enter_no_verdict():
    time = lambda s, c, r: 100.0 if s == "a" and c == 50 else 1.0 if s == "b" else 2.0  # noqa: E731
    found = judged({"name": "greater"} | AB, rows(time, limited=(50,)))
    assert found.interval.value == pytest.approx(2) and "6 points" in found.reason
    found = judged({"name": "greater", "where": {"clients": 50}} | AB, rows(time, limited=(50,)))
    assert (found.verdict, found.reason) == (
        NOT_TESTABLE, "the clients were the limit, so the true value is at most the measured 100 times, which does not "
        "decide")
    found = judged({"name": "grows_with", "along": "clients"} | {"of": {"system": "a"}},
                   rows(time, limited=(10, 50)))
    assert found.verdict == NOT_TESTABLE and "limited" in found.reason


def limited_in(repeats, data, system="a", clients=50):
    """The rows, with the clients as the limit of a setting in these repeats."""
    return [row | {"client_limited": int((row["system"], row["clients"]) == (system, clients) and row["repeat"] in repeats)}
            for row in data]


def test_a_setting_limited_in_one_repeat_stays_and_that_repeat_is_a_bound():
    """Issue 22: one limited point had dropped its setting from all repeats."""
    data = limited_in({4}, rows(factor(2), 6))
    found = judged({"name": "greater"} | AB, data)
    assert (found.verdict, found.interval.low, found.interval.n) == (OPEN, -math.inf, 6)
    assert found.reason.startswith("1 of 6 repeats are bounds, since the clients were the limit (1 at most); only a part")
    assert judged({"name": "greater", "margin": 3} | AB, data).verdict == NOT_REPLICATED
    assert judged({"name": "greater", "where": {"clients": 50}, "margin": 3} | AB, data).verdict == NOT_REPLICATED
    assert judged({"name": "greater"} | AB, limited_in({4}, rows(factor(2), 12))).verdict == REPLICATED
    assert judged({"name": "greater"} | AB, limited_in({4, 9}, rows(factor(2), 12))).repeats_needed == 30
    found = judged({"name": "greater"} | AB, limited_in({4}, rows(factor(2), 6), "b"))
    assert found.verdict == REPLICATED and "(1 at least)" in found.reason


def test_a_setting_limited_in_most_of_the_first_repeats_is_left_out_of_all():
    time = lambda s, c, r: 100.0 if s == "a" and c == 50 else 1.0 if s == "b" else 2.0  # noqa: E731
    for limited, stays in (({1, 2}, False), ({2, 3, 6}, False), ({1, 4, 5, 6}, True)):
        found = judged({"name": "greater"} | AB, limited_in(limited, rows(time)))
        assert (found.interval.high > 2.1) == stays, limited
    assert "most of the first repeats are left out (2 points limited)" in judged(
        {"name": "greater"} | AB, limited_in({1, 2}, rows(time))).reason


@pytest.mark.parametrize("rule, clients, low, high", [
    ({"name": "grows_with", "along": "clients", "of": {"system": "a"}}, 50, -math.inf, 10**9),
    ({"name": "grows_with", "along": "clients", "of": {"system": "a"}}, 1, 1, math.inf),
    ({"name": "grows_with", "along": "clients", "of": {"system": "a"}}, 10, -math.inf, math.inf),
    ({"name": "grows_alike", "along": "clients", "margin": 2} | AB, 50, -math.inf, 10**9),
    ({"name": "rises_by", "along": "clients", "low": 1, "of": {"system": "a"}}, 1, 1, math.inf),
    ({"name": "grows_slower", "along": "clients"} | AB, 50, -math.inf, math.inf),
    ({"name": "proportional", "along": "clients", "low": 0.8, "high": 1.2, "of": {"system": "a"}}, 50, -math.inf, math.inf)])
def test_growth_is_bounded_by_a_limited_end_and_unknown_by_what_is_between(rule, clients, low, high):
    found = judged(rule, limited_in({4}, rows(growing(2, 2)), clients=clients))
    assert (found.interval.low > -math.inf) == (low > -math.inf) and (found.interval.high < math.inf) == (high < math.inf)
    assert "1 of 6 repeats are bounds" in found.reason


def test_two_limited_arms_say_nothing_of_their_ratio():
    data = [row | {"client_limited": int(row["clients"] == 50 and row["repeat"] == 4)} for row in rows(factor(2))]
    found = judged({"name": "greater"} | AB, data)
    assert found.verdict == OPEN and "(1 unknown)" in found.reason
    assert (found.interval.low, found.interval.high) == (-math.inf, math.inf)


def test_a_metric_with_a_mark_of_its_own_is_limited_by_that_alone():
    """A point of several phases: the clients may have limited one of them, and no other."""
    for of_metric, of_point, says in ((0, 1, False), (1, 0, True), (None, 1, True)):
        data = [row | {"mean_ms_limited": of_metric, "client_limited": of_point} for row in rows(factor(2))]
        assert ("the clients were the limit" in judged({"name": "greater"} | AB, data).reason) is says


def test_operations_that_failed_are_told_with_the_verdict():
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


@pytest.mark.parametrize("rule, metric, limits, verdict, words", [
    ({"name": "greater"}, "mean_ms", "b", REPLICATED, "at least the measured 2 times; the whole interval lies above 1"),
    ({"name": "greater", "margin": 3}, "mean_ms", "a", NOT_REPLICATED, "at most the measured 2 times; the claim needs a value above 3 times; the whole"),
    ({"name": "greater", "margin": 3}, "mean_ms", "b", NOT_TESTABLE, "at least the measured 2 times, which does"),
    ({"name": "greater"}, "rate_per_s", "a", REPLICATED, "at least the measured 2 times"),
    ({"name": "greater", "margin": 3}, "rate_per_s", "b", NOT_REPLICATED, "at most the measured 2 times"),
    ({"name": "ratio_between", "high": 2.5}, "mean_ms", "a", REPLICATED, "at most the measured 2 times"),
    ({"name": "equal_within", "margin": 1.5}, "mean_ms", "b", NOT_REPLICATED, "at least the measured 2 times"),
    ({"name": "equal_within", "margin": 1.5}, "mean_ms", "a", NOT_TESTABLE, "at most the measured 2 times, which does not decide"),
    ({"name": "greater"}, "mean_ms", "ab", NOT_TESTABLE, "the clients were the limit in every setting"),
    ({"name": "greater"}, "share", "b", NOT_TESTABLE, "the clients were the limit in every setting"),
    # what a system does while they load it may be shorter for clients that are too slow
    ({"name": "greater", "margin": 3}, "join_s", "a", NOT_TESTABLE, "the clients were the limit in every setting"),
    ({"name": "greater"}, "stream_mb_per_s", "a", NOT_TESTABLE, "the clients were the limit in every setting"),
])
def test_a_limited_arm_still_bounds_the_answer_and_decides_where_the_bound_does(rule, metric, limits, verdict, words):
    """Clients that are the limit make a time too long and a rate too low."""
    data = [row | {metric: row["mean_ms"], "client_limited": int(row["system"] in limits)} for row in rows(factor(2))]
    claim = {"id": "x", "metric": metric, "rule": rule | AB}
    found = decide(claim, data, PARAMETERS)
    assert found.verdict == verdict and words in found.reason
    assert (found.interval is None) == (verdict == NOT_TESTABLE)


@pytest.mark.parametrize("repeats, ratio, verdict", [(1, 5, OPEN), (2, 5, OPEN), (3, 5, OPEN), (2, 0.5, NOT_TESTABLE)])
def test_few_bounds_that_more_of_their_kind_would_decide_leave_a_claim_open(repeats, ratio, verdict):
    """So that further repeats are asked for."""
    data = [row | {"client_limited": int(row["system"] == "b")} for row in rows(factor(ratio), repeats)]
    assert judged({"name": "greater"} | AB, data).verdict == verdict


@pytest.mark.parametrize("name, limit, verdict", [("below", 200, REPLICATED), ("below", 1, NOT_TESTABLE),
                                                  ("above", 200, NOT_REPLICATED), ("above", 1, NOT_TESTABLE)])
def test_a_limited_time_is_at_most_what_was_measured(name, limit, verdict):
    data = [row | {"client_limited": 1} for row in rows(factor(2))]
    assert judged({"name": name, "value": limit, "of": {"system": "a"}}, data).verdict == verdict


def test_a_limited_setting_beside_others_is_left_out_and_bounds_nothing():
    found = judged({"name": "greater", "margin": 5} | AB,
                   rows(lambda s, c, r: 9.0 if (s, c) == ("b", 50) else c, limited=(50,)))
    assert found.verdict == NOT_REPLICATED and "at most" not in found.reason and "left out" in found.reason


def test_a_repeat_that_lacks_a_value_is_left_out():
    data = rows(lambda s, c, r: 8.0 if c == 50 and s == "a" else 1.0)
    for row in data:
        if (row["repeat"], row["clients"], row["system"]) == (2, 50, "b"):
            row["mean_ms"] = math.nan
    found = judged({"name": "greater"} | AB, data).interval
    assert (found.n, found.high) == (5, pytest.approx(2))
    for row in data:
        row["mean_ms"] = math.nan
    assert judged({"name": "greater"} | AB, data).verdict == NOT_TESTABLE


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


@pytest.mark.parametrize("rule, verdict, n", [({"name": "always", "high": 1}, OPEN, 6), ({"name": "always", "high": 0.5},
                                              NOT_REPLICATED, 40), ({"name": "sometimes", "low": 2}, OPEN, 6)])
def test_repeats_with_a_part_of_the_points_show_that_something_occurs_and_never_that_nothing_does(rule, verdict, n):
    data = [row for row in rows(lambda *_: 1.0, 40) if row["repeat"] <= 6 or row["clients"] == 1]
    found = judged(rule, data)
    assert (found.verdict, found.interval.n) == (verdict, n)


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


def test_what_a_symmetric_claim_takes_for_granted_is_said():
    found = judged({"name": "greater", "symmetric": True} | AB, rows(factor(2)))
    assert found.verdict == REPLICATED and "log ratios are taken to be symmetric" in found.reason


@pytest.mark.parametrize("ratio, verdict, words", [
    (1.0, REPLICATED, "the whole interval lies between"), (1.1, REPLICATED, "a difference, 1.100 to 1.100 times, and equal"),
    (1.5, NOT_REPLICATED, "different by 1.5 to 1.5 times"), (None, OPEN, "which may be within the margin or beyond")])
def test_a_claim_of_equality_says_the_difference(ratio, verdict, words):
    value = factor(ratio) if ratio else lambda s, c, r: c * (1.1 + r / 30 if s == "a" else 1.0)
    found = judged({"name": "equal_within", "margin": 1.2} | AB, rows(value))
    assert found.verdict == verdict and words in found.reason


@pytest.mark.parametrize("n, tendency", [(2, None), (3, 0.75), (4, 0.875), (5, 0.9375)])
def test_what_is_open_has_a_tendency_with_its_level(n, tendency):
    found = judged({"name": "greater"} | AB, rows(factor(2), n))
    assert found.verdict == OPEN and found.interval.n == n
    assert found.tendency == (tendency and {"verdict": REPLICATED, "level": tendency})
    assert judged({"name": "greater"} | AB, rows(factor(2), 6)).tendency is None


def test_that_points_have_no_value_is_told_with_the_verdict():
    """Such as what a benchmark was too fast to tell."""
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


@pytest.mark.parametrize("rule, words", [
    ({"name": "greater", "where": {"clients": 70}}, "quick profile measured no point with clients 70"),
    ({"name": "greater", "where": {"clients": {"at_least": 60}}}, "no point with clients at least 60"),
    ({"name": "crosses_near", "along": "clients", "at": 70, "within": 10}, "only from 1 to 50"),
])
def test_what_the_run_did_not_measure_is_no_verdict(rule, words):
    found = judged(AB | rule, rows(factor(2)))
    assert found.verdict == NOT_RUN and words in found.reason and found.interval is None


def test_what_no_place_like_this_can_show_is_not_testable_here():
    found = judged({"name": "not_testable", "reason": "one core only"}, rows(factor(2)))
    assert (found.verdict, found.reason, found.interval) == (NOT_TESTABLE, "one core only", None)


@pytest.mark.parametrize("want, known", [("db2", "db5"), ("SST", "IST"), ("standby_replay", "standby"),
                                         ("standby", "standby_replay")])
def test_a_name_with_a_number_an_abbreviation_and_a_word_more_are_not_taken_for_others(want, known):
    found = [row | {"system": known} for row in rows(factor(2))]
    rule = {"name": "below", "value": 3, "where": {"system": want}}
    assert judged(rule, found).reason == f"the quick profile measured no point with system {want}"


def test_a_ratio_of_nothing_is_not_testable():
    assert judged({"name": "greater"} | AB, rows(lambda *_: 0.0)).verdict == NOT_TESTABLE


@pytest.mark.parametrize("rule, words", [
    ({"of": {"sytem": "a"}, "than": {"sytem": "b"}}, "did you mean 'system'"),
    ({"where": {"ops": "read"}}, "rule.where.ops"),
    ({"where": {"op": "raed"}}, "did you mean 'read'"),
    ({"name": "grows_slower", "along": "client"}, "did you mean 'clients'"),
])
def test_a_claim_on_what_does_not_exist_is_refused(rule, words):
    with pytest.raises(InputError, match=words):
        judged({"name": "greater"} | AB | rule, rows(factor(2)))


def test_what_the_full_profile_has_is_no_slip_of_the_pen_where_it_was_not_measured():
    claim = {"id": "one", "metric": "ms", "rule": {"name": "always", "low": 1, "where": {"op": "reads"}}}
    found = [{"repeat": 1, "op": "read", "ms": 1.0}]
    with pytest.raises(InputError, match="did you mean 'read'"):
        decide(claim, found, ["op"])
    outcome = decide(claim, found, ["op"], known={"reads"})
    assert (outcome.verdict, outcome.reason) == (NOT_RUN, "the quick profile measured no point with op reads")


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


@pytest.mark.parametrize("bounds, verdict", [
    ({"low": 1}, REPLICATED), ({"high": 1}, REPLICATED), ({"low": 0.5, "high": 2}, REPLICATED),
    ({"high": 0.9}, NOT_REPLICATED), ({"low": 1.1}, NOT_REPLICATED)])
def test_every_point_lies_where_a_claim_of_all_says(bounds, verdict):
    assert judged({"name": "always", "rate": 0.4} | bounds, rows(lambda *_: 1.0)).verdict == verdict


def test_one_point_against_a_claim_of_all_refutes_it_however_many_others_there_are():
    rule = {"name": "always", "low": 1, "unit": "of all"}
    found = judged(rule, rows(lambda s, c, r: 0.99 if (s, c, r) == ("b", 10, 7) else 1.0, 9))
    assert (found.verdict, found.interval.value) == (NOT_REPLICATED, 1)
    assert found.reason == "1 of 9 repeats had a point that is not at least 1 of all"
    assert judged(rule, rows(lambda *_: 0.5, 1)).verdict == NOT_REPLICATED


@pytest.mark.parametrize("rate, n", [(0.4, 6), (0.25, 11), (0.1, 29), (0.05, 59)])
@pytest.mark.parametrize("name, verdict, level", [("always", REPLICATED, 0), ("sometimes", NOT_REPLICATED, 1)])
def test_what_never_occurs_is_decided_once_so_many_repeats_would_have_shown_it(name, verdict, level, rate, n):
    rule = {"name": name, "low": 1 if level else 0, "rate": rate, "where": {"clients": 1}}
    data = rows(lambda *_: 0.0, n)
    found = judged(rule, data)
    assert found.verdict == verdict and f"a share {rate} of all repeats" in found.reason
    found = judged(rule, [row for row in data if row["repeat"] < n])
    assert found.verdict == OPEN and f"a verdict needs {n} repeats for a share of {rate}" in found.reason
    assert found.repeats_needed == next(look for look in LOOKS if look >= n)
    assert found.tendency == {"verdict": verdict, "level": 0.95 if n > 6 else 0.9375}
    assert judged(rule, data[:2]).tendency is None


@pytest.mark.parametrize("name, verdict, level", [("always", REPLICATED, 0), ("sometimes", NOT_REPLICATED, 1)])
def test_where_each_point_is_a_try_points_are_counted(name, verdict, level):
    """Six points a repeat: ten repeats are sixty tries, of which a share of one in twenty would have been seen."""
    rule = {"name": name, "low": 1 if level else 0, "rate": 0.05, "per": "point"}
    found = judged(rule, rows(lambda *_: 0.0, 10))
    assert found.verdict == verdict and "60 points" in found.reason and "a share 0.05 of all points" in found.reason
    assert found.interval.n == 10       # repeats, which is what readers are told
    found = judged(rule, rows(lambda *_: 0.0, 9))
    assert found.verdict == OPEN and "a verdict needs 59 points" in found.reason and found.repeats_needed == 12
    assert judged(rule | {"per": "repeat"}, rows(lambda *_: 0.0, 10)).verdict == OPEN
    once = judged(rule, rows(lambda s, c, r: float(level or -1) if (s, c, r) == ("b", 10, 3) else 0.0, 10))
    assert once.verdict == (NOT_REPLICATED if name == "always" else REPLICATED)


@pytest.mark.parametrize("rule, without, with_them", [
    ({"name": "always", "high": 2, "rate": 0.4}, REPLICATED, NOT_REPLICATED),
    ({"name": "sometimes", "low": 9, "rate": 0.4}, NOT_REPLICATED, REPLICATED)])
def test_points_limited_by_the_clients_are_in_no_claim_of_all_or_some(rule, without, with_them):
    def time(system, clients, _):
        return 9.0 if system == "a" and clients == 50 else 1.0

    assert judged(rule, rows(time)).verdict == with_them
    found = judged(rule, limited_in(range(1, 99), rows(time)))
    assert found.verdict == without
    assert found.reason.endswith("; points limited by the clients are left out (6)")
    rare = limited_in({5}, rows(lambda s, c, r: time(s, c, r) if r == 5 else 1.0, 9))
    found = judged(rule, rare)
    assert found.verdict == without and "8 repeats" in found.reason, "a repeat without a point shows only what it has"
    assert judged(rule, limited_in({4}, rare)).verdict == with_them


SOMETIMES = {"name": "sometimes", "low": 1}


def seen(where, repeats):
    """A metric that is 1 in the points `where(system, clients, repeat)`, else 0."""
    return rows(lambda s, c, r: float(where(s, c, r)), repeats)


@pytest.mark.parametrize("repeats", [1, 2, 3, 10])
def test_one_point_makes_a_claim_of_some_however_many_others_there_are(repeats):
    found = judged(SOMETIMES, seen(lambda s, c, r: (s, c, r) == ("b", 10, 1), repeats))
    assert (found.verdict, found.interval.value) == (REPLICATED, 1 / repeats)
    assert (found.unit, found.interval.n) == ("of all repeats", repeats)
    assert found.reason.startswith("1 of ") and f"1 of {6 * repeats} points" in found.reason


def test_the_share_that_may_still_be_is_told_with_a_claim_of_some():
    found = judged(SOMETIMES | {"unit": "files"}, seen(lambda *_: False, 10))
    assert (found.verdict, found.interval.value, found.interval.low) == (OPEN, 0, 0)
    assert found.interval.high == pytest.approx(1 - 0.05 ** 0.1, abs=1e-6)     # what 10 repeats can tell
    assert found.reason.startswith("none of 60 points in 10 repeats is at least 1 files, which may occur in a "
                                   "share of up to 0.26 of all repeats")


def test_a_claim_of_some_is_about_points_and_not_about_the_middle_of_them():
    """Four of ten runs have a median of 0."""
    data = seen(lambda s, c, r: r <= 4, 10)
    assert judged(SOMETIMES, data).verdict == REPLICATED
    assert judged({"name": "above", "value": 0}, data).verdict == OPEN
    assert judged(SOMETIMES | {"where": {"system": "a", "clients": 1}}, data).interval.value == 0.4
    assert judged({"name": "sometimes", "high": 0}, data).interval.value == 0.6


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


@pytest.mark.parametrize("seeks, verdict, words", [
    ((9, 10, 11), REPLICATED, "above"), ((1, 1.2, 9), NOT_TESTABLE,
     "this disk does not seek (seek_ratio is 1.2; the claim needs at least 4)"),
    ((None, math.nan, None), NOT_RUN, "needs seek_ratio, which was not measured")])
def test_where_a_need_is_unmet_the_claim_is_not_judged_and_the_value_is_still_shown(seeks, verdict, words):
    data = [row | {"seek_ratio": seeks[row["repeat"] % 3]} for row in rows(factor(2))]
    claim = {"id": "x", "metric": "mean_ms", "rule": {"name": "greater"} | AB, "needs": NEEDS}
    found = decide(claim, data, PARAMETERS)
    assert found.verdict == verdict and words in found.reason
    assert found.interval.value == pytest.approx(2)


def test_that_the_place_lacks_something_comes_before_what_the_profile_lacks():
    data = [row | {"seek_ratio": 1.0} for row in rows(factor(2))]
    rule = {"name": "greater", "where": {"clients": 70}} | AB
    found = decide({"id": "x", "metric": "mean_ms", "rule": rule, "needs": NEEDS}, data, PARAMETERS)
    assert (found.verdict, found.interval) == (NOT_TESTABLE, None) and "does not seek" in found.reason

"""Verdicts where the clients were the limit: such a repeat is a bound, or its setting is left out."""

import math

import pytest
from made_up_points import AB, PARAMETERS, factor, growing, judged, rows

from labbook.claims.decisions import NOT_REPLICATED, NOT_TESTABLE, OPEN, REPLICATED
from labbook.claims.looks import LOOKS
from labbook.claims.rules import decide


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
    for of_metric, of_point, limited in ((0, 1, False), (1, 0, True), (None, 1, True)):
        data = [row | {"mean_ms_limited": of_metric, "client_limited": of_point} for row in rows(factor(2))]
        assert ("the clients were the limit" in judged({"name": "greater"} | AB, data).reason) is limited


@pytest.mark.parametrize("rule, metric, limits, verdict, reason", [
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
def test_a_limited_arm_still_bounds_the_answer_and_decides_where_the_bound_does(rule, metric, limits, verdict, reason):
    """Clients that are the limit make a time too long and a rate too low."""
    data = [row | {metric: row["mean_ms"], "client_limited": int(row["system"] in limits)} for row in rows(factor(2))]
    claim = {"id": "x", "metric": metric, "rule": rule | AB}
    found = decide(claim, data, PARAMETERS)
    assert found.verdict == verdict and reason in found.reason
    assert (found.interval is None) == (verdict == NOT_TESTABLE)


@pytest.mark.parametrize("repeats, ratio, verdict", [(1, 5, OPEN), (2, 5, OPEN), (3, 5, OPEN), (2, 0.5, NOT_TESTABLE)])
def test_few_bounds_that_more_of_their_kind_would_decide_leave_a_claim_open(repeats, ratio, verdict):
    """So that further repeats are asked for."""
    data = [row | {"client_limited": int(row["system"] == "b")} for row in rows(factor(ratio), repeats)]
    assert judged({"name": "greater"} | AB, data).verdict == verdict


@pytest.mark.parametrize("repeats, needed", [(1, LOOKS[0]), (2, LOOKS[0]), (3, None), (6, None)])
def test_what_the_first_repeats_cannot_test_may_be_tested_by_further_ones(repeats, needed):
    """Most of the first three tell whether the clients limit a setting."""
    by_sight = {"name": "sometimes", "low": 9, "of": {"system": "a"}}
    for rule, data in (({"name": "greater"} | AB, rows(factor(0.5), repeats)), (by_sight, rows(factor(2), repeats))):
        found = judged(rule, [row | {"client_limited": 1} for row in data])
        assert (found.verdict, found.repeats_needed) == (NOT_TESTABLE, needed)


@pytest.mark.parametrize("repeats, needed", [(1, LOOKS[0]), (3, None)])
def test_a_curve_of_which_the_clients_limit_all_but_an_end_may_be_tested_by_further_repeats(repeats, needed):
    data = limited_in(range(1, 7), rows(factor(2), repeats, clients=(1, 50)))
    found = judged({"name": "grows_with", "along": "clients", "of": {"system": "a"}}, data)
    assert (found.verdict, found.repeats_needed) == (NOT_TESTABLE, needed)


def test_repeats_of_one_arm_alone_are_not_those_that_tell_what_a_claim_is_about():
    data = [row | {"client_limited": 1} for row in rows(factor(0.5), 6) if row["system"] == "a" or row["repeat"] == 1]
    assert judged({"name": "greater"} | AB, data).repeats_needed == LOOKS[0]


def test_a_place_that_lacks_what_a_claim_needs_shows_it_by_no_further_repeat():
    claim = {"id": "c", "metric": "mean_ms", "rule": {"name": "greater"} | AB,
             "needs": [{"metric": "cores", "at_least": 4, "otherwise": "the cores are too few"}]}
    data = [row | {"client_limited": 1, "cores": 2} for row in rows(factor(2), 1)]
    found = decide(claim, data, PARAMETERS)
    assert (found.verdict, found.repeats_needed) == (NOT_TESTABLE, None)


@pytest.mark.parametrize("name, limit, verdict", [("below", 200, REPLICATED), ("below", 1, NOT_TESTABLE),
                                                  ("above", 200, NOT_REPLICATED), ("above", 1, NOT_TESTABLE)])
def test_a_limited_time_is_at_most_what_was_measured(name, limit, verdict):
    data = [row | {"client_limited": 1} for row in rows(factor(2))]
    assert judged({"name": name, "value": limit, "of": {"system": "a"}}, data).verdict == verdict


def test_a_limited_setting_beside_others_is_left_out_and_bounds_nothing():
    found = judged({"name": "greater", "margin": 5} | AB,
                   rows(lambda s, c, r: 9.0 if (s, c) == ("b", 50) else c, limited=(50,)))
    assert found.verdict == NOT_REPLICATED and "at most" not in found.reason and "left out" in found.reason


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


@pytest.mark.parametrize("rule, verdict", [({"name": "always", "high": 2}, NOT_REPLICATED),
                                           ({"name": "sometimes", "low": 9}, REPLICATED)])
def test_one_point_decides_by_sight_though_its_setting_was_limited_in_the_first_repeats(rule, verdict):
    data = limited_in({1, 2}, rows(lambda s, c, r: 9.0 if (s, c, r) == ("a", 50, 30) else 1.0, 30))
    assert judged(rule, data).verdict == verdict


def test_a_setting_limited_in_some_repeats_alone_makes_these_no_full_tries():
    data = rows(lambda *_: 1.0, 31)
    for limited, n in (({1, 2}, 29), ({1, 2, 3}, 28)):
        found = judged({"name": "always", "high": 2}, limited_in(limited, data))
        assert (found.verdict, found.interval.n) == (REPLICATED if n == 29 else OPEN, n)
        assert found.reason.endswith(f"; points limited by the clients are left out ({len(limited)})")

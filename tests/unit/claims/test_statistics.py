"""Intervals keep their word: an A/A comparison finds a difference no more often than stated."""

import math
import random
import statistics as plain

import pytest
from simulated_repeats import NOISE

from labbook.claims import looks, rules
from labbook.claims.looks import LEAN
from labbook.claims.statistics import (
    bend,
    coverage,
    exponent_between,
    median_interval,
    ratio,
    share_interval,
    slope,
)
from labbook.errors import InputError


def test_level_is_honest_for_few_repeats():
    levels = {n: median_interval(range(n)).level for n in (1, 2, 3, 5, 6, 20)}
    assert levels == {1: 0, 2: 0.5, 3: 0.75, 5: 0.9375, 6: 0.95, 20: 0.95}
    assert (median_interval(range(5)).low, median_interval(range(5)).high) == (0, 4)


def test_more_repeats_narrow_the_interval():
    found = median_interval(range(100))
    assert (found.low, found.high) == (39, 60) and coverage(100, 39) >= 0.95 > coverage(100, 40)


def test_arms_are_paired_by_block():
    of, than = {1: 20.0, 2: 400.0, 3: 6.0, 9: 1.0}, {1: 10.0, 2: 200.0, 3: 3.0, 4: 7.0}
    assert ratio(of, than).value == ratio(of, than).low == ratio(of, than).high == 2
    assert ratio(of, than).n == 3


def test_a_wild_point_does_not_turn_the_slope():
    assert slope([1, 2, 3, 4, 5], [1, 2, 3, 4, 500]) == pytest.approx(1, abs=0.6)


def block(draw, effect=1.0):
    """Two arms of one repeat: heavy-tailed rows, what the block does to both, what the bring-up
    of each arm does to it alone."""
    shared = math.exp(draw.gauss(0, 0.5))
    means = []
    for factor in (1.0, effect):
        own = math.exp(draw.gauss(0, 0.1))
        rows = [math.exp(draw.gauss(0, 1)) * (20 if draw.random() < 0.02 else 1) for _ in range(30)]
        means.append(factor * shared * own * plain.fmean(rows))
    return means


def rows(draw, repeats, effect=1.0):
    """A summary of the two arms."""
    for repeat in range(1, repeats + 1):
        for system, mean in zip("ab", block(draw, effect)):
            yield {"system": system, "repeat": repeat, "mean_ms": mean}


@pytest.mark.parametrize("xs", [[3], [3, 3, 3], []])
def test_one_value_has_no_slope(xs):
    with pytest.raises(InputError, match="two different values of x"):
        slope(xs, xs)


RUNS = 1500


def excluded(values) -> bool:
    found = median_interval(values)
    return found.low > 1 or found.high < 1


@pytest.mark.parametrize("repeats", [2, 3, 5, 6, 9, 15])
def test_two_equal_arms_differ_no_more_often_than_stated(repeats):
    draw = random.Random(repeats)
    found = [[a / b for a, b in (block(draw) for _ in range(repeats))] for _ in range(RUNS)]
    rate = sum(map(excluded, found)) / RUNS
    stated = 1 - median_interval(found[0]).level
    assert rate <= stated + 3 * math.sqrt(stated * (1 - stated) / RUNS)
    if repeats < 6:     # nothing is held back either: the level is the real one, not a guess
        assert rate >= stated - 3 * math.sqrt(stated * (1 - stated) / RUNS)


def test_an_interval_from_the_rows_of_one_run_would_not_have_kept_its_word():
    """The noise of these tests is no easy one: what a bring-up does to all its rows alike makes
    equal arms differ, and rows alone cannot show it."""
    draw, wrong = random.Random(7), 0
    for _ in range(200):
        logs = [[own + draw.gauss(0, 0.3) for _ in range(400)]
                for own in (draw.gauss(0, 0.1), draw.gauss(0, 0.1))]
        error = math.sqrt(sum(plain.variance(arm) / len(arm) for arm in logs))
        wrong += abs(plain.fmean(logs[0]) - plain.fmean(logs[1])) > 1.96 * error
    assert wrong / 200 > 0.5


CLAIM = {"id": "c", "metric": "mean_ms", "rule": {
    "name": "greater", "of": {"system": "b"}, "than": {"system": "a"}, "margin": 1.0}}


@pytest.mark.parametrize("repeats", [2, 3, 5, 6, 12])
def test_a_rule_calls_equal_arms_different_no_more_often_than_stated(repeats):
    draw = random.Random(100 + repeats)
    found = [rules.decide(CLAIM, list(rows(draw, repeats)), ["system"]) for _ in range(RUNS // 2)]
    decided = sum(f.verdict != rules.OPEN for f in found) / len(found)
    stated = looks.spent(repeats)
    assert decided <= stated + 3 * math.sqrt(stated * (1 - stated) / len(found))
    pointed = sum(f.verdict != rules.OPEN or f.tendency is not None for f in found) / len(found)
    assert pointed <= 0.25 + 3 * math.sqrt(0.25 * 0.75 / len(found))


@pytest.mark.parametrize("repeats", [6, 12])
@pytest.mark.parametrize("effect, wrong", [(1.0, rules.REPLICATED), (1.4, rules.NOT_REPLICATED),
                                           (1.9, rules.REPLICATED)])
def test_a_ratio_is_placed_wrongly_no_more_often_than_stated(repeats, effect, wrong):
    claim = CLAIM | {"rule": {"name": "ratio_between", "of": {"system": "b"},
                              "than": {"system": "a"}, "low": 1.15, "high": 1.7}}
    draw = random.Random(1000 * repeats + int(10 * effect))
    found = [rules.decide(claim, list(rows(draw, repeats, effect)), ["system"])
             for _ in range(RUNS // 4)]
    assert sum(f.verdict == wrong for f in found) / len(found) <= looks.spent(repeats)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("n", [1, 3, 10, 40])
def test_the_interval_of_a_share_holds_it_as_often_as_stated(share, n):
    """By all outcomes there are, each with its chance."""
    probability = 0.0
    for k in range(n + 1):
        found = share_interval(k, n)
        assert 0 <= found.low <= found.value == k / n <= found.high <= 1 and (found.n, found.level) == (n, 0.95)
        probability += (found.low <= share <= found.high) * math.comb(n, k) * share**k * (1 - share)**(n - k)
    assert probability >= 0.95


def test_the_interval_of_a_share_is_the_known_one():
    found = share_interval(4, 10)       # Clopper and Pearson's
    assert (found.low, found.high) == pytest.approx((0.12155, 0.73762), abs=1e-5)
    assert share_interval(10, 10).high == 1 and share_interval(0, 10).low == 0
    found = share_interval(600, 2000)
    assert (found.low, found.high) == pytest.approx((0.27997, 0.32062), abs=1e-5)


@pytest.mark.parametrize("repeats, rate", [(6, 0.4), (11, 0.25), (29, 0.1)])
@pytest.mark.parametrize("name, wrong", [("sometimes", rules.NOT_REPLICATED), ("always", rules.REPLICATED)])
def test_what_occurs_at_the_stated_rate_is_missed_no_more_often_than_stated(repeats, rate, name, wrong):
    """In some repeats the metric is 1; a claim of some says so, one of all says that it never is."""
    draw, missed = random.Random(repeats), 0
    rule = {"name": name, "rate": rate} | ({"low": 1} if name == "sometimes" else {"high": 0})
    claim = {"id": "s", "metric": "seen", "rule": rule}
    for _ in range(RUNS):
        data = [{"system": "a", "repeat": r, "seen": float(draw.random() < rate)} for r in range(1, repeats + 1)]
        missed += rules.decide(claim, data, ["system"]).verdict == wrong
    assert missed / RUNS <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / RUNS)
    none = [row | {"seen": 0.0} for row in data]
    assert rules.decide(claim, none, ["system"]).verdict == wrong


def test_a_real_difference_is_found():
    draw = random.Random(5)
    found = [rules.decide(CLAIM, list(rows(draw, 6, effect=8.0)), ["system"]) for _ in range(200)]
    assert sum(f.verdict == rules.REPLICATED for f in found) > 190
    found = [rules.decide(CLAIM, list(rows(draw, 6, effect=1 / 8)), ["system"]) for _ in range(200)]
    assert sum(f.verdict == rules.NOT_REPLICATED for f in found) > 190


def bent(xs, ys):
    factors = bend(xs, ys)
    return lambda exponent: sum(factor * y for factor, y in zip(factors(exponent), ys))


@pytest.mark.parametrize("xs", [(2, 8, 32), (1, 2, 4, 8), (1, 16, 24, 32)])
def test_a_curve_beside_a_constant_is_bent_as_its_exponent_says(xs):
    for exponent in (0.5, 1.0, 2.0):
        of = bent(xs, [20 + 3 * x**exponent for x in xs])
        assert of(exponent) == pytest.approx(0, abs=1e-9)
        assert of(exponent - 0.1) > 0 > of(exponent + 0.1)


@pytest.mark.parametrize("low, high", [(0.8, 1.25), (-math.inf, 1), (1, math.inf), (-math.inf, math.inf), (3, 9)])
def test_a_curve_beside_a_constant_has_its_exponent_whatever_the_bounds(low, high):
    xs = (2, 8, 32)
    for exponent in (0.5, 1.1, 2.0):
        found = exponent_between(bent(xs, [20 + 3 * x**exponent for x in xs]), low, high)
        assert found == pytest.approx(exponent, abs=1e-3)


def test_a_curve_that_no_exponent_fits_is_beyond_either_bound():
    xs = (1, 2, 4)
    for ys, exponent in (((1, 9, 8), 0), ((4, 1, 8), 8), ((9, 8, 1), 0), ((9, 2, 1), 8)):
        assert exponent_between(bent(xs, ys), 0.8, 1.25) == exponent
    for bad in ((2, 2, 8), (0, 2, 8)):
        with pytest.raises(InputError, match="x"):
            bend(bad, (1, 2, 3))


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("size", [1 / 3, 1.0])
@pytest.mark.parametrize("xs, constant", [((1, 8, 32), 30), ((1, 2, 3), 3), ((1, 2, 4, 8), 3)])
def test_at_the_true_exponent_repeats_are_bent_to_either_side(xs, constant, size, noise):
    """Few values lean by noise that is skewed, no more than the looks allow for."""
    draw, runs = random.Random(7), 2000
    usual = [constant + x**1.25 for x in xs]
    factors = bend(xs, usual)(1.25)
    above = sum(sum(f * y * math.exp(size * NOISE[noise](draw)) for f, y in zip(factors, usual)) > 0
                for _ in range(runs))
    assert abs(above / runs - 0.5) <= LEAN + 3.1 * 0.5 / math.sqrt(runs)

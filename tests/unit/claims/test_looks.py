"""Looks spend 5 % of error, exactly as stated, and stop early where it is clear."""

import math
import random
from itertools import product

import pytest
from made_up_points import AB, rows
from made_up_points import judged as by_rule

from labbook.claims import looks
from labbook.claims.bounds import NO_NUMBER
from labbook.claims.decisions import REPLICATED, expected_wrong
from labbook.claims.looks import LEAN, LOOKS, OUTLYING, OUTLYING_LEANING, OUTLYING_WALSH

CHANCES = (0.65, 0.75, 0.85, 0.95, 0.999)       # that a repeat lies above a bound


def tables(looks_left=LOOKS, walk=None, chosen=(), error=0.0, before=0, chance=0.5):
    """All tables of outlying values that spend at most 5 % where a repeat lies above the true value with this
    chance; at the last look as many as can be."""
    if not looks_left:
        yield chosen
        return
    look = looks_left[0]
    walk = looks._walked(walk or {0: 1.0}, look - before, chance)
    fit = []
    for k in range(-1, look // 2):
        outside = sum(p for above, p in walk.items() if not k < above < look - k)
        if error + outside > 0.05:
            break
        fit.append((k, outside))
    for k, outside in fit if looks_left[1:] else fit[-1:]:
        held = {above: p for above, p in walk.items() if k < above < look - k}
        yield from tables(looks_left[1:], held, (*chosen, k), error + outside, look, chance)


def repeats_on_average(table) -> float:
    """Repeats until a claim is decided, 60 where it is not, averaged over CHANCES."""
    total = 0.0
    for chance in CHANCES:
        stops = [sum(one) for one in looks.sign_stops(table, chance)]
        total += sum(look * stop for look, stop in zip(LOOKS, stops)) + LOOKS[-1] * (1 - sum(stops))
    return total / len(CHANCES)


def test_the_table_of_signs_is_the_best_of_all_that_spend_five_percent():
    """9 repeats decide nothing that 6 did not: there 0 and none are the same."""
    best = min(tables(), key=lambda table: (round(repeats_on_average(table), 9), [-k for k in table]))
    assert best == OUTLYING
    assert sum(looks.sign_errors(OUTLYING)) == pytest.approx(0.0490, abs=5e-5)


def test_the_table_of_leaning_signs_spends_five_percent_whichever_way_they_lean():
    deciding = [table for table in tables(chance=0.5 + LEAN) if table[0] == 0]
    best = min(deciding, key=lambda table: (round(repeats_on_average(table), 9), [-k for k in table]))
    assert best == OUTLYING_LEANING
    assert all(sum(looks.sign_errors(OUTLYING_LEANING, 0.5 + lean)) <= 0.05 for lean in (-LEAN, 0, LEAN))


def test_the_error_of_signs_is_that_of_all_walks_there_are():
    walks = [[sum(steps[:look]) for look in LOOKS[:3]] for steps in product((0, 1), repeat=12)]
    for looked in (1, 2, 3):
        out = sum(any(not k < above < look - k for above, k, look in zip(walk[:looked], OUTLYING, LOOKS))
                  for walk in walks)
        assert looks.spent(LOOKS[looked - 1]) == pytest.approx(out / len(walks))
    assert looks.spent(5) == looks.spent(5, symmetric=True) == 0


def test_signed_ranks_spend_their_error_as_a_sum_over_the_looks():
    errors = looks.walsh_errors(OUTLYING_WALSH)
    assert errors[0] == 2 / 2**6 and sum(errors) <= 0.05
    assert looks.spent(100, symmetric=True) == pytest.approx(sum(errors)) == pytest.approx(0.0489, abs=5e-5)
    ranks = [sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product((0, 1), repeat=12)]
    assert errors[2] == pytest.approx(2 * sum(rank <= OUTLYING_WALSH[2] for rank in ranks) / len(ranks))


def test_below_the_first_look_there_is_no_interval():
    assert looks.interval([1.0] * 5) is None
    found = looks.interval([3.0, 1.0, 2.0, 6.0, 5.0, 4.0])
    assert (found.value, found.low, found.high, found.level, found.n) == (3.5, 1, 6, 0.95, 6)


def test_repeats_between_looks_change_no_interval_and_what_a_look_decided_stays():
    numbers = [2.0, 2.1, 2.2, 2.3, 2.4, 2.5]
    for more in range(20):
        found = looks.interval(numbers + [0.5] * more)
        assert found.low >= 2 and found.high <= 2.5


@pytest.mark.parametrize("repeats, apart, words", [
    (30, 30, "; the repeats drift, or the first differ by chance: the interval at 30 repeats has nothing in common with those before, and is left out"),
    (26, 0, "; the repeats drift, or the first differ by chance: the median of all 26 lies outside the interval that all looks share"), (6, 0, "")])
def test_that_repeats_drift_is_said_and_changes_no_verdict(repeats, apart, words):
    """A value of 3.09 stands beside an interval from 1.54 to 1.56."""
    data = rows(lambda s, c, r: (1.5 + r / 100 if r <= 6 else 3.09) if s == "a" else 1.0, repeats)
    found = by_rule({"name": "greater", "margin": 1.05} | AB, data)
    assert (found.verdict, found.interval.apart) == (REPLICATED, apart)
    assert (found.interval.low, found.interval.high) == pytest.approx((1.54 if words else 1.51, 1.56))
    assert found.reason == "the whole interval lies above 1.05 times" + words


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("noise", [lambda draw: draw.gauss(0, 1), lambda draw: math.tan(math.pi * (draw.random() - 0.5)),
                                   lambda draw: draw.choice((-1, 1)) * draw.expovariate(1)])
def test_whenever_one_stops_the_median_is_held_as_often_as_stated(noise, symmetric):
    draw, runs = random.Random(4), 250 if symmetric else 1000
    missed = 0
    for _ in range(runs):
        numbers = [math.exp(max(-500, min(500, noise(draw)))) for _ in range(LOOKS[-1])]
        found = looks.interval(numbers, symmetric)
        missed += not found.low <= 1 <= found.high
    assert missed / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_symmetric_numbers_are_placed_more_narrowly():
    draw = random.Random(1)
    numbers = [math.exp(draw.gauss(0, 1)) for _ in range(60)]
    of_signs, of_ranks = looks.interval(numbers), looks.interval(numbers, symmetric=True)
    assert of_ranks.high - of_ranks.low < of_signs.high - of_signs.low


@pytest.mark.parametrize("effect, look", [(1.0, 6), (0.12, 12), (0.1, 20), (0.07, 30), (0.053, 60), (0.03, None)])
def test_the_look_at_which_a_claim_is_expected_to_be_decided(effect, look):
    """The spread is 0.1 of a logarithm, the bound 1."""
    numbers = [math.exp(effect + 0.1 * z) for z in (-1, 0, 1)]
    assert looks.look_needed(numbers, 1, math.inf) == look
    assert looks.look_needed([1 / one for one in numbers], 1, math.inf) == look
    assert looks.look_needed(numbers[:1], 1, math.inf) is None
    assert looks.look_needed(numbers, -math.inf, 1) == look


def test_the_expected_look_comes_after_those_that_decided_nothing():
    numbers = [math.exp(0.065 + 0.1 * z) for z in (-1, 0, 1, -1, 0, 1, -1, 0, 1)]
    assert looks.look_needed(numbers, 1, math.inf) == 30
    assert looks.look_needed(numbers, 0.9, 1.25) == 12
    assert looks.look_needed(numbers, 1, math.inf, symmetric=True) == 20


def test_a_look_whose_interval_holds_an_earlier_ones_is_not_expected_to_decide():
    """At 9 repeats as many values may lie beyond the interval as at 6: none."""
    numbers = [.98, 1.2, 1.25, 1.3, 1.3, 1.35]
    assert looks.look_needed(numbers, 1, math.inf) == 12
    assert looks.look_needed([*numbers, 1.3, 1.3, 1.3], 1, math.inf) == 12
    assert looks.interval([*numbers, 1.3, 1.3, 1.3]).low == looks.interval(numbers).low == .98
    assert looks.look_needed(numbers, 1, math.inf, outlying=looks.OUTLYING_LEANING) == 20


@pytest.mark.parametrize("made_up", [1e-6, 1.07, 1e6])
def test_what_stands_for_a_number_that_is_lacking_makes_no_spread(made_up):
    numbers = [math.exp(0.065 + 0.1 * z) for z in (-1, 0, 1, -1, 0, 1, -1, 0, 1)]
    assert looks.look_needed([*numbers, made_up], 1, math.inf, bounds=[""] * 9 + [NO_NUMBER]) == 30
    assert looks.look_needed([numbers[0], made_up], 1, math.inf, bounds=["", NO_NUMBER]) is None


def judged(verdict, n, rule="greater", **more):
    return {"verdict": verdict, "n": n, "rule": {"name": rule, **more}}


@pytest.mark.parametrize("verdicts, wrong", [
    ([judged("replicated", 6), judged("open", 3), judged("open", 60)], 1 / 32 + 0.049),
    ([judged("not run", 0), judged("not testable here", 30)], 0),
    ([judged("replicated", 6, symmetric=True), judged("open", 60, symmetric=True)], 1 / 32 + 0.0489),
    ([judged("replicated", 6, "proportional")], 0.58**6 + 0.42**6),     # a repeat leans by 0.08
    ([judged("open", 60, "proportional")], 0.0495),
    ([judged("replicated", 29, "always"), judged("not replicated", 29, "sometimes")], 0.1),
    ([judged("not replicated", 29, "always"), judged("replicated", 29, "sometimes"), judged("open", 20, "always")], 0)])
def test_how_many_verdicts_are_expected_to_be_wrong(verdicts, wrong):
    assert expected_wrong(verdicts) == pytest.approx(wrong, abs=1e-4)

"""Every rule keeps its word: over all looks it decides wrongly at most as often as stated.

benchmarks/error_rates.py prints the table, with more runs and all looks.
"""

import pytest
from simulated_repeats import CASES, LAST_THREE, LIMITED_CASES, NOISE, most, wrong

from labbook.claims import looks
from labbook.claims.schema import RULES

RUNS, REPEATS = 150, 12


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("name", sorted({case[0]["name"] for case in CASES}))
def test_a_rule_decides_wrongly_no_more_often_than_stated(name, noise):
    for case in (case for case in CASES if case[0]["name"] == name):
        assert wrong(case, noise, REPEATS, RUNS) <= most(0.05, RUNS), case[0]


@pytest.mark.parametrize("name", sorted({case[0]["name"] for case in LIMITED_CASES}))
def test_repeats_that_are_bounds_decide_wrongly_no_more_often(name):
    """Every noise in one test: few of these runs decide at all."""
    for case in (case for case in LIMITED_CASES if case[0]["name"] == name):
        rate = sum(wrong(case, noise, REPEATS, RUNS // 2) for noise in NOISE) / len(NOISE)
        assert rate <= most(0.05, RUNS // 2 * len(NOISE)), case[0]


@pytest.mark.parametrize("noise", NOISE)
def test_an_exponent_beside_a_constant_is_judged_as_well_with_little_noise(noise):
    """A tenth in place of a third."""
    for case in (case for case in CASES if case[0]["name"] == "proportional"):
        assert wrong(case, noise, REPEATS, RUNS, 1 / 3) <= most(0.05, RUNS), case[0]


@pytest.mark.parametrize("noise", NOISE)
def test_an_exponent_beside_a_constant_is_unbiased_at_the_last_look(noise):
    """A bias shows where repeats are many."""
    for bound in (0.8, 1.2):
        case = next(case for case in CASES if case[0]["name"] == "proportional" and case[0].get("where") == LAST_THREE
                    and case[1](None, 2) == 3 + 2**bound)
        assert wrong(case, noise, looks.LOOKS[-1], RUNS) <= most(0.05, RUNS), bound


def test_every_rule_with_a_verdict_is_simulated():
    assert {case[0]["name"] for case in CASES} | {"not_testable"} == set(RULES)
    assert looks.spent(looks.LOOKS[-1]) <= 0.05 >= looks.spent(looks.LOOKS[-1], symmetric=True)

"""Every rule keeps its word: over all looks it decides wrongly at most as often as stated.

benchmarks/error_rates.py prints the table, with more runs and all looks.
"""

import pytest
from simulated_repeats import CASES, NOISE, most, wrong

from labbook.claims import looks
from labbook.claims.schema import RULES

RUNS, REPEATS = 150, 12


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("name", sorted({case[0]["name"] for case in CASES}))
def test_a_rule_decides_wrongly_no_more_often_than_stated(name, noise):
    for case in (case for case in CASES if case[0]["name"] == name):
        assert wrong(case, noise, REPEATS, RUNS) <= most(0.05, RUNS), case[0]


def test_every_rule_with_a_verdict_is_simulated():
    assert {case[0]["name"] for case in CASES} | {"not_testable"} == set(RULES)
    assert looks.spent(looks.LOOKS[-1]) <= 0.05 >= looks.spent(looks.LOOKS[-1], symmetric=True)

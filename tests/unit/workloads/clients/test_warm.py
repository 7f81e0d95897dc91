"""Warming until what requests cost no longer falls."""

import pytest

from labbook.workloads.clients.warm import until_stable


def rounds_of(*costs):
    left = iter(costs)
    return lambda: next(left)


def of(*costs):
    return rounds_of(*({"read": cost} for cost in costs))


@pytest.mark.parametrize("in_a_row, costs, rounds", [
    (1, (100, 50, 30, 29, 1), 4),
    (1, (100, 120, 1), 2),               # a rise is noise
    (2, (100, 99, 50, 49, 49, 1), 5),
    (1, (0, 0, 1), 2)])
def test_rounds_go_on_until_the_cost_no_longer_falls(in_a_row, costs, rounds):
    found = until_stable(of(*costs), in_a_row=in_a_row)
    assert found.stable and found.rounds == rounds and found.costs[-1] == {"read": costs[rounds - 1]}
    assert found.metrics == {"warmed_rounds": rounds, "warmed_seconds": found.seconds, "warmed_stable": 1.0}


def test_every_cost_has_to_be_stable():
    assert until_stable(rounds_of(*({"read": 9, "write": write} for write in (9, 5, 5)))).rounds == 3


def test_what_never_gets_stable_ends_by_rounds_and_by_seconds():
    found = until_stable(of(*(2.0 ** -n for n in range(99))), most_rounds=4)
    assert (found.rounds, found.stable) == (4, False)
    assert until_stable(of(1), most_seconds=0).rounds == 0
    assert not until_stable(of(), most_rounds=0).stable

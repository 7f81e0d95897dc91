"""Warming until a measure is stable."""

import pytest

from labbook.workloads.clients.warm import until_stable


def rounds_of(*values):
    left = iter(values)
    return lambda: next(left)


@pytest.mark.parametrize("values, rounds", [
    ((100, 50, 30, 29, 29, 99), 5),          # two small changes in a row
    ((100, 99, 50, 49, 49, 99), 5),          # one alone may be chance
    ((0, 0, 0, 99), 3),
    (({"read": 9, "write": 9}, {"read": 9, "write": 5}, {"read": 9, "write": 5}, {"read": 9, "write": 5}), 4)])
def test_rounds_go_on_until_two_changes_in_a_row_are_small(values, rounds):
    found = until_stable(rounds_of(*values))
    assert found.stable and found.rounds == rounds
    assert found.metrics == {"warm_rounds": rounds, "warm_seconds": found.seconds, "warm_stable": True}


def test_what_never_gets_stable_ends_by_rounds_and_by_seconds():
    found = until_stable(rounds_of(*(2 ** n for n in range(99))), most_rounds=4)
    assert (found.rounds, found.stable, found.last) == (4, False, {"measure": 8})
    assert until_stable(rounds_of(1), most_seconds=0).rounds == 0
    assert not until_stable(rounds_of(), most_rounds=0).stable

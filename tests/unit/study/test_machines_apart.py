"""A verdict on what several machines measured says where they differ."""

from types import SimpleNamespace

import pytest

from labbook.study import machines_apart

EPYC = {"id": "a", "cpu": "AMD EPYC", "cores": 2, "kernel": "6.18.1"}
XEON = {"id": "c", "cpu": "Intel Xeon", "cores": 4, "kernel": "6.18.1"}


def judge(rows):
    values = sorted(row["value"] for row in rows)
    middle = values[len(values) // 2]
    return SimpleNamespace(measured=middle, verdict="replicated" if middle > 1.5 else "not replicated",
                           ours=f"{middle:g} times")


def text_of(machines, values):
    rows = [{"repeat": repeat, "value": value} for repeat, value in enumerate(values, 1)]
    return machines_apart.words(judge(rows), rows, lambda row: machines[row["repeat"] - 1], judge,
                                {row["repeat"]: row["value"] for row in rows})


def test_nothing_is_reported_of_one_machine():
    assert text_of([EPYC] * 3, [2.0, 2.1, 1.2]) == ""


def test_a_verdict_that_holds_on_one_kind_of_machine_only_says_so():
    text = text_of([EPYC, XEON] * 2, [2.0, 1.0, 2.2, 1.1])
    assert text.startswith("kinds of machines disagree: AMD EPYC, 2 cores, Linux 6.18: replicated, 2.2 times; "
                           "Intel Xeon, 4 cores, Linux 6.18: not replicated, 1.1 times")


def test_kinds_that_agree_are_told_apart_without_an_alarm():
    assert text_of([EPYC, XEON], [2.0, 3.0]).startswith("by kind of machine: AMD EPYC")


def test_machines_of_one_kind_have_the_share_of_the_variance_between_them():
    text = text_of([EPYC, EPYC | {"id": "b"}] * 2, [2.0, 3.0, 2.0, 3.0])
    assert text == "2 machines, with medians from 2 to 3, which is 100 % of the repeats' variance"


@pytest.mark.parametrize("groups, share", [
    ([[1.0, 3.0], [1.0, 3.0]], 0.0),
    ([[1.0, 1.0], [2.0, 2.0]], 1.0),
    # Across the means 1.1 and 2.1: 1; inside: 4 * 0.01 / 2 = 0.02; two values a group. Apart lies 0.98 / 2 = 0.49.
    ([[1.0, 1.2], [2.0, 2.2]], 0.49 / 0.51),
    # The mean is 18 / 5, across the means 3/2 and 5: 2 * 2.1 ** 2 + 3 * 1.4 ** 2 = 14.7; inside: (0.5 + 2) / 3 = 5 / 6;
    # values a group: 5 - (4 + 9) / 5 = 2.4. Apart lies (14.7 - 5 / 6) / 2.4 = 104 / 18, beside 5 / 6 = 15 / 18.
    ([[1.0, 2.0], [4.0, 5.0, 6.0]], 104 / 119),
    ([[1.0], [2.0]], None),
    ([[1.0, 1.0], [1.0]], None),
])
def test_the_share_between_machines(groups, share):
    found = machines_apart.between(groups)
    assert found is None if share is None else found == pytest.approx(share)

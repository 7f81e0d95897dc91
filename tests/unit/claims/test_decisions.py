"""What is decided by what was seen in all, some or no points, and where an open claim points to."""

import pytest
from made_up_points import AB, factor, judged, rows

from labbook.claims.decisions import NOT_REPLICATED, OPEN, REPLICATED
from labbook.claims.looks import LOOKS


@pytest.mark.parametrize("n, tendency", [(2, None), (3, 0.75), (4, 0.875), (5, 0.9375)])
def test_what_is_open_has_a_tendency_with_its_level(n, tendency):
    found = judged({"name": "greater"} | AB, rows(factor(2), n))
    assert found.verdict == OPEN and found.interval.n == n
    assert found.tendency == (tendency and {"verdict": REPLICATED, "level": tendency})
    assert judged({"name": "greater"} | AB, rows(factor(2), 6)).tendency is None


@pytest.mark.parametrize("rule, verdict, n", [({"name": "always", "high": 1}, OPEN, 6), ({"name": "always", "high": 0.5},
                                              NOT_REPLICATED, 40), ({"name": "sometimes", "low": 2}, OPEN, 6)])
def test_repeats_with_a_part_of_the_points_show_that_something_occurs_and_never_that_nothing_does(rule, verdict, n):
    data = [row for row in rows(lambda *_: 1.0, 40) if row["repeat"] <= 6 or row["clients"] == 1]
    found = judged(rule, data)
    assert (found.verdict, found.interval.n) == (verdict, n)


@pytest.mark.parametrize("bounds, verdict", [
    ({"low": 1}, REPLICATED), ({"high": 1}, REPLICATED), ({"low": 0.5, "high": 2}, REPLICATED),
    ({"high": 0.9}, NOT_REPLICATED), ({"low": 1.1}, NOT_REPLICATED)])
def test_every_point_lies_where_a_claim_of_all_says(bounds, verdict):
    assert judged({"name": "always", "rate": 0.4} | bounds, rows(lambda *_: 1.0)).verdict == verdict


def test_one_point_against_a_claim_of_all_refutes_it_however_many_others_there_are():
    rule = {"name": "always", "low": 1, "unit": "of all"}
    found = judged(rule, rows(lambda s, c, r: 0.99 if (s, c, r) == ("b", 10, 7) else 1.0, 9))
    assert (found.verdict, found.unit) == (NOT_REPLICATED, "of all repeats")
    assert found.interval.value == pytest.approx(1 / 9), "how often: the median of all is what the claim wants"
    assert found.reason == "1 of 9 repeats had a point that is not at least 100 % of all"
    found = judged(rule, rows(lambda *_: 0.5, 1))
    assert (found.verdict, found.interval.value, found.unit) == (NOT_REPLICATED, 0.5, "of all")


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
    assert found.tendency == {"verdict": verdict, "level": pytest.approx(1 - (1 - rate)**(n - 1))}
    assert judged(rule, data[:2]).tendency is None


@pytest.mark.parametrize("name, verdict, level", [("always", REPLICATED, 0), ("sometimes", NOT_REPLICATED, 1)])
def test_where_each_point_is_a_try_points_are_counted(name, verdict, level):
    """Six points a repeat: ten repeats are sixty tries, of which a share of one in twenty would have been seen."""
    rule = {"name": name, "low": 1 if level else 0, "rate": 0.05, "per": "point"}
    found = judged(rule, rows(lambda *_: 0.0, 10))
    assert found.verdict == verdict and "60 points" in found.reason and "a share 0.05 of all points" in found.reason
    assert found.interval.n == 10       # repeats, which is what readers see
    found = judged(rule, rows(lambda *_: 0.0, 9))
    assert found.verdict == OPEN and "a verdict needs 59 points" in found.reason and found.repeats_needed == 12
    assert judged(rule | {"per": "repeat"}, rows(lambda *_: 0.0, 10)).verdict == OPEN
    once = judged(rule, rows(lambda s, c, r: float(level or -1) if (s, c, r) == ("b", 10, 3) else 0.0, 10))
    assert once.verdict == (NOT_REPLICATED if name == "always" else REPLICATED)


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


def test_the_share_that_may_still_be_is_reported_with_a_claim_of_some():
    found = judged(SOMETIMES | {"unit": "files"}, seen(lambda *_: False, 10))
    assert (found.verdict, found.interval.value, found.interval.low) == (OPEN, 0, 0)
    assert found.interval.high == pytest.approx(1 - 0.05 ** 0.1, abs=1e-6)     # what 10 repeats can show
    assert found.reason.startswith("none of 60 points in 10 repeats is at least 1 files, which may occur in a "
                                   "share of up to 0.26 of all repeats")


def test_a_claim_of_some_is_about_points_and_not_about_the_middle_of_them():
    """Four of ten runs have a median of 0."""
    data = seen(lambda s, c, r: r <= 4, 10)
    assert judged(SOMETIMES, data).verdict == REPLICATED
    assert judged({"name": "above", "value": 0}, data).verdict == OPEN
    assert judged(SOMETIMES | {"where": {"system": "a", "clients": 1}}, data).interval.value == 0.4
    assert judged({"name": "sometimes", "high": 0}, data).interval.value == 0.6

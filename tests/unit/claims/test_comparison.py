"""Values of a claim that no point has: a slip of the pen, or what another profile measures."""

import pytest
from made_up_points import AB, factor, judged, rows

from labbook.claims.decisions import NOT_RUN
from labbook.claims.rules import decide
from labbook.errors import InputError


@pytest.mark.parametrize("want, known", [("db2", "db5"), ("SST", "IST"), ("standby_replay", "standby"),
                                         ("standby", "standby_replay")])
def test_a_name_with_a_number_an_abbreviation_and_a_word_more_are_not_taken_for_others(want, known):
    found = [row | {"system": known} for row in rows(factor(2))]
    rule = {"name": "below", "value": 3, "where": {"system": want}}
    assert judged(rule, found).reason == (
        f"this run of the quick profile measured no point with system {want.replace('_', ' ')}")


@pytest.mark.parametrize("rule, message", [
    ({"of": {"sytem": "a"}, "than": {"sytem": "b"}}, "did you mean 'system'"),
    ({"where": {"ops": "read"}}, "rule.where.ops"),
    ({"name": "grows_slower", "along": "client"}, "did you mean 'clients'"),
])
def test_a_claim_on_what_does_not_exist_is_refused(rule, message):
    with pytest.raises(InputError, match=message):
        judged({"name": "greater"} | AB | rule, rows(factor(2)))


@pytest.mark.parametrize("want", ["reads", 5, True])
def test_points_without_a_claims_value_leave_it_not_run_however_near_theirs_are(want):
    """Points that were published before the claim had the value `read`, or text where there are numbers now; every
    command that judged them ended."""
    claim = {"id": "one", "metric": "ms", "rule": {"name": "always", "low": 1, "where": {"op": want}}}
    outcome = decide(claim, [{"repeat": 1, "op": "read", "ms": 1.0}], ["op"])
    assert (outcome.verdict, outcome.reason) == (
        NOT_RUN, f"this run of the quick profile measured no point with op {want}")

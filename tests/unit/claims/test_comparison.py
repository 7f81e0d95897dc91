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
    ({"where": {"op": "raed"}}, "did you mean 'read'"),
    ({"name": "grows_slower", "along": "client"}, "did you mean 'clients'"),
])
def test_a_claim_on_what_does_not_exist_is_refused(rule, message):
    with pytest.raises(InputError, match=message):
        judged({"name": "greater"} | AB | rule, rows(factor(2)))


def test_what_the_full_profile_has_is_no_slip_of_the_pen_where_it_was_not_measured():
    claim = {"id": "one", "metric": "ms", "rule": {"name": "always", "low": 1, "where": {"op": "reads"}}}
    found = [{"repeat": 1, "op": "read", "ms": 1.0}]
    with pytest.raises(InputError, match="did you mean 'read'"):
        decide(claim, found, ["op"])
    outcome = decide(claim, found, ["op"], known={"reads"})
    assert (outcome.verdict, outcome.reason) == (NOT_RUN, "this run of the quick profile measured no point with op reads")

"""A crash's outcome, from made-up evidence."""

import math

import pytest

from labbook.papers.ceph_mds.crash_outcomes import (
    OUTCOMES,
    WAYS,
    classify,
    crash_metrics,
    cut_off,
    failed_migrations,
    outcome,
    parts_of,
    together,
    worse,
)


def counts(**given):
    return {word: given.get(word, 0) for word in OUTCOMES}


def parts(dead=None, below=None, living=None, **held):
    """Five names are right where nothing else is given, and none is held."""
    return {part: given or counts(right=5) for part, given in
            (("dead", dead), ("below", below), ("living", living))} | held


def evidence(**given):
    """Of a run in which a spare took over and nothing was lost."""
    return {"survivor": parts(), "fresh": parts(), "others_died": [],
            "client_cut": [], "migrations_failed": [], "noticed_s": 12.0, "map_updated_s": 12.1,
            "active_s": 14.0, "spare": True, **given}


@pytest.mark.parametrize("given, wanted", [
    ({"right": 3}, "right"), ({"right": 3, "wrong": 1}, "wrong"),
    ({"wrong": 3, "missing": 1}, "missing"), ({"missing": 3, "unobtainable": 1}, "unobtainable")])
def test_one_name_makes_the_outcome(given, wanted):
    assert outcome(counts(**given)) == wanted


def test_what_was_not_asked_is_no_outcome():
    assert outcome({"right": 3, "unasked": 1}) == "unasked" and "unasked" not in OUTCOMES
    assert outcome({"right": 3, "unasked": 1, "wrong": 1}) == "wrong"
    assert worse("right", "unasked") == "unasked" and worse("unasked", "wrong", "right") == "wrong"
    found = classify(evidence(fresh=parts(living={"unasked": 1})))
    assert (found["survivor"], found["outcome"], found["unexplained"]) == ("right", "unasked", 0)
    with pytest.raises(ValueError, match="no name"):
        outcome(counts())
    assert outcome(None) == "unobtainable"
    with pytest.raises(ValueError, match="no evidence of client_cut"):
        classify({key: value for key, value in evidence().items() if key != "client_cut"})


def test_all_is_well():
    found = classify(evidence())
    assert found["outcome"] == "right" and not any(found[way] for way in WAYS)
    assert found["unexplained"] == found["rank_unserved"] == 0


@pytest.mark.parametrize("way, given", [
    ("other_mds_died", {"others_died": ["mds1"]}), ("client_cut", {"client_cut": [0]}),
    ("migration_failed", {"migrations_failed": ["/a"]}), ("map_not_updated", {"map_updated_s": None})])
def test_each_of_the_papers_ways_is_seen_alone(way, given):
    found = classify(evidence(fresh=parts(living=counts(unobtainable=1)), **given))
    assert [seen for seen in WAYS if found[seen]] == [way]
    assert found["outcome"] == "unobtainable" and found["survivor"] == "right"
    assert not found["unexplained"]


def test_the_worse_client_tells():
    found = classify(evidence(survivor=parts(living=counts(right=1, wrong=2)), fresh=None))
    assert (found["survivor"], found["fresh"], found["outcome"]) == (
        "wrong", "unobtainable", "unobtainable")


ALONE = dict(spare=False, active_s=None)
HUNG = counts(unobtainable=9)


@pytest.mark.parametrize("survivor, unexplained", [
    (parts(dead=HUNG), 0), (parts(dead=HUNG, below=HUNG), 0), (parts(held=HUNG), 0),
    (parts(held=counts(wrong=1)), 1), (parts(held=HUNG, living=counts(unobtainable=1)), 1),
    (parts(living=HUNG), 1), (parts(dead=HUNG, living=HUNG), 1),    # the paper's second way looks so
    (parts(dead=counts(wrong=1)), 1), (parts(dead=HUNG, living=counts(wrong=1)), 1),
    (parts(below=counts(missing=1)), 1)])
def test_want_of_a_server_explains_that_what_it_had_cannot_be_had_and_nothing_else(survivor, unexplained):
    for fresh in (None, survivor):
        found = classify(evidence(survivor=survivor, fresh=fresh, **ALONE))
        assert found["rank_unserved"] and found["unexplained"] == unexplained
    assert classify(evidence(survivor=survivor))["unexplained"]     # there was one to take over
    assert not classify(evidence(survivor=survivor, client_cut=[0], **ALONE))["unexplained"]


def test_each_client_has_an_outcome_of_its_own():
    """With nobody for the rank, one that comes later may not be let in at all."""
    found = classify(evidence(survivor=parts(), fresh=None, **ALONE))
    assert (found["survivor"], found["fresh"], found["unexplained"]) == ("right", "unobtainable", 0)
    assert together(parts(dead=HUNG)) == counts(right=10, unobtainable=9) | {"unasked": 0}


@pytest.mark.parametrize("after, more, ranks", [
    ({0: "open"}, {}, []),
    ({}, {}, [0]),                          # closed by the server: in no list any more
    ({0: "stale"}, {}, [0]),
    ({0: "open"}, {"evicted_by": [0]}, [0]),
    ({0: "open"}, {"evicted_by": [1]}, []),  # the dead one's successor
    ({0: "open"}, {"shut_out": True}, [0, 2]),
    (None, {}, [0, 2])])
def test_who_cut_a_client_off(after, more, ranks):
    """It never had a session with rank 2."""
    assert cut_off([0, 2], {0: "open", 1: "open"}, after, **more) == ranks


@pytest.mark.parametrize("given, failed", [
    ({}, []), ({"moved": "/a", "kept": True}, []), ({"moved": "/a", "kept": False}, ["/a"]),
    ({"moving": {"mds1": ["/b"]}}, ["/b"]), ({"owned": {0: ["/", "/c"], 1: ["/c", "/d"]}}, ["/c"]),
    ({"kept": False}, [])])
def test_a_migration_that_failed(given, failed):
    assert failed_migrations(**{"moving": {"mds1": []}, "owned": {0: ["/"], 1: ["/a"]}, **given}) == failed


OWNED = {0: ["/", "/tree/d0"], 1: ["/tree/d1"]}


@pytest.mark.parametrize("killed, dead, below, living", [
    (1, ["tree/d1", "tree/d1/f"], [], ["tree", "tree/d0/f", "tree/d10/f"]),
    (0, ["tree", "tree/d0/f", "tree/d10/f"], ["tree/d1", "tree/d1/f"], [])])
def test_names_are_divided_by_the_server_that_owned_them(killed, dead, below, living):
    """What lies in a living server's directory is reached through those above."""
    names = ["tree", "tree/d0/f", "tree/d1", "tree/d1/f", "tree/d10/f"]
    assert parts_of(names, OWNED, killed) == {"dead": dead, "below": below, "held": [], "living": living}


def test_what_lies_below_a_directory_that_is_held_is_so_too():
    names = ["tree", "tree/d0", "tree/d0/f", "tree/d00", "tree/d1/f"]
    assert parts_of(names, OWNED, 1, held=["tree/d0"]) == {
        "dead": ["tree/d1/f"], "below": [], "held": ["tree/d0", "tree/d0/f"], "living": ["tree", "tree/d00"]}
    assert parts_of(names, OWNED, 1, held=["tree"])["held"] == ["tree", "tree/d0", "tree/d0/f", "tree/d00"]


def test_a_run_in_numbers():
    survivor = parts(dead=counts(right=2, unobtainable=3), below=counts(right=4),
                     living=counts(right=1) | {"wrong": 2, "unasked": 1, "differing": {"size": 2}})
    again = {"survivor": parts(), "fresh": parts()}
    found = crash_metrics(evidence(survivor=survivor, fresh=None, map_updated_s=None, **ALONE), again)
    assert (found["survivor_right"], found["survivor_right_dead"], found["survivor_right_living"]) == (7, 2, 5)
    assert (found["survivor_unobtainable_dead"], found["survivor_unasked_living"]) == (3, 1)
    assert found["survivor_differing"] == "size (2)" and found["not_as_before"] == 2
    assert found["survivor_outcome_unobtainable"] == found["outcome_unobtainable"] == 1
    assert found["outcome_right"] == found["survivor_outcome_right"] == found["fresh_mounted"] == 0
    assert math.isnan(found["fresh_right"]) and math.isnan(found["fresh_right_dead"])
    assert found["map_not_updated"] == found["ways_seen"] == found["right_again"] == 1
    assert math.isnan(found["map_updated_s"]) and math.isnan(found["active_s"]) and found["noticed_s"] == 12
    assert all(isinstance(value, (float, str)) for value in found.values())


def test_the_same_metrics_are_given_for_every_outcome():
    """A claim is judged by a metric that is there in each run."""
    numbers = [{name for name, value in crash_metrics(evidence(fresh=fresh), {"survivor": fresh}).items()
                if isinstance(value, float)} for fresh in (None, parts())]
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("last, again", [
    ({"survivor": parts(), "fresh": parts()}, 1), ({"survivor": parts(), "fresh": None}, 0),
    ({"survivor": parts(living=counts(wrong=1)), "fresh": parts()}, 0)])
def test_all_is_right_again_for_both_clients_or_not(last, again):
    found = crash_metrics(evidence(), last)
    assert found["right_again"] == again and found["outcome_right"] == 1
    assert found["not_as_before"] == (not again and last["fresh"] is not None)


def test_names_for_which_there_was_no_time_are_no_evidence_against_the_servers():
    """One had refuted that all is right."""
    late = parts(living=counts(right=4) | {"unasked": 1})
    found = crash_metrics(evidence(fresh=late), {"survivor": parts(), "fresh": late})
    assert found["survivor_outcome_right"] == 1
    assert all(math.isnan(found[name]) for name in ("outcome_right", "outcome_wrong", "fresh_outcome_right", "right_again"))
    found = crash_metrics(evidence(fresh=late), {"survivor": parts(living=counts(missing=1)), "fresh": late})
    assert found["right_again"] == 0


def test_a_death_nobody_noticed_is_no_map_that_was_not_updated():
    found = classify(evidence(noticed_s=None, map_updated_s=None))
    assert not found["map_not_updated"]

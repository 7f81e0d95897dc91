"""A crash's outcome, from made-up evidence that each leaves nothing else to say."""

import pytest

from labbook.study.crash_outcomes import OUTCOMES, WAYS, classify, counted, outcome


def counts(**given):
    return {word: given.get(word, 0) for word in OUTCOMES}


def evidence(**given):
    """Of a run in which a spare took over and nothing was lost."""
    return {"survivor": counts(right=5), "fresh": counts(right=5), "others_died": [],
            "client_cut": [], "migrations_failed": [], "noticed_s": 12.0, "map_updated_s": 12.1,
            "active_s": 14.0, "spare": True, **given}


@pytest.mark.parametrize("given, wanted", [
    ({"right": 3}, "right"), ({"right": 3, "wrong": 1}, "wrong"),
    ({"wrong": 3, "missing": 1}, "missing"), ({"missing": 3, "unobtainable": 1}, "unobtainable")])
def test_one_name_makes_the_outcome(given, wanted):
    assert outcome(counts(**given)) == wanted


def test_what_was_not_asked_is_no_outcome():
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
    found = classify(evidence(fresh=counts(unobtainable=1), **given))
    assert [seen for seen in WAYS if found[seen]] == [way]
    assert found["outcome"] == "unobtainable" and found["survivor"] == "right"
    assert not found["unexplained"]


def test_the_worse_client_tells():
    found = classify(evidence(survivor=counts(right=1, wrong=2), fresh=None))
    assert (found["survivor"], found["fresh"], found["outcome"]) == (
        "wrong", "unobtainable", "unobtainable")


def test_want_of_a_server_explains_hanging_and_nothing_else():
    alone = dict(spare=False, active_s=None)
    hung = classify(evidence(survivor=counts(unobtainable=9), **alone))
    assert hung["rank_unserved"] and not hung["unexplained"]
    assert classify(evidence(survivor=counts(wrong=1), **alone))["unexplained"]
    assert classify(evidence(survivor=counts(unobtainable=9)))["unexplained"]


def test_a_death_nobody_noticed_is_no_map_that_was_not_updated():
    found = classify(evidence(noticed_s=None, map_updated_s=None))
    assert not found["map_not_updated"]


def test_runs_are_counted():
    runs = [classify(evidence()), classify(evidence(client_cut=[0])),
            classify(evidence(client_cut=[1], survivor=counts(missing=1)))]
    found = counted(runs)
    assert found["runs"] == 3 and found["runs_right"] == 2 and found["runs_missing"] == 1
    assert found["client_cut_runs"] == 2 and found["ways_left"] == 1
    assert counted([])["ways_left"] == 0

"""What repeats take, from records and from published points."""

import json

import pandas as pd

from labbook.study import costs
from labbook.study.publication import published


def record(block, took):
    return {"block": block, "took_s": took}


FIRST, SECOND = [record(1, 12.0), record(2, 2.0)], [record(1, 2.0), record(2, 22.0)]


def test_what_the_first_point_of_a_block_took_longer_is_its_set_ups():
    assert costs.durations([FIRST, SECOND]) == (15.0, [2.0, 2.0])
    assert costs.durations([[record(1, 3.0)], []]) == (0.0, [3.0, 3.0])
    assert costs.durations([[]]) == (0.0, None)


def test_what_was_not_measured_here_takes_what_it_took_elsewhere():
    assert costs.durations([[], []], [FIRST, SECOND]) == (15.0, [2.0, 2.0])
    assert costs.durations([[record(1, 3.0)], []], [FIRST, SECOND]) == (15.0, [3.0, 2.0])
    assert costs.durations([[record(1, 3.0)], []], [[], []]) == (0.0, [3.0, 3.0])


def test_published_points_tell_set_ups_and_points_apart(make, monkeypatch):
    """Their median alone had given a tenth of what a ring of nodes takes."""
    study, speed = make(repeats=3)
    spans = {point.key: 50.0 if point.order == 1 else 2.0 for point in speed.points()}
    frame = pd.DataFrame([{"point": point.key, "block": point.block, "provenance": json.dumps(
        {"during": {"started": 100.0, "ended": 100.0 + spans[point.key]}})} for point in speed.points()])
    monkeypatch.setattr(published, "has", lambda study, experiment: True)
    monkeypatch.setattr(published, "parts", lambda study, experiment: [("here", frame)])
    found = costs.of_repeats(study, speed)
    assert (found["setup_s"], found["point_s"]) == (48.0, [2.0] * 4)
    assert costs.left(study, speed, speed.declared()) == {"left": 12, "declared": 12, "seconds": 12 * (2.0 + 48.0 * 2 / 4)}


def test_published_points_of_other_parameters_tell_what_points_take(make, monkeypatch):
    """The minutes of the whole profile, over the few points of a part of it, had given days."""
    study, speed = make(repeats=3)
    frame = pd.DataFrame([{"point": f"other{number}", "block": number // 2, "provenance": json.dumps(
        {"during": {"started": 0.0, "ended": 30.0 if number % 2 else 10.0}})} for number in range(4)])
    monkeypatch.setattr(published, "has", lambda study, experiment: True)
    monkeypatch.setattr(published, "parts", lambda study, experiment: [("here", frame)])
    found = costs.of_repeats(study, speed)
    assert (found["setup_s"], found["point_s"]) == (20.0, [10.0] * 4)


def test_published_points_of_other_parameters_that_are_most_alike_tell_what_a_point_takes(make, monkeypatch):
    """Functions that take a second had been guessed to take the median of all, some of which take a minute."""
    study, speed = make(repeats=3)
    frame = pd.DataFrame([{**place.params, "system": "another", "point": f"{number}-{repeat}", "block": place.clients,
                           "provenance": json.dumps({"during": {"started": 0.0, "ended": 90.0 if place.clients == 2 else 2.0}})}
                          for repeat in range(3) for number, place in enumerate(speed.places())])
    monkeypatch.setattr(published, "has", lambda study, experiment: True)
    monkeypatch.setattr(published, "parts", lambda study, experiment: [("here", frame)])
    found = costs.of_repeats(study, speed)["point_s"]
    assert {place.clients: took for place, took in zip(speed.places(), found)} == {1: 2.0, 2: 90.0}


def test_an_experiment_of_no_repeats_takes_nothing_whatever_is_published(make, monkeypatch):
    """A fleet's plan of a quick profile had failed with a KeyError."""
    frame = pd.DataFrame([{"point": point.key, "block": point.block, "provenance": "{}"} for point in make()[1].points()])
    monkeypatch.setattr(published, "has", lambda study, experiment: True)
    monkeypatch.setattr(published, "parts", lambda study, experiment: [("here", frame)])
    study, speed = make(repeats=0)
    assert not costs.of_repeats(study, speed)["point_s"]


def test_points_take_what_those_of_the_same_place_and_set_up_took(make, monkeypatch):
    study, speed = make(repeats=3)
    points = speed.points()
    done = {one.key: record(one.block, (50.0 if one.order == 1 else 2.0) + 10 * (one.params == points[1].params))
            for one in points if one.repeat < 3}
    todo = [one for one in points if one.repeat == 3]
    found, guessed = costs.of_points(study, speed, todo, done)
    assert not guessed
    blocks = len({one.block for one in todo})
    assert abs(found - (blocks * 48 + 2 * len(todo) + 10)) < 0.2 * found
    assert costs.of_points(study, speed, todo, {}) == (None, False)


def test_records_of_earlier_code_tell_what_points_take(make, measure, monkeypatch):
    study, speed = make(repeats=2)
    measure(study, speed, lambda point: 0.01)
    monkeypatch.setattr(type(study.run), "is_valid", lambda run, meta: False)
    found = costs.of_repeats(study, speed)
    assert set(found["done"]) == {0} and found["point_s"] is not None


def test_records_of_other_parameters_tell_what_points_take(make, measure):
    study, speed = make(repeats=2)
    measure(study, speed, lambda point: 0.01)
    took = costs.of_repeats(study, speed)["point_s"]
    other, speed = make(setup={"system": ["c", "d"]})
    found = costs.of_repeats(other, speed)
    assert set(found["done"]) == {0} and len(found["point_s"]) == len(speed.places())
    assert min(took) <= found["point_s"][0] <= max(took)
    seconds, guessed = costs.of_points(other, speed, speed.points(), {})
    assert seconds > 0 and guessed

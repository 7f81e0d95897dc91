"""A round of an ask: what a kernel measures, judges and reports."""

import json

import pytest
from study_stand_ins import CLAIMS, operations

from labbook.claims import claims
from labbook.errors import InputError, Stopped
from labbook.study import ask, results
from labbook.study.publication import published
from labbook.study.records.fingerprint import Fingerprint

OF_ONE = {**CLAIMS[0], "rule": {**CLAIMS[0]["rule"], "where": {"clients": 1}}}
OF_TWO = {**OF_ONE, "id": "slower-too", "rule": {**OF_ONE["rule"], "where": {"clients": 2}}}


@pytest.fixture
def asking(monkeypatch):
    def set_to(*ids, page=False, last=False, **repeats):
        monkeypatch.setenv("LABBOOK_ASK", json.dumps({"claims": ids, "repeats": repeats, "page": page,
                                                     "last": last}))

    return set_to


@pytest.fixture
def surveys(monkeypatch, tmp_path):
    """What rounds reported, the newest last."""
    file = tmp_path / "progress"
    monkeypatch.setenv("LABBOOK_PROGRESS", str(file))
    return lambda: [event["found"] for event in map(json.loads, file.read_text().splitlines())
                    if event["event"] == "survey"]


def slow_a(point):
    return 0.02 if point.system == "a" else 0.01


def test_a_round_measures_what_its_claims_lack_of_its_repeats(make, measure, asking, surveys):
    asking("slower", speed=6)
    study, speed = make(claims=[OF_ONE, OF_TWO])
    assert [(p.clients, p.repeat) for p in measure(study, speed, slow_a)] == [(1, n) for n in range(1, 7) for _ in "ab"]
    with pytest.raises(Stopped):
        study.complete()
    one, = surveys()[-1]["claims"]
    assert (one["id"], one["verdict"], len(one["points"])) == ("slower", "replicated", 2)
    assert surveys()[-1]["experiments"]["speed"]["done"].count(6) == 2
    assert {v["id"]: v["verdict"] for v in claims.verdicts("demo")} == {"slower": "replicated"}

    asking("slower", "slower-too", speed=9)     # the next round goes on where this one ended
    study, speed = make(claims=[OF_ONE, OF_TWO])
    assert len(measure(study, speed, slow_a)) == 2 * 3 + 2 * 9


def test_the_last_round_goes_on_to_the_page_once_its_claims_are_decided(make, measure, asking, surveys):
    asking("slower", "slower-too", last=True, speed=6)
    study, speed = make(claims=[OF_ONE, OF_TWO])
    measure(study, speed, slow_a)
    study.complete()
    assert {one["verdict"] for one in surveys()[-1]["claims"]} == {"replicated"} and study.judge("slower").n == 6
    assert len(study.records("speed").keys()) == len(speed.points())


def test_the_last_round_ends_there_while_a_claim_is_open(make, measure, asking, surveys):
    asking("slower", "slower-too", last=True, speed=3)
    study, speed = make(claims=[OF_ONE, OF_TWO])
    measure(study, speed, slow_a)
    with pytest.raises(Stopped, match="round"):
        study.complete()
    assert {one["verdict"] for one in surveys()[-1]["claims"]} == {"open"}


def test_further_repeats_are_in_every_later_summary_and_a_claim_has_only_its_whole_ones(make, measure, asking,
                                                                                        monkeypatch):
    asking("slower", speed=6)
    measure(*make(claims=[OF_ONE, CLAIMS[0] | {"id": "both"}]), slow_a)
    monkeypatch.delenv("LABBOOK_ASK")
    study, speed = make(repeats=2, claims=[OF_ONE, CLAIMS[0] | {"id": "both"}])
    assert [p.clients for p in measure(study, speed, slow_a)] == [2] * 4
    study.complete()
    assert len(speed.points()) == len(speed.summary()) == 12 + 4
    assert study.judge("slower").n == 6 and study.judge("both").n == 2


def test_stale_further_repeats_are_left_out_where_stale_ones_are_measured_again(make, measure, asking, monkeypatch):
    asking("slower", speed=6)
    measure(*make(claims=[OF_ONE]), slow_a)
    monkeypatch.delenv("LABBOOK_ASK")
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda name: Fingerprint("new", {}))
    assert len(make(claims=[OF_ONE])[1].points()) == 4
    monkeypatch.setenv("LABBOOK_PROFILE", "full")       # keeps stale records, and marks them
    assert len(make(claims=[OF_ONE])[1].points()) == 4 + 10


def test_an_ask_does_not_take_a_claim_as_decided_by_records_that_it_measures_again(make, measure, asking, surveys,
                                                                                   monkeypatch):
    measure(*make(repeats=6, claims=[OF_ONE]), slow_a)
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda name: Fingerprint("new", {}))
    monkeypatch.setenv("LABBOOK_PLAN", "1")
    asking("slower")
    study, speed = make(repeats=6, claims=[OF_ONE])
    measure(study, speed)
    with pytest.raises(Stopped):
        study.complete()
    assert surveys()[-1]["claims"][0]["verdict"] == "not run"
    assert set(surveys()[-1]["experiments"]["speed"]["done"]) == {0}


def test_the_page_needs_no_further_point_and_shows_published_ones_where_none_was_measured(
        make, measure, asking, monkeypatch):
    monkeypatch.setattr(published, "has", lambda study, experiment: experiment == "disks")
    monkeypatch.setattr(results, "_published", lambda experiment: published_rows())
    asking("slower", page=True)
    study, speed = make(claims=[OF_ONE])
    disks = study.experiment("disks", setup={"system": ["a", "b"]})
    assert measure(study, speed) == [] and measure(study, disks) == []
    study.complete()
    assert len(speed.summary()) == 0 and list(disks.summary()["run"]) == ["published"]
    assert study.judge("slower").verdict == "not run"


def test_points_of_earlier_code_that_an_ask_does_not_need_are_neither_on_its_page_nor_in_its_grid(
        make, measure, asking, monkeypatch):
    measure(*make(claims=[OF_ONE]), slow_a)
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda name: Fingerprint("new", {}))
    asking("slower", speed=1)
    assert len(measure(*make(claims=[OF_ONE]), slow_a)) == 2
    asking("slower", page=True)
    study, speed = make(claims=[OF_ONE])
    measure(study, speed)
    study.complete()
    assert set(speed.summary()["clients"]) == {1} and not speed.summary()["stale"].any()
    grid = (study.records("speed").folder / "quick.grid").read_text()
    assert [point.clients for point in speed.points() if point.key in grid] == [1, 1]


def published_rows():
    import pandas as pd

    return pd.DataFrame([{"point": "p", "system": "a", "repeat": 1, "mean_ms": 3.0, "facts": "{}",
                          "provenance": "{}", "stale": False}])


def test_an_experiment_that_no_claim_reads_is_measured_as_declared(make, measure, asking, surveys):
    asking("slower", speed=0)
    study, speed = make(claims=[OF_ONE])
    ceiling = study.experiment("ceiling", vary={"clients": [1, 2]}, repeats=2)
    assert measure(study, ceiling, lambda point: 0.01) == ceiling.points() and measure(study, speed) == []
    with pytest.raises(Stopped):
        study.complete()
    assert surveys()[-1]["unread"]["ceiling"]["left"] == 0


def test_of_an_experiment_that_no_claim_reads_an_ask_measures_what_serves_its_claims(make, measure, asking, surveys):
    asking("slower", speed=0)
    study, speed = make(claims=[OF_ONE, OF_TWO])
    ceiling = study.experiment("ceiling", vary={"clients": [1, 2]}, repeats=2, serves=lambda point, claim: (
        point.clients == claim["rule"]["where"]["clients"]))
    assert [point.clients for point in measure(study, ceiling, lambda point: 0.01)] == [1, 1]
    measure(study, speed)
    with pytest.raises(Stopped):
        study.complete()
    assert surveys()[-1]["unread"]["ceiling"] == {"left": 0, "declared": 2} | {
        "seconds": surveys()[-1]["unread"]["ceiling"]["seconds"]}


def test_an_experiment_that_is_left_out_is_not_asked_either(make, measure, asking):
    asking("slower", speed=6)
    study, speed = make(repeats=0, claims=[OF_ONE])
    assert measure(study, speed) == [] and speed.places() == [] and speed.points() == []


def test_a_claim_of_which_an_arm_is_left_out_has_no_point_to_ask_for(make, measure, asking, surveys):
    asking("slower", speed=6)
    study, speed = make(claims=[OF_ONE], setup={"system": ["a"]}, vary={"clients": [1]})
    measure(study, speed)
    with pytest.raises(Stopped):
        study.complete()
    assert surveys()[-1]["claims"][0]["points"] == []


def test_a_plan_says_where_claims_stand_and_stores_nothing(make, measure, asking, surveys, monkeypatch):
    asking("slower")
    monkeypatch.setenv("LABBOOK_PLAN", "1")
    study, speed = make(claims=[OF_ONE])
    assert measure(study, speed) == []
    with pytest.raises(Stopped, match="plan"):
        study.complete()
    assert surveys()[-1]["claims"][0]["verdict"] == "not run" and not claims.verdicts_path("demo").exists()


@pytest.mark.parametrize("text, message", [
    ("slower", "names no claims and repeats"), ('{"claims": []}', "names no claims"),
    ('{"claims": ["faster"], "repeats": {}}', "no claim 'faster'.*allowed: slower"),
    ('{"claims": [], "repeats": {"speed": 61}}', "repeats.speed: 61 repeats .*0 to 60")])
def test_an_ask_that_is_none_is_refused(make, monkeypatch, text, message):
    monkeypatch.setenv("LABBOOK_ASK", text)
    with pytest.raises(InputError, match=f"LABBOOK_ASK.*{message}"):
        make()


def test_what_an_unfinished_repeat_shows_counts_for_a_claim_of_none(make, measure, asking, monkeypatch):
    """As it does once it is published."""
    never = OF_ONE | {"id": "none", "metric": "errors", "rule": {"name": "always", "high": 0}}
    study, speed = make(claims=[never])
    for point in list(speed.remaining())[:1]:
        with study.attempt(point) as attempt:
            attempt.record(operations())        # one of them failed
    assert study.judge("none").verdict == "not replicated"


def test_what_was_not_seen_in_a_part_of_the_settings_decides_nothing(make, measure, asking, monkeypatch):
    """Thirty repeats for a claim of one number of clients were taken for those of all."""
    never = OF_ONE | {"id": "none", "metric": "errors", "rule": {"name": "always", "high": 1}}
    asking("slower", speed=30)
    measure(*make(claims=[OF_ONE, never]))
    monkeypatch.delenv("LABBOOK_ASK")
    study, _ = make(claims=[OF_ONE, never])
    assert study.judge("slower").n == 30 and study.judge("none").verdict != "replicated"

"""An attempt at a point: what it records, and how it fails."""

import time

import pandas as pd
import pytest
from study_stand_ins import failing

from labbook.errors import InputError, LabError, SystemFailure
from labbook.study import PointsFailed
from labbook.study.records.fingerprint import Fingerprint
from labbook.study.records.record import Records


def test_given_metrics_go_before_computed_ones_and_rows_are_not_needed(make):
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.record(metrics={"rate_per_s": 5})
    frame = speed.summary()
    assert list(frame["rate_per_s"]) == [5] * 4 and list(frame["n"]) == [0] * 4


def test_provenance_goes_with_every_point(make, measure):
    study, speed = make()
    measure(study, speed, facts={"version": "1.2"})
    meta = study.records("speed").meta(speed.points()[-1].key)
    assert meta["facts"] == {"version": "1.2"} and meta["profile"] == "quick"
    assert meta["environment"] == "environments/local.yml"
    found = meta["provenance"]
    assert found["machine"]["cores"] and found["machine"]["kernel"] and found["machine"]["cpu"]
    assert found["lab"]["hosts"] and "commit" in found["code"]
    assert 0 <= found["during"]["steal"] <= 1
    assert found["during"]["started"] <= found["during"]["ended"] <= time.time()
    assert found["links"]["after"][0]["measured_rtt_ms"] == 101
    first = study.records("speed").meta(speed.points()[0].key)
    assert first["provenance"]["links"]["before"], "links are checked as a block begins"


def test_a_failed_point_is_tried_once_more_on_a_fresh_lab(make, labs):
    study, speed = make()
    a1, a2, *rest = speed.points()
    tried = failing(study, speed, {0}, SystemFailure("it died", log="out of memory"))
    assert tried == [a1, a2, a1, *rest]
    assert len(labs.made) == 2 and labs.made[0].downs == 1 and labs.made[1].downs == 0
    study.complete()
    assert speed.failures() == []


def test_a_point_keeps_how_it_failed_before_it_came_out(make):
    study, speed = make()
    point = speed.points()[0]
    assert "failed_first" not in study.conditions()
    failing(study, speed, {0}, SystemFailure("it died"))
    stored = study.records("speed").meta(point.key)["provenance"]
    assert stored["failed_first"] == "it died"
    assert study.conditions()["failed_first"] == 1
    other = study.records("speed").meta(speed.points()[1].key)["provenance"]
    assert "failed_first" not in other


def test_a_damaged_failure_record_costs_no_measurement(make):
    """The point was measured, and then it failed, since the record did not say of which code it is."""
    study, speed = make()
    point = speed.points()[0]
    failing(study, speed, {0, 2}, SystemFailure("it died"))
    (study.records("speed").folder / f"{point.key}.failure.json").write_text('{"key"')
    again, speed = make()
    assert failing(again, speed, (), None) == [point]
    assert "failed_first" not in again.records("speed").meta(point.key)["provenance"]


def test_a_failure_of_earlier_code_is_not_among_the_conditions(make):
    study, speed = make()
    study.fingerprint = Fingerprint("with a mistake", {})
    failing(study, speed, {0, 2}, SystemFailure("it died"))
    assert len(speed.failures()) == 1
    again, speed = make()
    failing(again, speed, (), None)
    assert speed.failures() == [] and "failed_first" not in again.conditions()


def test_a_point_that_fails_twice_fails_the_study_which_says_why(make):
    study, speed = make()
    point = speed.points()[0]
    tried = failing(study, speed, {0, 2}, SystemFailure("it died", log="out of memory"))
    assert tried.count(point) == 2 and len(tried) == 5
    failure, = speed.failures()
    assert failure["message"] == "it died" and failure["logs"] == ["out of memory"]
    assert "study_stand_ins" in open(failure["traceback"]).read()
    with pytest.raises(PointsFailed, match="1 point failed") as raised:
        study.complete()
    assert point.label in str(raised.value) and "it died" in str(raised.value)
    again, speed = make()
    assert failing(again, speed, set(), None) == [point], "the next run tries it again"
    again.complete()


def test_a_failure_tells_of_hosts_that_were_short_of_memory(make):
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.lab.short.append("db had too little memory (1 GB)")
            raise SystemFailure("it gives no answer", log="serving")
        break
    failure = speed.failures()[0]
    assert failure["message"] == "it gives no answer; db had too little memory (1 GB)"
    assert failure["logs"] == ["serving"]


def test_an_attempt_without_a_record_is_a_failure(make):
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            if point == speed.points()[0]:
                attempt.record([])
    assert "without record()" in speed.failures()[0]["message"]
    with pytest.raises(PointsFailed, match="3 points failed"):
        study.complete()


def test_links_that_are_not_what_was_asked_fail_the_point(make, labs):
    def off():
        raise LabError("the link is off")

    study, speed = make()
    for number, point in enumerate(speed.remaining()):
        with study.attempt(point) as attempt:
            lab = attempt.lab
            attempt.record([])
            if number in (0, 2):
                lab.check_links = off
    failure, = speed.failures()
    assert failure["message"] == "the link is off" and len(labs.made) == 3


@pytest.mark.parametrize("error", [InputError("no such op"), NameError("keyvaleu"),
                                   ModuleNotFoundError("nothing"), TypeError("takes 2 arguments"),
                                   AttributeError("no attribute 'portt'")])
def test_what_is_wrong_for_every_point_ends_the_study(make, labs, error):
    study, speed = make()
    with pytest.raises(type(error)):
        failing(study, speed, {0}, error)
    assert labs.made[0].downs == 1 and len(speed.failures()) == 1


def test_a_lab_that_does_not_come_up_is_tried_twice(make, labs):
    study, speed = make()
    labs.errors = [LabError("no bridge"), LabError("no bridge")]
    with pytest.raises(LabError, match="no bridge"):
        failing(study, speed, set(), None)
    labs.errors = [LabError("no bridge")]
    study, speed = make()
    failing(study, speed, set(), None)
    study.complete()


@pytest.mark.parametrize("wrong", [
    {"metrics": {"clients": 1}}, {"metrics": {"stale": 1}}, {"metrics": {"two words": 1}},
    {"metrics": {"x": {}}}, {"series": {"../x": pd.DataFrame()}}])
def test_what_cannot_be_recorded_is_refused(make, wrong):
    study, speed = make()
    with pytest.raises(InputError):
        with study.attempt(speed.points()[0]) as attempt:
            attempt.record([], **wrong)


def test_a_full_disk_ends_the_study_and_its_lab(make, labs, monkeypatch):
    study, speed = make()
    points = speed.remaining()
    first = next(points)
    with study.attempt(first) as attempt:
        assert attempt.lab
        attempt.record([])

    def full(*_):
        raise LabError("disk is full")

    monkeypatch.setattr(Records, "write", full)
    with pytest.raises(LabError, match="disk is full"):
        with study.attempt(next(points)) as attempt:
            attempt.record([])
    assert labs.made[0].downs == 1 and list(speed.summary()["point"]) == [first.key]


def test_no_column_of_text_has_an_address_however_it_is_stored(make):
    study, speed = make()
    study.redact = lambda data: data.replace("10.0.0.11", "rack1") if isinstance(data, str) else data
    point = speed.points()[0]
    texts = pd.Series(["no answer from 10.0.0.11", None])
    with study.attempt(point) as attempt:
        attempt.record(pd.DataFrame({"started_s": [0.0, 1.0], "seconds": 0.1, "ok": [False, True], "plain": texts,
                                     "error": texts.astype("category")}))
    rows = study.records("speed").rows(point.key)
    assert rows["plain"][0] == rows["error"][0] == "no answer from rack1" and pd.isna(rows["error"][1])

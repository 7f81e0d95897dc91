"""A study's run: what the press asks for and gets, what is measured again, and failures that are alike."""

import json
import time

import pytest
from study_stand_ins import failing

from labbook.errors import InputError, LabbookError, LabError, Stopped, SystemFailure
from labbook.study import PointsFailed, Study


def test_a_plan_measures_nothing(make, measure, labs, root, monkeypatch):
    monkeypatch.setenv("LABBOOK_PLAN", "1")
    monkeypatch.setenv("LABBOOK_PROGRESS", str(root / "progress"))
    study, speed = make()
    assert measure(study, speed) == [] and labs.made == []
    with pytest.raises(Stopped):
        study.complete()
    event, = read_events(root)
    assert (event["event"], event["done"], event["total"]) == ("plan", 0, 4)
    assert event["points"][0] == speed.points()[0].label and event["seconds"] is None


def measured_when_time_is_up_after_two(study, speed, **run) -> int:
    """How many points are measured. run: attributes of the study's run from then on."""
    for number, point in enumerate(speed.remaining(), 1):
        with study.attempt(point) as attempt:
            attempt.record([])
        if number == 2:
            vars(study.run).update(until=time.time() - 1, **run)
    return number


def test_time_that_is_up_stops_between_points(make, measure, labs, root, monkeypatch):
    monkeypatch.setenv("LABBOOK_UNTIL", str(time.time() + 3600))
    monkeypatch.setenv("LABBOOK_PROGRESS", str(root / "progress"))
    study, speed = make()
    assert measured_when_time_is_up_after_two(study, speed) == 2
    with pytest.raises(Stopped, match="2 points left"):
        study.complete()
    assert [e["event"] for e in read_events(root)][-2:] == ["done", "paused"]
    monkeypatch.delenv("LABBOOK_UNTIL")
    study, speed = make()
    assert len(measure(study, speed)) == 2
    study.complete()


@pytest.mark.parametrize("overtime, measured", [(250, 4), (150, 2), (None, 2)])
def test_an_experiment_goes_on_where_it_ends_in_the_overtime(make, overtime, measured):
    """It was stopped one point before its end, and the next round brought the systems up again for that point."""
    study, speed = make()
    overtime = overtime and time.time() + overtime
    assert measured_when_time_is_up_after_two(study, speed, overtime=overtime, _took={"speed": [100.0] * 9}) == measured


def test_before_a_point_of_an_experiment_was_measured_its_overtime_is_unknown(make, monkeypatch):
    monkeypatch.setenv("LABBOOK_UNTIL", str(time.time() - 1))
    monkeypatch.setenv("LABBOOK_OVERTIME", str(time.time() + 3600))
    study, speed = make()
    assert list(speed.remaining()) == []
    with pytest.raises(Stopped, match="4 points left"):
        study.complete()


def test_a_failure_of_an_earlier_run_does_not_end_one_whose_time_is_up_before_that_point(make, monkeypatch):
    """Its good page had been replaced by a failed one."""
    study, speed = make()
    failing(study, speed, {3, 4}, SystemFailure("it died"))     # and again at the end
    study, speed = make(repeats=2)
    assert len(speed.failures()) == 1
    study.run.until = time.time() - 1
    assert list(speed.remaining()) == []
    with pytest.raises(Stopped, match="5 points left"):
        study.complete()


def test_a_failure_of_its_own_ends_a_run_whose_time_is_up(make):
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point):
            raise SystemFailure("it died")
        study.run.until = time.time() - 1
    with pytest.raises(PointsFailed, match="1 point failed"):
        study.complete()


def test_time_that_is_up_does_not_matter_when_nothing_remains(make, measure, monkeypatch):
    study, speed = make()
    measure(study, speed)
    monkeypatch.setenv("LABBOOK_UNTIL", "1")
    study, speed = make()
    measure(study, speed)
    study.complete()


def test_progress_is_reported_line_by_line(make, root, monkeypatch):
    monkeypatch.setenv("LABBOOK_PROGRESS", str(root / "progress"))
    study, speed = make()
    failing(study, speed, {1}, SystemFailure("it died"))
    study.complete()
    events = read_events(root)
    assert [e["event"] for e in events] == [
        "plan", *["start", "done"], *["start", "failed"], *["start", "done"] * 3, "complete"]
    assert [e["done"] for e in events if e["event"] == "done"] == [1, 2, 3, 4]
    failed = events[4]
    assert failed["message"] == "it died" and failed["seconds"] >= 0
    assert failed["point"] == speed.points()[1].label and failed["total"] == 4


def test_a_plan_estimates_from_earlier_points(make, measure, root, monkeypatch):
    study, speed = make()
    measure(study, speed)
    monkeypatch.setenv("LABBOOK_PROGRESS", str(root / "progress"))
    monkeypatch.setenv("LABBOOK_PLAN", "1")
    study, speed = make(repeats=3)
    list(speed.remaining())
    assert read_events(root)[0]["seconds"] > 0 and read_events(root)[0]["done"] == 4


def read_events(root):
    return [json.loads(line) for line in (root / "progress").read_text().splitlines()]


def test_a_loop_left_early_is_not_complete(make):
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.record([])
        break
    with pytest.raises(LabbookError, match="3 points were not measured"):
        study.complete()


@pytest.mark.parametrize("variable, value", [("PROFILE", "quik"), ("UNTIL", "soon")])
def test_wrong_requests_are_refused(root, monkeypatch, variable, value):
    monkeypatch.setenv(f"LABBOOK_{variable}", value)
    with pytest.raises(InputError, match=value):
        Study("demo")


def test_a_truncated_record_is_measured_again(make, measure):
    study, speed = make()
    measure(study, speed)
    path = study.records("speed").path(speed.points()[2].key)
    path.write_bytes(path.read_bytes()[:200])
    study, speed = make()
    with pytest.warns(UserWarning, match="damaged"):
        assert measure(study, speed) == [speed.points()[2]]
    study.complete()
    assert path.with_name(path.name + ".broken").exists()


def test_a_record_with_one_wrong_bit_is_reported_to_the_press_and_never_judged(make, measure, tmp_path, monkeypatch):
    study, speed = make(repeats=3)
    measure(study, speed, lambda point: 0.02 if point.system == "a" else 0.01)
    right, rows = study.judge("slower"), len(speed.summary())
    path = study.records("speed").path(speed.points()[2].key)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)
    study, speed = make(repeats=3)
    with pytest.warns(UserWarning, match="damaged"):
        assert len(speed.summary()) == rows - 1
        assert study.judge("slower").conditions["points"] == right.conditions["points"] - 1
    path.write_bytes(data)
    monkeypatch.setenv("LABBOOK_PROGRESS", str(tmp_path / "progress"))
    with pytest.warns(UserWarning, match="damaged"):
        measured = measure(study, speed, lambda point: 0.02 if point.system == "a" else 0.01)
    assert measured == [speed.points()[2]] and study.judge("slower").measured == right.measured
    events = [json.loads(line) for line in (tmp_path / "progress").read_text().splitlines()]
    message, = (event["message"] for event in events if event["event"] == "warning")
    assert str(path) in message and "measured again" in message


def test_the_same_failure_again_and_again_ends_the_study_early(make):
    study, _ = make()
    many = study.experiment("many", vary={"x": list(range(40))})
    with pytest.raises(LabError, match="no python"):
        failing(study, many, set(range(1, 40)), LabError("no python there"))
    assert 2 < len(many.failures()) < 20


def test_two_alike_failures_before_anything_came_out_end_the_study(make):
    study, speed = make()
    with pytest.raises(SystemFailure, match="it died"):
        failing(study, speed, {0, 1}, SystemFailure("it died"))
    assert len(speed.failures()) == 2
    again, speed = make()
    tried = failing(again, speed, {1, 2}, SystemFailure("it died"))
    assert len(tried) == 5 and len(speed.failures()) == 1, "once one came out, others may fail"
    once_more, speed = make(repeats=2)
    assert len(failing(once_more, speed, {0, 1}, SystemFailure("it died"))) > 2


def test_two_failures_that_differ_do_not_end_it(make):
    study, speed = make()
    errors = iter([SystemFailure("it died"), SystemFailure("no answer")])
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            for error in errors:
                raise error
            attempt.record([])
    study.complete()


def test_the_first_failure_is_reported_at_once(make, capsys, monkeypatch):
    monkeypatch.setattr("labbook.study.progress.interactive", lambda: False)
    study, speed = make()
    failing(study, speed, {0, 2}, SystemFailure("it died"))
    output = capsys.readouterr().err
    assert output.count("it died") == 1 and speed.points()[0].label in output


def test_alike_failures_are_reported_once(make):
    study, speed = make()
    failing(study, speed, set(range(1, 8)), SystemFailure("it died"))
    with pytest.raises(PointsFailed) as raised:
        study.complete()
    assert str(raised.value).count("it died") == 1 and "and 2 more" in str(raised.value)

"""What a study on a fleet hands out, and what it measures where."""

import json

import pandas as pd
import pyarrow as pa
import pytest
from study_stand_ins import make  # noqa: F401 (a fixture)

from labbook.errors import InputError, LabbookError
from labbook.pipeline.fleet import plans
from labbook.study import fleet
from labbook.study.records.fingerprint import Fingerprint


def table():
    return pa.Table.from_pandas(pd.DataFrame({"seconds": [1.0]}))


KINDS = {"rack1": {"cpu": "AMD EPYC", "cores": 2}, "rack2": {"cpu": "Intel Xeon", "cores": 4}}
OF_ALL = {"memory_gib": 8, "kernel": "6.18.1", "system": "Debian", "python": "3.11"}


def measured_on(study, point, machine, mean_ms=1.0):
    study.records(point.experiment).write(point.key, table(), {
        "key": point.key, "fingerprint": study.fingerprint.code, "block": point.block, "order": point.order,
        "repeat": point.repeat, "setup": point.setup, "vary": point.vary, "took_s": 4.0,
        "summary": {"mean_ms": mean_ms}, "environment": str(study.environment), "provenance": {
            "machine": {"id": machine, **KINDS[machine], **OF_ALL}, "versions": {},
            "code": {"commit": None, "changed": None},
            "during": {"started": 0.0, "ended": 4.0, "steal": 0.0, "pressure": {}}}}, {})


def judged_on(study, speed, machine_of, ratio_of=lambda machine: 2.0):
    """The verdict where system a took `ratio_of` a repeat's machine times as long as b. machine_of: of a point."""
    for point in speed.points():
        machine = machine_of(point)
        measured_on(study, point, machine, ratio_of(machine) if point.system == "a" else 1.0)
    verdict, = study.judged(["slower"])
    return verdict


@pytest.fixture
def planned(root, make, monkeypatch):  # noqa: F811
    """A study on a fleet that only plans, with one point measured."""
    monkeypatch.setenv("LABBOOK_FLEET", "fleet-rack")
    monkeypatch.setenv("LABBOOK_PLAN", "1")
    study, speed = make(repeats=2)
    ceilings = study.experiment("ceilings", vary={"clients": [1]})
    return study, speed, ceilings


def test_a_plan_has_what_is_left_by_repeat_and_ceilings_for_every_machine(planned, monkeypatch, tmp_path):
    study, speed, ceilings = planned
    measured_on(study, speed.points()[0], "rack1")
    measured_on(study, ceilings.points()[0], "rack1")
    for point in speed.points()[4:]:
        measured_on(study, point, "rack2")
    monkeypatch.setenv("LABBOOK_PROGRESS", str(tmp_path / "progress"))
    assert list(speed.remaining()) == [] and list(ceilings.remaining()) == []
    events = [json.loads(line) for line in (tmp_path / "progress").read_text().splitlines()]
    handed = {one["experiment"]: one for one in events if one["event"] == "hand_out"}
    story = type("Story", (), {"experiments": handed})
    (job,), own = plans.jobs("demo", story)
    assert (job.experiment, job.repeat, job.home, len(job.points)) == ("speed", 1, "rack1", 4)
    assert [point.key for point in job.left("rack1")] == [point.key for point in speed.points()[1:4]]
    assert len({point.setup for point in job.points}) == 2 and all(point.point_s > 0 for point in job.points)
    assert [(name, point.key, point.machine) for name, point in own] == [("ceilings", ceilings.points()[0].key, "rack1")]


def test_a_whole_repeat_that_two_machines_measured_is_handed_out_again(planned):
    """It had been left for good, and counted for no verdict."""
    study, speed, ceilings = planned
    odd = speed.points()[1]
    for point in (*speed.points(), *ceilings.points()):
        measured_on(study, point, "rack2" if point is odd else "rack1")
    todo = fleet.with_mixed(study, speed, speed.points(), [])
    assert todo == [odd]
    (of_one,) = fleet.to_hand_out(study, speed, todo)["repeats"]
    assert sorted(str(point["machine"]) for point in of_one["points"]) == ["None", *["rack1"] * 3]
    assert fleet.with_mixed(study, ceilings, ceilings.points(), []) == [], "no claim reads them"


def test_a_run_is_not_complete_with_a_repeat_of_two_machines(planned, monkeypatch):
    """It had ended well and its page was up to date, so that the repeat was never measured anew."""
    study, speed, ceilings = planned
    study.run.plan_only = False
    for point in (*speed.points(), *ceilings.points()):
        measured_on(study, point, "rack1")
    study.run.check_complete()
    measured_on(study, speed.points()[1], "rack2")
    with pytest.raises(LabbookError, match="1 points were not measured, since no machine of the fleet"):
        study.run.check_complete()


def test_of_a_repeat_of_two_machines_the_one_with_most_is_published(planned):
    study, speed, ceilings = planned
    for point in speed.points():
        measured_on(study, point, "rack2" if point.repeat == 2 or point is speed.points()[1] else "rack1")
    metas = {point.key: study.records("speed").meta(point.key) for point in speed.points()}
    odd = speed.points()[1].key
    assert list(fleet.of_most(study, "speed", metas)) == [key for key in metas if key != odd]
    assert fleet.of_most(study, "ceilings", metas) == metas, "no claim reads them"


def test_a_repeat_that_two_machines_measured_counts_for_no_verdict(planned, make):  # noqa: F811
    """Its ratio would be one of two machines."""
    study, speed = make(repeats=7)
    odd = next(point for point in speed.points() if point.repeat == 4)
    assert judged_on(study, speed, lambda point: "rack1").n == 7
    verdict = judged_on(study, speed, lambda point: "rack2" if point is odd else "rack1")
    assert (verdict.verdict, verdict.n) == ("replicated", 6)


def test_a_verdict_on_which_two_kinds_of_machine_disagree_says_so(planned, make):  # noqa: F811
    study, speed = make(repeats=12)
    verdict = judged_on(study, speed, lambda point: "rack1" if point.repeat <= 6 else "rack2",
                        {"rack1": 2.0, "rack2": 0.5}.get)
    assert verdict.n == 12
    assert "kinds of machines disagree: AMD EPYC, 2 cores, Linux 6.18: replicated, 2 times" in verdict.reason
    assert "; Intel Xeon, 4 cores, Linux 6.18: not replicated, 0.5 times" in verdict.reason


def test_a_failure_of_earlier_code_is_no_reason_today(planned):
    study, speed, _ = planned
    study.run.plan_only = False
    point = speed.points()[0]
    for code, said in ((study.fingerprint.code, ["no space"]), ("earlier", [])):
        study.records("speed").write_failure(point.key, {"key": point.key, "message": "no space", "fingerprint": code,
                                                         "provenance": {"versions": {}}}, "trace")
        assert [one["message"] for one in study.run.failures(speed)] == said


def test_a_ceiling_of_earlier_code_is_of_no_machine(planned, monkeypatch):
    study, _, ceilings = planned
    point, = ceilings.points()
    measured_on(study, point, "rack1")
    study.run.remeasure, study.fingerprint = True, Fingerprint("new", {})
    handed = fleet.to_hand_out(study, ceilings, [point])
    assert [one["machine"] for each in handed["repeats"] for one in each["points"]] == [None]


def test_where_a_fleet_is_driven_nothing_is_measured(planned, monkeypatch):
    monkeypatch.delenv("LABBOOK_PLAN")
    study, speed, _ = planned
    study.run.plan_only = False
    assert list(speed.remaining()) == [] and study.place == "fleet-rack"


def test_a_machine_measures_its_points_alone_and_stops(root, make, monkeypatch):  # noqa: F811
    wanted = make(repeats=2)[1].points()[5]
    monkeypatch.setenv("LABBOOK_POINTS", json.dumps({"speed": [wanted.key]}))
    study, speed = make(repeats=1)
    assert list(speed.remaining()) == [wanted], "also of a repeat that is not declared"
    assert not study.run.makes_page


@pytest.mark.parametrize("name, text", [("LABBOOK_FLEET", "0123456789"), ("LABBOOK_FLEET", "fleet-../x"),
                                        ("LABBOOK_POINTS", "[1]"), ("LABBOOK_POINTS", "{")])
def test_another_shape_is_refused(monkeypatch, name, text):
    monkeypatch.setenv(name, text)
    with pytest.raises(InputError, match=name):
        fleet.folder_of_environment()
        fleet.points_of_environment()

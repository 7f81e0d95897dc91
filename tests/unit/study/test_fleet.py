"""What a study on a fleet hands out, and what it measures where."""

import json

import pandas as pd
import pyarrow as pa
import pytest
from study_stand_ins import make  # noqa: F401 (a fixture)

from labbook.errors import InputError
from labbook.pipeline.fleet import plans
from labbook.study import fleet
from labbook.study.records.fingerprint import Fingerprint


def table():
    return pa.Table.from_pandas(pd.DataFrame({"seconds": [1.0]}))


def measured_on(study, point, machine):
    study.records(point.experiment).write(point.key, table(), {
        "key": point.key, "fingerprint": study.fingerprint.code, "block": point.block, "took_s": 4.0,
        "repeat": point.repeat, "provenance": {"machine": {"id": machine}, "versions": {}}}, {})


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

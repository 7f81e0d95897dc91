"""What a complete run writes down of itself for publishing."""

import json

import pytest

from labbook.errors import InputError
from labbook.study.parameters import given
from labbook.study.publication import completed
from labbook.study.records import provenance


@pytest.fixture
def ran(make, measure, monkeypatch):
    """A complete quick run of a notebook with parameters."""
    monkeypatch.setattr(given, "values", lambda study: {"repeats": 1, "sizes": (1, 2)})
    study, speed = make()
    study.experiment("left_out", setup={"system": ["a"]}, repeats=0)
    measure(study, speed)
    study.complete()
    return study


def test_a_run_has_its_parameters_environment_fleet_and_experiments(ran):
    run = completed.last("demo", "quick")
    assert run["parameters"] == {"repeats": 1, "sizes": [1, 2]} and run["environment"] == "environments/local.yml"
    assert run["fleet"] is None and run["file"].parent.parent.name == provenance.machine_id()
    assert completed.experiments(ran.place, "demo", "quick") == ["left_out", "speed"], "also those without points"
    assert completed.setups(ran.place, "demo", "quick") == run["setups"] == {"left_out": ["system"], "speed": ["system"]}
    assert completed.last("demo", "full") is None and completed.experiments(ran.place, "demo", "full") is None


def test_the_same_run_again_changes_nothing(ran, make):
    """A file of records that changes makes a page out of date."""
    file = completed.last("demo", "quick")["file"]
    before = file.read_bytes()
    ran.complete()
    assert file.read_bytes() == before
    study, _ = make()
    study.complete()
    assert completed.experiments(study.place, "demo", "quick") == ["speed"]


def test_the_run_that_was_complete_last_is_the_last_one(ran):
    ran.run.fleet = "fleet-rack"
    del ran.place
    completed.write(ran)
    run = completed.last("demo", "quick")
    assert (run["fleet"], run["file"].parent.parent.name) == ("fleet-rack", "fleet-rack")


def test_only_the_points_of_the_runs_own_experiments_are_listed(ran):
    folder = completed.last("demo", "quick")["file"].parent
    (folder / "gone").mkdir()
    (folder / "gone/quick.grid").write_text("")
    names = [grid.parent.name for grid in completed.grids(ran.place, "demo", "quick")]
    assert names == ["left_out", "speed"]
    (folder / "quick.json").unlink()
    assert len(completed.grids(ran.place, "demo", "quick")) == 3, "a run of before there was such a file"


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"experiments": ["speed"]})])
def test_a_damaged_file_is_named_and_written_anew(ran, text):
    file = completed.last("demo", "quick")["file"]
    file.write_text(text)
    with pytest.raises(InputError, match="quick.json: .*damaged.*remove it"):
        completed.last("demo", "quick")
    ran.complete()
    assert completed.last("demo", "quick")["experiments"] == ["left_out", "speed"]

"""Repeats of a further run go behind the published ones, if code, versions and design are the same."""

import json

import pandas as pd
import pytest
from published_stand_ins import HERE

from labbook.errors import InputError
from labbook.pipeline.publishing import keeping, publish
from labbook.study.publication import published, published_verdicts
from labbook.study.records.fingerprint import Fingerprint
from labbook.study.records.record import grid_text


def test_repeats_of_a_further_run_are_added_behind_the_published_ones(full, make, measure, root, monkeypatch):
    publish.export(full[0])
    before = published.rows("demo", HERE, "speed")
    assert len(publish.export(full[0], add=True)) and len(published.rows("demo", HERE, "speed")) == len(before), "nothing new"
    monkeypatch.setenv("LABBOOK_RECORDS", str(root / "new records"))
    study, speed = make(repeats=2, setup={"system": ["a", "b"]}, vary={"clients": [2, 70]})
    measure(study, speed, lambda p: 0.03 if p.system == "a" else 0.01)
    study.complete()
    messages = []
    publish.export(study, add=True, report=messages.append)
    after = published.rows("demo", HERE, "speed")
    assert messages == ["speed: repeats 1 to 3 as published, 4 to 5 added"]
    assert sorted(set(after["repeat"])) == [1, 2, 3, 4, 5] and after["point"].is_unique
    shared = [name for name in before if name not in ("over", "facts")]
    pd.testing.assert_frame_equal(after[:12][shared], before[shared], check_dtype=False)
    assert published.read_run("demo")["experiments"]["speed"]["points"] == 20
    slower, = published_verdicts.verdicts("demo", HERE)
    assert slower["n"] == 5
    publish.export(study, add=True, report=messages.append)
    assert len(published.rows("demo", HERE, "speed")) == 20 and len(messages) == 1, "the same run twice"


def test_the_rest_of_a_repeat_that_is_published_in_part_gets_its_number(full, make, measure, root, monkeypatch):
    """One system had been asked on to more repeats. The other's same repeats were numbered behind those, so that no
    repeat had both."""
    publish.export(full[0])
    monkeypatch.setenv("LABBOOK_RECORDS", str(root / "new records"))
    study, speed = make(repeats=3, setup={"system": ["a", "b"]}, vary={"clients": [2, 70]})
    measure(study, speed)
    study.complete()
    grid, messages = study.records("speed").folder / "full.grid", []
    grid.write_text(grid_text([p.key for p in speed.points() if p.repeat < 2 or (p.repeat == 2 and p.system == "a")]))
    publish.export(study, add=True, report=messages.append)
    study.run.write_grids()
    publish.export(study, add=True, report=messages.append)
    assert messages == ["speed: repeats 1 to 3 as published, 4 to 5 added",
                        "speed: repeats 1 to 5 as published, 6 to 6 added",
                        "speed: points added to the published repeats 5"]
    after = published.rows("demo", HERE, "speed")
    assert after.groupby("repeat").size().tolist() == [4] * 6 and after["point"].is_unique
    assert not after.duplicated(["system", "clients", "repeat"]).any()


def test_a_point_that_was_measured_again_gets_a_repeat_of_its_own(full, measure, make, monkeypatch):
    publish.export(full[0])
    study, speed = full
    study.records("speed").path(speed.points()[0].key).unlink()
    study, speed = make(repeats=3, setup={"system": ["a", "b"]}, vary={"clients": [2, 70]})
    measure(study, speed)
    study.complete()
    publish.export(study, add=True)
    after = published.rows("demo", HERE, "speed")
    assert after.groupby("repeat").size().tolist() == [4, 4, 4, 1] and after["point"].is_unique


def test_an_experiment_to_which_repeats_are_added_keeps_its_parameters(full):
    """A run of one kernel more had left the page without the others."""
    publish.export(full[0], values={"speed": {"clients": [2, 70]}, "seconds": 1})
    messages = []
    publish.export(full[0], values={"speed": {"clients": [2]}, "seconds": 2, "new": 3}, report=messages.append, add=True)
    assert published.read_run("demo", HERE)["parameters"] == {"speed": {"clients": [2, 70]}, "seconds": 1, "new": 3}
    assert "seconds: stays as published, 1, since published points were measured so; the run had 2" in messages


def test_repeats_of_other_code_are_not_added(full, make, monkeypatch):
    publish.export(full[0])
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda name: Fingerprint("new", {}))
    with pytest.raises(InputError, match="other code"):
        publish.export(make()[0], add=True)


def test_repeats_that_were_measured_before_a_change_are_not_added(full, make, measure, root, monkeypatch):
    publish.export(full[0])
    monkeypatch.setenv("LABBOOK_RECORDS", str(root / "new records"))
    grid = {"setup": {"system": ["a", "b"]}, "vary": {"clients": [2, 70]}}
    with monkeypatch.context() as earlier:
        earlier.setattr("labbook.study.study.fingerprint", lambda name: Fingerprint("old", {}))
        measure(*make(**grid))
    study, speed = make(repeats=2, **grid)
    assert len(measure(study, speed)) == 4, "a full run leaves points of earlier code"
    study.complete()
    messages = []
    publish.export(study, add=True, report=messages.append)
    assert messages == ["speed: 1 repeat measured before a change stays out (code)",
                        "speed: repeats 1 to 3 as published, 4 to 4 added"]
    after = published.rows("demo", HERE, "speed")
    assert len(after) == 16 and not after["stale"].any()


def test_repeats_of_other_versions_are_not_added_unless_these_are_carried_over(full, make, measure, root, monkeypatch):
    """They had been joined, and the stamp had then named today's versions for all."""
    publish.export(full[0])
    stamp, code = published.fingerprint_path("demo", HERE), full[0].fingerprint.code
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"versions": {"mariadb-server": "1:10", "gone": "1"}}))
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda name: Fingerprint(code, {"mariadb-server": "1:11"}))
    monkeypatch.setenv("LABBOOK_RECORDS", str(root / "new records"))
    study, speed = make(repeats=2, setup={"system": ["a", "b"]}, vary={"clients": [2, 70]})
    measure(study, speed)
    study.complete()
    before = stamp.read_text(), published.file("demo", HERE, "speed").read_bytes()
    with pytest.raises(InputError, match=r"mariadb-server 1:10 \(now 1:11\) \(allowed: --replace speed") as refused:
        publish.export(study, add=True)
    assert "gone" not in str(refused.value), "a package of one side is no difference"
    assert (stamp.read_text(), published.file("demo", HERE, "speed").read_bytes()) == before
    publish.carry_over("demo", "a security release")
    publish.export(study, add=True)
    assert published.points("demo", HERE) == 20


def test_points_that_stayed_while_the_versions_changed_are_stale_and_get_no_more_repeats(full, make, measure, root, monkeypatch):
    """A run that measured something else put today's versions on the set's stamp, and repeats of both were joined."""
    publish.export(full[0])
    stamp, code = published.fingerprint_path("demo", HERE), full[0].fingerprint.code
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"versions": {"mariadb-server": "1:10"}}))
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda name: Fingerprint(code, {"mariadb-server": "1:11"}))
    monkeypatch.setenv("LABBOOK_RECORDS", str(root / "new records"))
    study, speed = make(repeats=2, setup={"system": ["a", "b"]}, vary={"clients": [2, 70]})
    measure(study, speed)
    study.complete()
    keeping.mark_stale(study, HERE, ["speed"])      # as it stays beside what the run measured
    published.stamp(study, HERE, [])
    assert published.rows("demo", HERE, "speed")["stale"].all()
    with pytest.raises(InputError, match="before a change of code or versions.*--replace speed"):
        publish.export(study, add=True)


def test_published_points_of_earlier_versions_are_stale_once_the_stamp_names_todays(full):
    """A run with nothing new put today's versions on the stamp, and what was of earlier ones passed for today's."""
    for versions, stale in ((full[0].fingerprint.versions, False), ({"python": "3.0"}, True)):
        publish.export(full[0])
        stamp = published.fingerprint_path("demo", HERE)
        stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"versions": versions}))
        publish.export(full[0], add=True)
        assert published.rows("demo", HERE, "speed")["stale"].tolist() == [stale] * 12
        assert published.versions("demo", HERE)["python"] == full[0].fingerprint.versions["python"]


@pytest.mark.parametrize("vary, further, message, added", [
    ({"clients": [2, 70], "more": [1]}, (), "kept as it is published, since this run has other parameters (more)", 0),
    ({"clients": [80, 90]}, (), "points at settings that are not published stay out (clients 80, clients 90)", 0),
    ({"clients": [2, 80]}, ("system",), "points at settings that are not published stay out (clients 80)", 4),
    ({"clients": [2, 80]}, ("clients",), "settings that are not published are added (clients 80)", 8)])
def test_points_of_another_design_are_not_added_unless_they_are_named(
        full, make, measure, root, monkeypatch, vary, further, message, added):
    publish.export(full[0])
    before, messages = published.rows("demo", HERE, "speed"), []
    monkeypatch.setenv("LABBOOK_RECORDS", str(root / "new records"))
    study, speed = make(repeats=2, setup={"system": ["a", "b"]}, vary=vary)
    measure(study, speed)
    study.complete()
    publish.export(study, add=True, report=messages.append, further=further)
    after = published.rows("demo", HERE, "speed")
    assert messages[0] == f"speed: {message}" and len(after) == len(before) + added
    shared = [name for name in before if name not in ("over", "facts")]
    pd.testing.assert_frame_equal(after[:len(before)][shared], before[shared], check_dtype=False)
    assert set(after["repeat"][len(before):]) == ({4, 5} if added else set())

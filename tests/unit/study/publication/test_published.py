"""Published summaries: damage is reported, files of earlier versions are read, and sets stand beside each other."""

import json
import random
import shutil

import pandas as pd
import pytest
from damage import damaged
from published_stand_ins import HERE, OTHER, other_machine

from labbook.errors import InputError
from labbook.pipeline.publishing import keeping, publish
from labbook.study.publication import machine_kind, published, published_verdicts
from labbook.study.records import provenance
from labbook.study.records.fingerprint import Fingerprint


@pytest.fixture
def study(make, measure, monkeypatch):
    """A study whose summaries are published, read by a process that only reads them."""
    made, speed = make()
    measure(made, speed, facts={"version": "1"})
    made.complete()
    publish.export(made, "quick")
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    return make()[0]


def test_a_thousand_damages_to_a_published_summary_are_all_reported(study):
    file, draw = published.file("demo", HERE, "speed"), random.Random(3)
    whole = file.read_bytes()
    assert len(published.load(study, "speed")) == 4
    for _ in range(1000):
        wrong = damaged(whole, draw)
        if wrong == whole:      # zeros over zeros
            continue
        file.write_bytes(wrong)
        with pytest.raises(InputError, match="speed.parquet: the published file is damaged"):
            published.load(study, "speed")


def test_a_published_summary_of_an_earlier_version_is_read(study):
    file = published.file("demo", HERE, "speed")
    frame = pd.read_parquet(file)
    frame.to_parquet(file)
    pd.testing.assert_frame_equal(published.load(study, "speed"), frame, check_dtype=False)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match="the published file is damaged"):
        published.load(study, "speed")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"versions": {}}'])
def test_a_damaged_fingerprint_of_published_summaries_is_reported(study, text):
    published.fingerprint_path("demo", HERE).write_text(text)
    with pytest.raises(InputError, match="fingerprint.json: the published file is damaged"):
        published.load(study, "speed")


def test_a_stamp_of_an_earlier_version_names_no_changes(study):
    """It had counted as damaged, after the set's tables had been written."""
    path = published.fingerprint_path("demo", HERE)
    stamp = json.loads(path.read_text())
    del stamp["changes"]
    path.write_text(json.dumps(stamp | {"why": "published from the records of a run"}))
    assert published.changes("demo", HERE) == []
    publish.carry_over("demo", "moved, not changed")
    assert [one["why"] for one in published.changes("demo", HERE)] == ["moved, not changed"]


def test_of_alternatives_a_stamp_names_the_one_that_is_installed(study):
    """With both, the set would differ from every machine for ever."""
    group = ("openjdk-17-jre", "default-jre")
    for versions in ({"openjdk-17-jre": "17"}, {"default-jre": "21"}):
        study.fingerprint = Fingerprint("code", versions | {"mariadb-server": "11"}, (group,))
        published.stamp(study, HERE, [])
        assert _servers() == versions | {"mariadb-server": "11"}
        assert not study.fingerprint.differs("code", published.versions("demo", HERE))
    study.fingerprint = Fingerprint("code", {}, (group,))
    published.stamp(study, HERE, [])
    assert _servers() == {"default-jre": "21", "mariadb-server": "11"}, "a machine without Java"


def _servers() -> dict:
    """The versions of a stamp, without those of Python's packages."""
    return {name: version for name, version in published.versions("demo", HERE).items() if "python" not in name}


def test_the_note_on_a_published_run_is_read_and_its_damage_is_reported(root):
    file = root / "data/published/demo/epyc/run.json"
    assert published.read_run("demo") == {}
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"profile": "full", "parameters": {"repeats": 3}}))
    assert published.read_run("demo")["parameters"] == {"repeats": 3}
    for text in (file.read_text()[:-3], "[]"):
        file.write_text(text)
        with pytest.raises(InputError, match="run.json: the published file is damaged"):
            published.read_run("demo")


def test_a_file_that_run_json_does_not_name_is_none_of_the_set(study):
    """A publishing was killed between a new experiment's file and run.json."""
    later = study.experiment("later", vary={"x": [1]}, repeats=0)
    shutil.copy(published.file("demo", HERE, "speed"), published.file("demo", HERE, "later"))
    assert published.experiments("demo") == ["speed"] and not published.has("demo", "later")
    assert not len(later.summary()) and study.conditions()["points"] == 4
    with pytest.raises(InputError, match="nothing is published of this experiment"):
        published.load(study, "later")


def test_a_file_that_is_gone_is_said_with_its_name(study):
    published.file("demo", HERE, "speed").unlink()
    with pytest.raises(InputError, match="speed.parquet: the published file is damaged .it is not there, though run.json names it"):
        published.load(study, "speed")


@pytest.mark.parametrize("cpu, cores, kernel, name", [
    ("AMD EPYC", 2, "6.18.44-fc-v669", "amd-epyc-2-cores-linux-6.18"),
    ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", 28, "6.1.0-28-amd64", "intel-xeon-e5-2680-v4-28-cores-linux-6.1")])
def test_a_machines_kind_is_a_name_without_marks_and_patch_levels(cpu, cores, kernel, name):
    machine = {"cpu": cpu, "cores": cores, "kernel": kernel}
    assert machine_kind.slug(machine_kind.kind(machine)) == name
    assert f"{cores} cores, Linux " in machine_kind.words(machine_kind.kind(machine))


def test_a_points_machine_is_its_lab_hosts_where_they_are_elsewhere():
    here, there = ({"cpu": cpu, "cores": 2, "kernel": "6.1"} for cpu in ("a", "b"))
    assert machine_kind.of_point({"machine": here, "lab": {"hosts": {"x": {"cores": [0]}}}})["cpu"] == "a"
    remote = {"machine": here, "lab": {"hosts": {"x": {"machine": there}, "y": {"machine": there}}}}
    assert machine_kind.of_point(remote)["cpu"] == "b"


def test_points_of_other_disks_than_lab_ymls_are_left_out_where_there_are_such(study, monkeypatch):
    shutil.copytree(published.folder("demo", HERE), published.folder("demo", "other"))
    assert {machine for machine, _ in published.parts(study, "speed")} <= {HERE, "other"}
    (study.folder / "lab.yml").write_text("sites: [lan]\nhosts: {server: {site: lan, role: db, "
                                          "limits: {disk: {size: 1G, model: hdd_2010}}}}\n")
    assert len(published.parts(study, "speed")) == 1    # no set has such disks: all are asked
    frames = {name: published.rows("demo", name, "speed") for name in (HERE, "other")}
    lab = json.dumps({"lab": {"hosts": {"server": {"limits": {"disk": {"model": "hdd_2010"}}}}}})
    frames["other"] = frames["other"].assign(provenance=lab)
    monkeypatch.setattr(published, "rows", lambda study, machine, experiment: frames[machine])
    assert [machine for machine, _ in published.parts(study, "speed")] == ["other"]
    (study.folder / "lab.yml").write_text("sites: [lan]\nhosts: {server: {site: lan, role: db, "
                                          "limits: {disk: {size: 1G, model: hdd_2010, modelled_in: [seeks]}}}}\n")
    assert published.parts(study, "speed")[0][0] == published.sets("demo")[0]   # none of its own is asked for


def test_a_study_without_a_lab_has_its_points(study):
    (study.folder / "lab.yml").unlink(missing_ok=True)
    assert [machine for machine, _ in published.parts(study, "speed")] == [HERE]


def test_points_of_another_design_are_left_out(study, monkeypatch):
    """Such as those of the quick profile, which calls for a shorter time; another number of clients is a setting."""
    shutil.copytree(published.folder("demo", HERE), published.folder("demo", "other"))
    frame, names = published.rows("demo", HERE, "speed"), published.parameters("demo", HERE, "speed")
    many = next(name for name in names if frame[name].nunique() > 1)
    frame = frame.assign(calling_s=20.0)
    shorter, further = frame.assign(calling_s=10.0, **{many: 77}), frame.assign(**{many: 77})
    monkeypatch.setattr(published, "parameters", lambda *_: [*names, "calling_s"])
    for other, there in ((shorter, 1), (further, 2)):
        frames = dict(zip(published.sets("demo"), (frame, other)))
        monkeypatch.setattr(published, "rows", lambda study, machine, experiment, frames=frames: frames[machine])
        assert len(published.parts(study, "speed")) == there


def test_an_experiment_that_came_after_the_published_run_has_no_points(study):
    later = study.experiment("later", vary={"x": [1]}, repeats=0)
    assert list(later.summary().columns[:2]) == ["point", "x"] and not len(later.summary())
    assert study.conditions()["points"] == 4
    with pytest.raises(InputError, match="nothing is published of this experiment"):
        study.experiment("lost", vary={"x": [1]}).summary()


def test_nothing_published_is_reported(make, monkeypatch):
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    _, speed = make()
    with pytest.raises(InputError, match="nothing is published"):
        speed.summary()


def test_sets_of_several_machines_stand_beside_each_other(full, make, monkeypatch):
    study, speed = full
    publish.export(study)
    monkeypatch.setattr(provenance, "machine", other_machine)
    monkeypatch.setattr(machine_kind, "of_point", lambda found: machine_kind.kind(other_machine()))
    publish.export(study, "quick")
    assert published.sets("demo") == [HERE, OTHER], "the one with the most points first"
    assert [published.points("demo", machine) for machine in (HERE, OTHER)] == [12, 4]
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    study, speed = make()
    table = speed.summary()
    assert len(table) == 12 + 2, "a setting that the first set lacks is the other's, no setting is of both"
    assert set(table["clients"][12:]) == {1}
    assert set(published_verdicts.by_machine("demo")) == {HERE, OTHER}


def test_the_set_that_decides_the_most_claims_is_shown_first(two_sets):
    for machine, verdict in ((HERE, "open"), (OTHER, "not replicated")):
        file = published_verdicts.claims_path("demo", machine)
        judged = json.loads(file.read_text())
        judged["claims"][0]["verdict"] = verdict
        file.write_text(json.dumps(judged))
    assert published.sets("demo") == [OTHER, HERE]
    published_verdicts.claims_path("demo", OTHER).write_text("{}")
    assert published.sets("demo") == [HERE, OTHER]


def test_of_an_experiment_points_of_todays_code_go_before_those_of_earlier_code(two_sets, make, monkeypatch):
    """A cold ring's numbers had stood before those of a warm one, since the other machine decides more claims."""
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    keeping.make_stale("demo", HERE, ["speed"])
    shown = [machine for machine, _ in published.parts(make()[0], "speed")]
    assert shown == [OTHER, HERE] and published.sets("demo") == [HERE, OTHER]
    keeping.make_stale("demo", OTHER, ["speed"])
    assert [machine for machine, _ in published.parts(make()[0], "speed")] == [HERE, OTHER]


def test_points_of_a_set_that_was_published_by_earlier_code_go_last_too(two_sets, make, monkeypatch):
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    stamp = published.fingerprint_path("demo", HERE)
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"code": "earlier"}))
    assert [machine for machine, _ in published.parts(make()[0], "speed")] == [OTHER, HERE]


def test_points_of_another_design_are_not_mixed_with_those_of_the_first_set(two_sets, make, monkeypatch):
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    monkeypatch.setattr(published, "parameters", lambda study, machine, experiment: ["system", "clients"] + ["slices"] * (machine == OTHER))
    assert len(make()[1].summary()) == 12

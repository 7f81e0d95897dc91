"""Published summaries give the same figures and verdicts without a lab."""

import json
import shutil

import pandas as pd
import pytest

from labbook.claims import rules
from labbook.errors import InputError
from labbook.pipeline.executing import pages
from labbook.pipeline.publishing import outcomes, publish
from labbook.study.publication import completed, machine_kind, published, published_verdicts
from labbook.study.records import provenance
from labbook.study.records.fingerprint import Fingerprint

HERE = machine_kind.slug(machine_kind.kind(provenance.machine()))
OTHER = "other-8-cores-linux-5.4"


@pytest.fixture
def full(make, measure, monkeypatch):
    """A complete full run, and beside it points of another profile."""
    monkeypatch.setenv("LABBOOK_PROFILE", "quick")
    study, speed = make()
    measure(study, speed)
    study.complete()
    monkeypatch.setenv("LABBOOK_PROFILE", "full")
    study, speed = make(repeats=3, setup={"system": ["a", "b"]}, vary={"clients": [2, 70]})
    measure(study, speed, lambda p: 0.02 if p.system == "a" else 0.01,
            metrics={"over": [1.5, 2]}, facts={"version": "1"})
    study.complete()
    return study, speed


def test_published_and_fresh_summaries_agree(full, make, measure, labs, root, monkeypatch):
    study, speed = full
    fresh, verdict = speed.summary(), study.judge("slower")
    file = publish.export(study)[0]
    assert file == root / "data/published/demo" / HERE / "speed.parquet" and file.stat().st_size < 30_000
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    monkeypatch.setenv("LABBOOK_RECORDS", "/nonexistent")
    study, speed = make()   # the notebook's own parameters do not matter
    before = len(labs.made)
    assert measure(study, speed) == []
    study.complete()
    now = speed.summary()
    assert [list(v) for v in now.pop("over").dropna()] == list(fresh.pop("over").dropna())
    pd.testing.assert_frame_equal(now, fresh, check_dtype=False)
    again = study.judge("slower")
    assert (again.measured, again.low, again.high) == (verdict.measured, verdict.low, verdict.high)
    assert again.profile == "full" and again.conditions == verdict.conditions
    assert len(labs.made) == before


def test_published_summaries_are_stale_when_the_code_has_changed_until_carried_over(
        full, make, root, monkeypatch):
    publish.export(full[0])
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    study, speed = make()
    assert not speed.summary()["stale"].any() and "stale_because" not in study.conditions()
    today = Fingerprint("new", study.fingerprint.versions)
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda name: today)
    study, speed = make()
    assert speed.summary()["stale"].all() and study.conditions()["stale_because"] == ["code"]
    file, _ = publish.carry_over("demo", "moved, not changed")
    assert json.loads(file.read_text()) == {
        "code": "new", "versions": today.versions, "why": "moved, not changed"}
    study, speed = make()
    assert not speed.summary()["stale"].any() and study.conditions()["stale"] == 0
    file.unlink()
    study, speed = make()
    assert speed.summary()["stale"].all(), "nothing says for which code they stand"
    with pytest.raises(InputError, match="no study 'other'"):
        publish.carry_over("other", "why")


def test_only_the_named_sets_are_carried_over(full, root):
    publish.export(full[0])
    folder, = (root / "data/published/demo").iterdir()
    stamp = folder.with_name("other-machine") / "fingerprint.json"
    shutil.copytree(folder, stamp.parent)
    before = stamp.read_text()
    publish.carry_over("demo", "moved, not changed", [folder.name])
    assert stamp.read_text() == before and "moved" in (folder / "fingerprint.json").read_text()
    with pytest.raises(InputError, match="no published set 'other'.*--set|--set.*no published set 'other'"):
        publish.carry_over("demo", "why", ["other"])


def test_only_what_the_profile_stood_on_is_published(full):
    frame = pd.read_parquet(publish.export(full[0])[0])
    assert len(frame) == 12 and set(frame["clients"]) == {2, 70}
    assert frame["facts"].str.contains("version").sum() == 12 - 2, "two points are of the quick run"
    frame = pd.read_parquet(publish.export(full[0], "quick", replace=["speed"])[0])
    assert set(frame["clients"]) == {1, 2}


def test_nothing_to_publish_is_said(make, measure):
    study, speed = make()
    with pytest.raises(InputError, match="no complete run"):
        publish.export(study)
    measure(study, speed)
    study.complete()
    study.records("speed").path(speed.points()[0].key).unlink()
    with pytest.raises(InputError, match="1 of its 4 points"):
        publish.export(study, "quick")


def test_nothing_published_is_said(make, monkeypatch):
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    _, speed = make()
    with pytest.raises(InputError, match="nothing is published"):
        speed.summary()


def test_an_experiment_that_was_left_out_is_published_as_such(make, measure, monkeypatch):
    study, speed = make(repeats=0)
    study.complete()
    publish.export(study, "quick")
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    study, speed = make()
    assert not len(speed.summary()) and study.conditions(speed) == {}
    assert study.judge("slower").reason == "nothing was measured"


def test_an_experiment_that_a_run_did_not_measure_keeps_what_was_published(full, make):
    publish.export(full[0], values={"repeats": 3})
    study, _ = make(repeats=0)
    study.complete()
    publish.export(study)
    assert published.read_run("demo")["experiments"] == {"speed": {"points": 12, "parameters": ["system", "clients"]}}
    assert published.points("demo", HERE) == len(published.rows("demo", HERE, "speed")) == 12


def test_an_experiment_measured_in_part_keeps_what_was_published(full, make, measure, root, monkeypatch):
    """Issue 22: one point of a new run had replaced a whole published experiment."""
    publish.export(full[0], values={"speed": {"repeats": 3}})
    monkeypatch.setenv("LABBOOK_RECORDS", str(root / "new records"))
    study, speed = make(repeats=2, setup={"system": ["a", "b"]}, vary={"clients": [2, 70]})
    measure(study, speed)
    study.complete()
    told = []
    assert publish.export(study, values={"speed": {"repeats": 2}}, tell=told.append) == []
    assert told == ["speed: kept as it is published, since this run has fewer repeats of 4 of its 4 settings, which have 3"]
    assert published.points("demo", HERE) == 12
    assert published.read_run("demo")["parameters"] == {"speed": {"repeats": 3}}
    publish.export(study, replace=["speed"])
    assert published.points("demo", HERE) == 8


def test_an_experiment_without_one_of_the_published_settings_keeps_what_was_published(full, make, measure):
    publish.export(full[0])
    study, speed = make(repeats=3, setup={"system": ["a", "b"]}, vary={"clients": [2]})
    measure(study, speed)
    study.complete()
    told = []
    assert publish.export(study, tell=told.append) == [] and published.points("demo", HERE) == 12
    assert told == ["speed: kept as it is published, since this run has fewer repeats of 2 of its 4 settings, which have 3"]


def test_an_experiment_with_as_many_repeats_of_further_settings_is_replaced(full, make, measure):
    publish.export(full[0])
    study, speed = make(repeats=3, setup={"system": ["a", "b"]}, vary={"clients": [2, 30, 70]})
    measure(study, speed)
    study.complete()
    told = []
    publish.export(study, tell=told.append)
    assert told == [] and published.points("demo", HERE) == 18


def test_repeats_of_a_further_run_are_added_behind_the_published_ones(full, make, measure, root, monkeypatch):
    publish.export(full[0])
    before = published.rows("demo", HERE, "speed")
    assert len(publish.export(full[0], add=True)) and len(published.rows("demo", HERE, "speed")) == len(before), "nothing new"
    monkeypatch.setenv("LABBOOK_RECORDS", str(root / "new records"))
    study, speed = make(repeats=2, setup={"system": ["a", "b"]}, vary={"clients": [2, 70]})
    measure(study, speed, lambda p: 0.03 if p.system == "a" else 0.01)
    study.complete()
    said = []
    publish.export(study, add=True, tell=said.append)
    after = published.rows("demo", HERE, "speed")
    assert said == ["speed: repeats 1 to 3 as published, 4 to 5 added"]
    assert sorted(set(after["repeat"])) == [1, 2, 3, 4, 5] and after["point"].is_unique
    shared = [name for name in before if name not in ("over", "facts")]
    pd.testing.assert_frame_equal(after[:12][shared], before[shared], check_dtype=False)
    assert published.read_run("demo")["experiments"]["speed"]["points"] == 20
    slower, = published_verdicts.verdicts("demo", HERE)
    assert slower["n"] == 5
    publish.export(study, add=True, tell=said.append)
    assert len(published.rows("demo", HERE, "speed")) == 20 and len(said) == 1, "the same run twice"


def test_what_was_carried_over_keeps_its_reason_beside_added_repeats_and_not_when_it_is_replaced(full, make):
    """The stamp of a set with older points had said that all are of a run of today's code."""
    publish.export(full[0])
    publish.carry_over("demo", "moved, not changed")
    for _ in range(2):
        publish.export(full[0], add=True)
        assert published.reason("demo", HERE) == "published from the records of a run; of what was there before: moved, not changed"
    publish.export(full[0])
    assert published.reason("demo", HERE) == "published from the records of a run"


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
    said = []
    publish.export(study, add=True, tell=said.append)
    assert said == ["speed: 1 repeat measured before a change stays out (code)",
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


@pytest.mark.parametrize("vary, words, added", [
    ({"clients": [2, 70], "further": [1]}, "kept as it is published, since this run has other parameters (further)", 0),
    ({"clients": [80, 90]}, "points at settings that are not published stay out (clients 80, clients 90)", 0),
    ({"clients": [2, 80]}, "points at settings that are not published stay out (clients 80)", 4)])
def test_points_of_another_design_are_not_added(full, make, measure, root, monkeypatch, vary, words, added):
    publish.export(full[0])
    before, said = published.rows("demo", HERE, "speed"), []
    monkeypatch.setenv("LABBOOK_RECORDS", str(root / "new records"))
    study, speed = make(repeats=2, setup={"system": ["a", "b"]}, vary=vary)
    measure(study, speed)
    study.complete()
    publish.export(study, add=True, tell=said.append)
    after = published.rows("demo", HERE, "speed")
    assert said[0] == f"speed: {words}" and len(after) == len(before) + added
    shared = [name for name in before if name not in ("over", "facts")]
    pd.testing.assert_frame_equal(after[:len(before)][shared], before[shared], check_dtype=False)


def test_an_unknown_experiment_to_replace_is_said(full):
    with pytest.raises(InputError, match="no experiment 'sped' in this run.*speed"):
        publish.export(full[0], replace=["sped"])


@pytest.fixture
def with_another(full, make, measure):
    """A full run that is published, with an experiment `slower` that the notebook has no more in the next one."""
    grid = {"repeats": 3, "setup": {"system": ["a", "b"]}, "vary": {"clients": [2, 70]}}
    study, _ = make(**grid)
    slower = study.experiment("slower", setup={"system": ["a"]})
    measure(study, slower)
    study.complete()
    publish.export(study)
    assert published.experiments("demo") == ["slower", "speed"]
    study.records("slower").path(slower.points()[0].key).unlink()
    study, _ = make(**grid)
    study.complete()
    return study


def test_an_experiment_that_the_notebook_has_no_more_is_taken_out(with_another):
    """Its list of points had been read for ever, and its lost records had kept all others from being published."""
    said = []
    publish.export(with_another, tell=said.append)
    assert said == ["slower: taken out of what is published, since the run's notebook has no such experiment"]
    assert published.experiments("demo") == list(published.read_run("demo")["experiments"]) == ["speed"]
    said.clear()
    publish.export(with_another, tell=said.append)
    assert said == []


def test_without_a_list_of_the_runs_experiments_all_that_have_points_are_read(with_another):
    completed.last("demo", "full")["file"].unlink()
    with pytest.raises(InputError, match="slower: 1 of its 1 points are not recorded any more"):
        publish.export(with_another)


def test_what_is_kept_of_other_code_is_marked_so(full, make, measure, monkeypatch):
    """The set stands for today's code, what was measured by earlier code does not."""
    publish.export(full[0])
    today = Fingerprint("new", full[0].fingerprint.versions)
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda name: today)
    study, _ = make(repeats=0)
    other = study.experiment("other", setup={"system": ["a"]}, repeats=1)
    measure(study, other)
    study.complete()
    told = []
    publish.export(study, tell=told.append)
    assert told == ["speed: kept as it is published by earlier code, since this run did not measure it"]
    assert published.rows("demo", HERE, "speed")["stale"].all() and not published.rows("demo", HERE, "other")["stale"].any()


def other_machine():
    """A machine of another kind, as provenance describes it."""
    return {"cpu": "Other(R) CPU", "cores": 8, "kernel": "5.4.0-1-amd64"}



def test_a_set_has_its_machine_its_parameters_and_its_verdicts(full):
    publish.export(full[0], values={"repeats": 3})
    run = published.read_run("demo")
    assert published.sets("demo") == [HERE] and published.points("demo", HERE) == 12
    assert run["experiments"] == {"speed": {"points": 12, "parameters": ["system", "clients"]}}
    assert run["parameters"] == {"repeats": 3} and machine_kind.slug(run["machine"]) == HERE
    claim, = json.loads(published_verdicts.claims_path("demo", HERE).read_text())["claims"]
    now = full[0].judge("slower")
    assert (claim["id"], claim["verdict"], claim["measured"]) == ("slower", now.verdict, now.measured)


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


@pytest.fixture
def two_sets(full, monkeypatch):
    """The study of `full` with its 12 points as one set, and 4 points of another machine as another."""
    publish.export(full[0])
    monkeypatch.setattr(provenance, "machine", other_machine)
    monkeypatch.setattr(machine_kind, "of_point", lambda found: machine_kind.kind(other_machine()))
    publish.export(full[0], "quick")


def test_the_set_that_decides_the_most_claims_is_shown_first(two_sets):
    for machine, verdict in ((HERE, "open"), (OTHER, "not replicated")):
        file = published_verdicts.claims_path("demo", machine)
        judged = json.loads(file.read_text())
        judged["claims"][0]["verdict"] = verdict
        file.write_text(json.dumps(judged))
    assert published.sets("demo") == [OTHER, HERE]
    published_verdicts.claims_path("demo", OTHER).write_text("{}")
    assert published.sets("demo") == [HERE, OTHER]


def test_a_page_of_several_sets_has_the_verdict_of_one_set_alone(two_sets, make, monkeypatch):
    """Of the first that decides; each is by the points of one machine, though the page draws points of both."""
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    study, speed = make()
    assert len(speed.summary()) == 14
    sets = published_verdicts.by_machine("demo")
    judged = study.judge("slower")
    alone = sets[HERE]["slower"]
    assert {name: value for name, value in vars(judged).items() if name in alone} == alone
    assert judged.n == 3, "not of the other machine's repeats, too"
    sets[OTHER]["slower"] |= {"verdict": rules.REPLICATED, "n": 6, "reason": "six repeats"}
    monkeypatch.setattr(published_verdicts, "by_machine", lambda study: sets)
    judged = make()[0].judge("slower")
    assert judged.verdict == rules.REPLICATED and judged.run == "published"
    assert judged.reason == f"six repeats; measured on {published_verdicts.words('demo', OTHER)}"
    row, = outcomes.of_study("demo")
    assert row["machines"] == {HERE: rules.OPEN, OTHER: rules.REPLICATED}, "and no third one"
    sets[OTHER]["slower"] |= {"verdict": rules.NOT_TESTABLE, "n": 0}
    sets[HERE]["slower"] |= {"verdict": rules.NOT_RUN, "n": 0}
    assert make()[0].judge("slower").verdict == rules.NOT_TESTABLE


def test_points_of_another_design_are_not_mixed_with_those_of_the_first_set(two_sets, make, monkeypatch):
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    monkeypatch.setattr(published, "parameters", lambda study, machine, experiment: ["system", "clients"] + ["slices"] * (machine == OTHER))
    assert len(make()[1].summary()) == 12


def test_a_few_points_of_another_machine_do_not_replace_its_larger_set(full, monkeypatch):
    study, _ = full
    publish.export(study)
    here, other = machine_kind.kind(provenance.machine()), machine_kind.kind(other_machine())
    monkeypatch.setattr(provenance, "machine", other_machine)
    monkeypatch.setattr(machine_kind, "of_point", lambda found: here if found["few"] else other)
    few = iter([True] + [False] * 11)
    monkeypatch.setattr(published, "provenance", lambda meta, profile: {
        **meta["provenance"], "profile": profile, "environment": "", "few": next(few)})
    publish.export(study)
    assert published.points("demo", HERE) == 12 and published.points("demo", OTHER) == 11


def test_verdicts_on_a_set_are_judged_anew_when_a_rule_has_changed(full, root):
    publish.export(full[0])
    kept = published_verdicts.claims_path("demo", HERE)
    before, text = published_verdicts.verdicts("demo", HERE)[0], kept.read_text()
    claims = root / "data/papers/demo/claims.yml"
    claims.write_text(claims.read_text().replace("than b", "than B"))
    after, = published_verdicts.verdicts("demo", HERE)
    assert after["statement"] != before["statement"] and kept.read_text() == text
    assert publish.judge("demo") == [kept] and json.loads(kept.read_text())["claims"] == [after]


def test_what_is_published_remembers_the_parameters_of_its_run(book, monkeypatch):
    book.study("wan", "1", parameters="repeats = 3\nclients = 8\n", full="repeats: 9\n")
    monkeypatch.setattr(publish, "export", lambda study, profile, values, *_: [f"{study.name}-{profile}", values])
    assert publish.publish("wan") == ["wan-full", {"clients": 8, "repeats": 9}]
    pages.write_note("wan", {"state": "ok", "profile": "full", "published": False,
                             "parameters": {"repeats": 4}})
    assert publish.publish("wan") == ["wan-full", {"clients": 8, "repeats": 4}]
    with pytest.raises(InputError):
        publish.publish("cms")


def test_what_is_published_is_of_the_last_complete_run_whatever_the_last_page_is_of(book, monkeypatch):
    """After `make published` and after a run that failed the page is of another run."""
    book.study("wan", "1", full="repeats: 9\n",
               parameters='environment = "environments/local.yml"\nrepeats = 3\nclients = 8\n')
    book.write("data/papers/wan/claims.yml", "[]")
    book.write("environments/mine.yml", "provider: namespaces\n")
    monkeypatch.setattr(publish, "export", lambda study, profile, values, *_: [
        study.place, str(study.environment), values])
    pages.write_note("wan", {"state": "failed", "profile": "full", "published": True, "fleet": "fleet-other",
                             "parameters": {"repeats": 7}})

    def complete(place, at, environment="environments/local.yml", fleet=None, **values):
        book.write(f"../records/{place}/wan/full.json", json.dumps({
            "experiments": [], "environment": environment, "fleet": fleet, "completed": at,
            "parameters": {"environment": environment, "repeats": 3, "clients": 8, "before": 1} | values}))

    here = provenance.machine_id()
    complete(here, 1, environment="environments/mine.yml", repeats=4)
    assert publish.publish("wan") == [here, "environments/mine.yml", {
        "clients": 8, "repeats": 4, "environment": "environments/mine.yml"}]
    complete("fleet-rack", 2, fleet="fleet-rack", repeats=6)
    assert publish.publish("wan") == ["fleet-rack", "environments/local.yml", {"clients": 8, "repeats": 6}]
    complete("another000", 3, repeats=5)
    assert publish.publish("wan")[0] == "fleet-rack", "a folder of records may be of several machines"
    complete(here, 4, environment="environments/local.yml", repeats=2)
    assert publish.publish("wan") == [here, "environments/local.yml", {"clients": 8, "repeats": 2}]


def test_what_is_published_is_of_the_hosts_of_that_run(book, monkeypatch):
    book.study("wan", "1")
    book.write("data/papers/wan/claims.yml", "[]")
    monkeypatch.setattr(publish, "export", lambda study, profile, values, *_: [study.environment.name])
    pages.write_note("wan", {"state": "ok", "profile": "full", "published": False,
                             "parameters": {"environment": "environments/rack.yml"}})
    assert publish.publish("wan")[0] == "rack.yml"

"""Published summaries give the same figures and verdicts without a lab."""

import json
import shutil

import pandas as pd
import pytest
from published_stand_ins import HERE

from labbook import cli
from labbook.errors import InputError
from labbook.pipeline.executing import pages
from labbook.pipeline.publishing import publish
from labbook.study.publication import completed, machine_kind, published, published_verdicts
from labbook.study.records import provenance
from labbook.study.records.fingerprint import Fingerprint
from labbook.study.study import Study


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
    assert set(now.pop("machine")) == {machine_kind.words(machine_kind.kind(provenance.machine()))}
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
    written = json.loads(file.read_text())
    assert (written["code"], written["versions"]) == ("new", today.versions)
    study, speed = make()
    assert not speed.summary()["stale"].any() and study.conditions()["stale"] == 0
    assert [one["why"] for one in study.conditions()["changes"]] == ["moved, not changed"]
    today = Fingerprint("newer", {**study.fingerprint.versions, "mariadb-server": "11"})
    publish.carry_over("demo", "moved again")
    today = Fingerprint("newest", {})
    publish.carry_over("demo", "on a machine without MariaDB")
    assert json.loads(file.read_text())["versions"]["mariadb-server"] == "11"
    assert _whys() == ["moved, not changed", "moved again", "on a machine without MariaDB"]
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
    publish.carry_over("demo", "comments only")
    assert all("comments only" in (one / "fingerprint.json").read_text() for one in (folder, stamp.parent)), "both"
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"code": "still earlier"}))
    before = stamp.read_text()
    with pytest.raises(InputError, match="of different code"):
        publish.carry_over("demo", "moved, not changed")
    publish.carry_over("demo", "moved, not changed", [folder.name])
    assert stamp.read_text() == before and "moved" in (folder / "fingerprint.json").read_text()
    with pytest.raises(InputError, match="no published set 'other'.*--set|--set.*no published set 'other'"):
        publish.carry_over("demo", "why", ["other"])


def test_an_experiment_for_which_the_reason_does_not_hold_becomes_stale(full, make, monkeypatch):
    publish.export(full[0])
    with pytest.raises(InputError, match="no published experiment 'sped' of demo"):
        publish.carry_over("demo", "only what others measure has changed", without=["sped"])
    publish.carry_over("demo", "only what others measure has changed", without=["speed"])
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    study, speed = make()
    assert speed.summary()["stale"].all() and "changes" not in study.conditions(), "no point stands by the reason"
    assert {one["conditions"]["stale"] for one in published_verdicts.verdicts("demo", HERE)} == {12}


def test_a_point_that_was_set_up_otherwise_is_published_as_stale_without_the_notebook(full, make):
    """The page called it stale, and its published row did not."""
    study, _ = make(repeats=3, setup={"system": ["a", "b"], "clients": [2, 70]}, vary={})
    study.complete()
    here = Study("demo")
    assert study.experiments and not here.experiments
    assert pd.read_parquet(publish.export(here)[0])["stale"].all()


def test_only_what_the_profile_stood_on_is_published(full):
    frame = pd.read_parquet(publish.export(full[0])[0])
    assert len(frame) == 12 and set(frame["clients"]) == {2, 70}
    assert frame["facts"].str.contains("version").sum() == 12 - 2, "two points are of the quick run"
    frame = pd.read_parquet(publish.export(full[0], "quick", replace=["speed"])[0])
    assert set(frame["clients"]) == {1, 2}


def test_nothing_to_publish_is_reported(make, measure):
    study, speed = make()
    with pytest.raises(InputError, match="no complete run"):
        publish.export(study)
    measure(study, speed)
    study.complete()
    study.records("speed").path(speed.points()[0].key).unlink()
    with pytest.raises(InputError, match="1 of its 4 points"):
        publish.export(study, "quick")


def test_an_experiment_that_was_left_out_is_published_as_such(make, measure, monkeypatch):
    study, speed = make(repeats=0)
    study.complete()
    publish.export(study, "quick")
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    study, speed = make()
    assert not len(speed.summary()) and study.conditions(speed) == {}
    assert study.judge("slower").reason.startswith("nothing was measured")


def test_changes_stay_as_long_as_points_from_before_them(full, make, measure, monkeypatch):
    """The last reason had replaced all earlier ones."""
    publish.export(full[0])
    publish.carry_over("demo", "moved, not changed")
    publish.carry_over("demo", "moved again")
    for _ in range(2):
        publish.export(full[0], add=True)
        assert _whys() == ["moved, not changed", "moved again"]
    publish.export(full[0])
    assert _whys() == ["moved, not changed", "moved again"], "the same points, measured before them"
    meta = published.provenance
    monkeypatch.setattr(published, "provenance", lambda *of: later(meta(*of)))
    publish.export(full[0])
    assert _whys() == []


def later(measured: dict) -> dict:
    """The same provenance, of a point that was measured in an hour."""
    during = measured["during"]
    return measured | {"during": during | {"started": during["started"] + 3600, "ended": during["ended"] + 3600}}


def _whys() -> list[str]:
    return [one["why"] for one in published.changes("demo", HERE)]


def test_a_damaged_file_can_be_replaced(full):
    file = publish.export(full[0])[0]
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match="speed.parquet: the published file is damaged"):
        publish.export(full[0])
    publish.export(full[0], replace=["speed"])
    assert len(pd.read_parquet(file)) == 12


def test_an_unknown_experiment_to_replace_is_reported(full):
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
    messages = []
    publish.export(with_another, report=messages.append)
    assert messages == ["slower: taken out of what is published, since the run's notebook has no such experiment"]
    assert published.experiments("demo") == list(published.read_run("demo")["experiments"]) == ["speed"]
    messages.clear()
    publish.export(with_another, report=messages.append)
    assert messages == []


def test_a_publishing_that_is_killed_leaves_each_file_that_run_json_names(with_another, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(file, text):
        raise Killed

    monkeypatch.setattr(pages, "write_atomically", killed)
    with pytest.raises(Killed):
        publish.export(with_another)
    for name in published.read_run("demo")["experiments"]:
        assert len(published.rows("demo", HERE, name))


def test_without_a_list_of_the_runs_experiments_all_that_have_points_are_read(with_another):
    completed.last("demo", "full")["file"].unlink()
    with pytest.raises(InputError, match="slower: 1 of its 1 points are not recorded any more"):
        publish.export(with_another)


def test_a_set_has_its_machine_its_parameters_and_its_verdicts(full):
    publish.export(full[0], values={"repeats": 3})
    run = published.read_run("demo")
    assert published.sets("demo") == [HERE] and published.points("demo", HERE) == 12
    assert run["experiments"] == {"speed": {"points": 12, "parameters": ["system", "clients"]}}
    assert run["parameters"] == {"repeats": 3} and machine_kind.slug(run["machine"]) == HERE
    claim, = json.loads(published_verdicts.claims_path("demo", HERE).read_text())["claims"]
    now = full[0].judge("slower")
    assert (claim["id"], claim["verdict"], claim["measured"]) == ("slower", now.verdict, now.measured)


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
    assert publish.publish("wan") == [here, "environments/mine.yml", {"clients": 8, "repeats": 4}], (
        "without the environment, a file that other checkouts lack")
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


@pytest.mark.parametrize("args, profile, replace, add, further", [
    ([], "full", [], False, []),
    (["--profile", "quick"], "quick", [], False, []),
    (["--replace", "speed", "--replace", "slower"], "full", ["speed", "slower"], False, []),
    (["--add"], "full", [], True, []),
    (["--add", "--further", "clients", "--further", "rows"], "full", [], True, ["clients", "rows"])])
def test_what_is_asked_on_the_command_line_is_handed_on(book, monkeypatch, capsys, args, profile, replace, add, further):
    def export(study, *given):
        options = dict(zip(("profile", "values", "replace", "tell", "add", "further"), given, strict=True))
        assert study.name == "demo"
        options["tell"]("speed: kept")
        return [{name: options[name] for name in ("profile", "replace", "add", "further")}]

    book.study("demo", "1")
    book.write("data/papers/demo/claims.yml", "[]")
    monkeypatch.setattr(publish, "export", export)
    assert cli.main(["publish", "demo", *args]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{dict(profile=profile, replace=replace, add=add, further=further)}\n" and printed.err == "speed: kept\n"


def test_publishing_judging_and_carrying_over_print_the_files_that_they_write(full, root, capsys):
    folder = root / "data/published/demo" / HERE

    def files(*args):
        assert cli.main(["publish", "demo", *args]) == 0
        return capsys.readouterr().out.split()

    every = {folder / name for name in ("speed.parquet", "fingerprint.json", "run.json", "claims.json")}
    assert set(files()) == {*map(str, every)} and all(file.is_file() for file in every)
    (folder / "claims.json").unlink()
    assert files("--judge") == [str(folder / "claims.json")] and (folder / "claims.json").is_file()
    shutil.copytree(folder, folder.with_name("other-machine"))
    judged = [str(folder.with_name(name) / "claims.json") for name in sorted([HERE, "other-machine"])]
    carried = files("--carry-over", "moved, not changed", "--set", HERE)
    assert carried[0] == str(folder / "fingerprint.json") and sorted(carried[1:]) == judged
    assert _whys() == ["moved, not changed"] and published.changes("demo", "other-machine") == []

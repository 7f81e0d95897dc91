import time
from types import SimpleNamespace

import pytest

from labbook.lab.description import LabDescription
from labbook.pipeline.executing import pages
from labbook.pipeline.running import asking, plan, run, totals
from labbook.pipeline.setup import doctor

LAB = """sites: [a, b]
hosts:
  db[1-2]: {site: a, role: db, limits: {cores: 1, memory: 1G, disk: {size: 1G, trace: true}}}
  client: {site: b, role: client}
links: [{between: [a, b], rtt_ms: 100, loss: 0}]
needs: {memory: 2G, disk: 1G, minutes: {quick: 8}}
"""
PLANS = """
import os
from labbook.errors import Stopped
from labbook.pipeline.executing.progress import append_event
assert os.environ["LABBOOK_PLAN"] == "1"
append_event(event="plan", experiment="response", done=3, total=4, seconds={seconds})
raise Stopped("only the plan was asked for")
"""


pytestmark = pytest.mark.usefixtures("forked")


@pytest.fixture(autouse=True)
def missing(monkeypatch):
    """What this machine lacks of the kernel's features."""
    found = []
    monkeypatch.setattr(doctor, "missing_features", lambda *_: found)
    return found


@pytest.mark.parametrize("seconds, expected", [
    (None, "about 2 min, from the study's lab.yml"),
    ("90, guessed=True", "about 1 min 30 s, from points measured before with other parameters"),
    (90, "about 1 min 30 s, from points measured before")])
def test_a_plan_lists_points_time_needs_and_what_root_does(book, capsys, monkeypatch, seconds, expected):
    monkeypatch.setattr(asking, "PAGE_ROUNDS", 0)
    book.study("wan", PLANS.format(seconds=seconds))
    book.write("data/papers/wan/lab.yml", LAB)
    assert plan.plan([], run.Options()) == 0
    output, progress = capsys.readouterr()
    assert output.startswith(f"wan, quick profile: 1 point to measure, {expected}\n")
    assert "response: 4 points, 3 measured, 1 to do" in output
    assert "as root: control group of 2 hosts: cores, memory" in output
    assert progress == "wan: looking what there is to measure (1 of 1)\n"
    assert "memory: 2 GB, disk: 1 GB" in output
    assert pages.note("wan") == {} and not list((book.root / "build/pages").glob("*.ipynb"))


@pytest.mark.parametrize("look_s, expected", [
    (900, "about 15 min; with further repeats about 1 h 24 min in all, time limit 2 h 00 min"),
    (5000, "about 1 h 24 min, time limit 2 h 00 min"), (None, "about 1 h 24 min, time limit 2 h 00 min")])
def test_a_plan_tells_the_next_points_from_all_that_may_follow(look_s, expected):
    one = plan.Plan("wan", 9, 5040, 7200, "", [], look_s)
    assert one.time() == expected


def test_a_plan_tells_what_a_run_would_be_refused_for(book, capsys, missing):
    book.study("wan", PLANS.format(seconds=1))
    book.write("data/papers/wan/lab.yml", LAB)
    missing.append(doctor.Finding("", "fuse", False, "a file system of a program is mounted",
                                  "no /dev/fuse", "Type: modprobe fuse", ("wan",)))
    assert plan.plan([], run.Options()) == 0
    assert "missing: fuse (no /dev/fuse)" in capsys.readouterr().out


@pytest.mark.parametrize("options, text", [
    ({}, "its page is up to date"), ({"force": True}, "1 point to measure"), ({"remeasure": True}, "1 point to measure")])
def test_a_page_that_is_made_again_is_planned_whether_it_is_up_to_date_or_not(book, capsys, monkeypatch, options, text):
    book.study("wan", PLANS.format(seconds=1))
    book.write("data/papers/wan/lab.yml", LAB)
    monkeypatch.setattr(run, "is_current", lambda *_: True)
    assert plan.plan([], run.Options(**options)) == 0
    assert capsys.readouterr().out.startswith(f"wan, quick profile: {text}")


def test_a_notebook_that_fails_has_no_plan(book, capsys):
    book.study("wan", "1/0")
    assert plan.plan([], run.Options()) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_study_that_another_run_measures_has_no_plan_and_the_others_have(book, capsys):
    for study in ("one", "two"):
        book.study(study, PLANS.format(seconds=60))
        book.write(f"data/papers/{study}/lab.yml", LAB)
    with pages.only_me("one"):
        assert plan.plan([], run.Options()) == 1
    told, said = capsys.readouterr()
    assert told.startswith("two, quick profile: 1 point to measure")
    assert "one: no plan: one is being run by another labbook" in said


def test_several_studies_have_a_total_at_the_top(book, capsys, monkeypatch):
    monkeypatch.setattr(asking, "PAGE_ROUNDS", 0)
    for study, seconds in (("one", 60), ("two", 240), ("wan", None)):
        book.study(study, PLANS.format(seconds=seconds))
        book.write(f"data/papers/{study}/lab.yml", LAB if seconds else LAB.replace(", minutes: {quick: 8}", ""))
    assert plan.plan([], run.Options(), verbose=True) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "3 studies, quick profile: 3 points to measure, about 5 min; unknown: wan",
        "  one: 1 point to measure, about 1 min, from points measured before",
        "  two: 1 point to measure, about 4 min, from points measured before",
        "  wan: 1 point to measure, time unknown"]
    assert lines.count("  as root: control group of db1: cores, memory") == 3


def test_what_is_not_known_of_one_experiment_is_its_share_of_lab_yml(book, capsys, monkeypatch):
    monkeypatch.setattr(asking, "PAGE_ROUNDS", 0)
    book.study("wan", PLANS.format(seconds=60).replace(
        "raise", "append_event(event='plan', experiment='other', done=0, total=4, seconds=None)\nraise"))
    book.write("data/papers/wan/lab.yml", LAB)
    assert plan.plan([], run.Options()) == 0
    assert ("5 points to measure, about 5 min, from points measured before and from the study's lab.yml"
            in capsys.readouterr().out)


def test_a_plan_names_the_time_after_which_no_point_starts(book, capsys, monkeypatch):
    monkeypatch.setattr(asking, "PAGE_ROUNDS", 0)
    for study in ("one", "two"):
        book.study(study, PLANS.format(seconds=240))
    monkeypatch.setattr(plan, "time", SimpleNamespace(time=lambda: 1000.0, monotonic=time.monotonic))
    assert plan.plan([], run.Options(until=1300.0)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 studies, quick profile: 2 points to measure, about 5 min"
    assert lines[1].startswith("  one: 1 point to measure, about 4 min, time limit 5 min")
    assert not [line for line in lines if "memory:" in line], "without a lab.yml"


def test_a_small_part_of_a_profile_does_not_share_all_its_minutes(book, capsys, monkeypatch):
    monkeypatch.setattr(asking, "PAGE_ROUNDS", 0)
    monkeypatch.setattr(totals, "published_point_s", lambda study: 20.0)
    book.study("wan", PLANS.format(seconds=None))
    book.write("data/papers/wan/lab.yml", LAB)
    assert plan.plan([], run.Options(given=(("repeats", "1"),))) == 0
    assert "1 point to measure, about 20 s, from published points of other experiments" in capsys.readouterr().out


def test_a_refused_parameter_is_wrong_input(book, capsys):
    book.study("wan", "from labbook.errors import InputError\nraise InputError('too many', key='repeats')")
    assert plan.plan([], run.Options()) == 2
    assert "wan: no plan: repeats: too many\n" in capsys.readouterr().err


def test_clouds_that_stand_in_are_reported_with_what_is_made_there(tmp_path, monkeypatch):
    from labbook.lab.environment.environment import Environment
    from labbook.pipeline.setup import own_clouds

    lab = LabDescription.parse({"sites": ["s"], "hosts": {"h": {"site": "s", "role": "cloud"}}, "systems": [
        {"name": "mysql", "label": "older", "host": "h"}, {"name": "mysql", "label": "newer", "host": "h"}]})
    monkeypatch.setattr(own_clouds, "description", lambda study: lab)
    entry = {"kind": "openstack", "credentials": "/x", "profile": "p"}
    there = Environment.parse({"provider": "namespaces", "clouds": {"older": entry, "other": entry}},
                              keys=False)
    assert own_clouds.plan("wan", there) == [
        "  on cloud older (openstack), instead of mysql: servers, volumes, images, keys; "
        "recorded first and removed at the end"]

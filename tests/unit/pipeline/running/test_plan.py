import pytest

from labbook.lab.description import LabDescription
from labbook.pipeline.executing import pages
from labbook.pipeline.running import plan, run
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
from labbook.pipeline.executing.progress import tell
assert os.environ["LABBOOK_PLAN"] == "1"
tell(event="plan", experiment="response", done=3, total=4, seconds={seconds})
raise Stopped("only the plan was asked for")
"""


@pytest.fixture(autouse=True)
def lacking(monkeypatch):
    """What this machine lacks of the kernel's features."""
    found = []
    monkeypatch.setattr(doctor, "lacking_features", lambda study: found)
    return found


@pytest.mark.parametrize("seconds, said", [
    (None, "about 2 min, from the study's lab.yml"),
    (90, "about 1 min 30 s, from points measured")])
def test_a_plan_lists_points_time_needs_and_what_root_does(book, capsys, seconds, said):
    book.study("wan", PLANS.format(seconds=seconds))
    book.write("data/papers/wan/lab.yml", LAB)
    assert plan.plan([], run.Asked()) == 0
    told = capsys.readouterr().out
    assert "response: 4 points, 3 measured, 1 to do" in told and said in told
    assert "memory: 2 GB, disk: 1 GB" in told
    assert pages.note("wan") == {} and not list((book.root / "build/pages").glob("*.ipynb"))


def test_a_plan_tells_what_a_run_would_be_refused_for(book, capsys, lacking):
    book.study("wan", PLANS.format(seconds=1))
    book.write("data/papers/wan/lab.yml", LAB)
    lacking.append(doctor.Finding("", "fuse", False, "a file system of a program is mounted",
                                  "no /dev/fuse", "Type: modprobe fuse", ("wan",)))
    assert plan.plan([], run.Asked()) == 0
    assert "missing: fuse (no /dev/fuse)" in capsys.readouterr().out


def test_a_notebook_that_fails_has_no_plan(book, capsys):
    book.study("wan", "1/0")
    assert plan.plan([], run.Asked()) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_what_root_does_names_hosts_links_limits_and_disks(tmp_path):
    file = tmp_path / "lab.yml"
    file.write_text(LAB)
    actions = "\n".join(plan.privileged(LabDescription.load(file)))
    assert "3 hosts in their own namespaces (db1, db2, client)" in actions
    assert "a link a - b shaped to rtt_ms 100" in actions and "loss" not in actions
    assert "control group of db2: cores, memory" in actions and "freeze" in actions
    assert "a file system on a loop device for db1" in actions
    assert "the kernel's trace of requests to db2's disk" in actions


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

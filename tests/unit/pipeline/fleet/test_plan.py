"""What a fleet would take, in words."""

import json
import subprocess
from dataclasses import replace
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook import paths
from labbook.cli import main
from labbook.pipeline.executing import pages
from labbook.pipeline.fleet import plan, plans
from labbook.pipeline.fleet.file import Fleet, FleetMachine
from labbook.pipeline.fleet.scheduler import Job, Point

HAND_OUT = """
from labbook.errors import Stopped
from labbook.pipeline.executing.progress import append_event
points = [{"key": str(i), "setup": "s", "setup_s": 5.0, "point_s": 55.0, "guessed": False, "machine": None} for i in range(2)]
append_event(event="plan", experiment="response", done=0, total=4, seconds=None,
             hand_out={"read": True, "repeats": [{"repeat": 1, "points": points}, {"repeat": 2, "points": points}]})
raise Stopped("only the plan was asked for")
"""


def job(repeat=1, points=2, point_s=10.0, setup_s=5.0, machines=()):
    """machines: which has measured the first points."""
    return Job("s", "e", repeat, tuple(
        Point(f"{repeat} {i}", "set-up", setup_s, point_s, machines[i] if i < len(machines) else None)
        for i in range(points)))


def fleet(**studies) -> Fleet:
    machines = (FleetMachine(name, None, PurePosixPath("/home/op/labbook"), studies=of) for name, of in studies.items())
    return Fleet("rack", tuple(machines), file="fleet.yml")


def plan_lines(of, **found) -> list[str]:
    return list(plan.lines(of, {study: (jobs, [("ceiling", Point("own", "x", 0.0, 60.0))]) for study, jobs in found.items()}))


def test_the_time_of_all_machines_stands_beside_that_of_one():
    jobs = [job(repeat=n, point_s=300.0, setup_s=0.0) for n in range(4)]        # 10 minutes each
    head, study, longest, *_ = plan_lines(fleet(a=None, b=None), s=jobs)
    assert head == "fleet.yml: 2 machines, 8 points in 4 jobs to measure, about 21 min (one machine: 41 min)"
    assert "s: 8 points in 4 jobs, 41 min of one machine, and each machine 1 point for itself" in study
    assert "10 min; no number of machines is faster" in longest


def test_a_study_that_no_machine_may_measure_is_named():
    found = plan_lines(fleet(a=frozenset({"other"})), s=[job()])
    assert "  s: no machine of the file may measure it (`studies`)" in found


def test_what_some_machine_has_measured_is_not_planned_again(monkeypatch, tmp_path):
    (tmp_path / "lab.yml").write_text("needs: {minutes: {full: 10}}\n")
    monkeypatch.setattr(paths, "papers", lambda study: tmp_path)
    half, all_ = job(points=2, machines=["a"]), job(repeat=2, points=2, machines=["a", "a"])
    monkeypatch.setattr(plans, "jobs", lambda study, story, share, guesses: ([half, all_], share))
    jobs, share = plan.unmeasured("s", SimpleNamespace(total=20), "full")
    assert jobs == [replace(half, points=half.points[1:])] and share == 30.0
    assert plan.unmeasured("s", SimpleNamespace(total=20), "quick")[1] is None


@pytest.mark.parametrize("args, why", [
    (["--cluster", "rack"], "the number of machines of a cluster"), (["--fleet", "f.yml", "--until-decided"], "the number of repeats")])
def test_what_has_no_plan_says_so(book, capsys, args, why):
    assert main(["run", *args, "--dry-run"]) == 2
    assert why in capsys.readouterr().err


def test_the_plan_of_a_notebook_asks_no_machine(book, forked, capsys, tmp_path):
    book.study("wan", HAND_OUT)
    lab = book.write("data/papers/wan/lab.yml", "sites: [a]\nhosts: {h1: {site: a, role: db}}\n")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    (tmp_path / "known").touch()
    file = tmp_path / "fleet.yml"
    file.write_text(json.dumps({"user": "op", "key": str(tmp_path / "key"), "known_hosts": str(tmp_path / "known"), "checkout": "/home/op/l",
                                "machines": {"m1": {"address": "192.0.2.1"}, "m2": {"address": "192.0.2.2"}}}))
    assert main(["run", "wan", "--fleet", str(file), "--dry-run"]) == 0
    assert "2 machines, 4 points in 2 jobs to measure, about 1 min 55 s (one machine: 3 min 50 s)" in capsys.readouterr().out
    with pages.only_me("wan"):
        assert main(["run", "wan", "--fleet", str(file), "--dry-run"]) == 1
    assert "wan: no plan: wan is being run by another labbook" in capsys.readouterr().err
    book.study("wan", "from labbook.errors import InputError\nraise InputError('too many', key='repeats')")
    assert main(["run", "wan", "--fleet", str(file), "--dry-run"]) == 2
    assert "wan: no plan: repeats: too many" in capsys.readouterr().err
    lab.write_text(lab.read_text() + "quick: {claims: all, seconds: 60}\n")
    book.write("data/papers/wan/claims.yml", "[]\n")
    assert main(["run", "wan", "--fleet", str(file), "--dry-run"]) == 2
    assert "the number of repeats" in capsys.readouterr().err, "the quick profile asks until its claims are decided"

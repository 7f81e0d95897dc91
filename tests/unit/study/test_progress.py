"""The line for whoever looks on; the events for the press are tested with the runs."""

import json
import sys
from types import SimpleNamespace

from labbook.claims import claims
from labbook.study import progress
from labbook.study.experiment import grid

POINTS = grid("speed", {}, {"clients": [1, 2, 3, 4]}, 1)


def test_a_line_tells_what_is_done_and_left(monkeypatch, capsys):
    monkeypatch.setattr(progress, "interactive", lambda: True)
    reporter = progress.Progress("demo")
    reporter.plan("speed", POINTS[1:], 4, None)
    reporter.start(POINTS[1])
    reporter.done(POINTS[1], 120, new=True)
    reporter.fail(POINTS[2], 120, "SystemFailure: it died")
    reporter.complete()
    lines = capsys.readouterr().err.split("\r")
    assert lines[1].startswith("1/4  speed: clients=")
    assert lines[2].startswith("2/4, about 4 min left")
    assert "failed: SystemFailure: it died" in lines[3]
    assert all(len(line.strip("\n")) <= progress.WIDTH for line in lines[:3])


def test_what_is_declared_later_counts_from_the_start_and_claims_are_counted(root, monkeypatch, capsys):
    monkeypatch.setattr(progress, "interactive", lambda: True)
    (root / "build/totals").mkdir(parents=True)
    (root / "build/totals/demo.json").write_text(json.dumps({"key": "", "experiments": {
        "speed": {"done": 0, "total": 4}, "disks": {"done": 2, "total": 10}}}))
    claims.store("demo", {"id": "slower", "verdict": "replicated"})
    for total, line in ((4, "3/14, 1 of 1 claims decided  speed"), (5, "2/5, 1 of 1 claims decided  speed")):
        reporter = progress.Progress("demo")
        reporter.plan("speed", POINTS[1:], total, None)
        reporter.start(POINTS[1])
        assert capsys.readouterr().err.startswith(f"\r{line}")


def test_after_a_change_of_code_what_is_declared_later_counts_as_not_done(root, monkeypatch, capsys):
    monkeypatch.setattr(progress, "interactive", lambda: True)
    (root / "build/totals").mkdir(parents=True)
    (root / "build/totals/demo.json").write_text(json.dumps({"key": "", "experiments": {
        "speed": {"done": 4, "total": 4}, "disks": {"done": 10, "total": 10}}}))
    reporter = progress.Progress("demo")
    reporter.plan("speed", POINTS, 4, None)
    reporter.start(POINTS[0])
    assert capsys.readouterr().err.startswith(f"\r{4 - len(POINTS)}/14  speed")
    reporter.done(POINTS[0], 60, new=True)
    assert f"{5 - len(POINTS)}/14, about" in capsys.readouterr().err


class Shell:
    """A notebook's: what is displayed, and how often it was renewed."""

    kernel = object()

    def __init__(self):
        self.bars = []

    def display(self, data, raw, display_id):
        self.bars.append([data])
        return SimpleNamespace(update=lambda data, raw: self.bars[-1].append(data))


def test_in_a_notebook_each_experiment_has_a_bar_below_its_cell(monkeypatch, capsys):
    shell = Shell()
    monkeypatch.setattr(progress, "interactive", lambda: True)
    monkeypatch.setattr(progress.given, "shell", lambda: shell)
    monkeypatch.setattr("IPython.display.display", shell.display)
    reporter = progress.Progress("demo")
    reporter.plan("speed", POINTS, 4, None)
    for point in POINTS[:2]:
        reporter.start(point)
        reporter.done(point, 1, new=True)
    other, = grid("disks", {}, {"clients": [1]}, 1)
    reporter.plan("disks", [other], 1, None)
    reporter.start(other)
    reporter.complete()
    assert [len(bar) for bar in shell.bars] == [4, 1] and capsys.readouterr().err == ""
    assert '<progress max="4" value="2" ' in shell.bars[0][-1]["text/html"]
    assert shell.bars[1][0]["text/plain"].startswith("2/5, under a minute left  disks: clients=1")


def test_it_is_quiet_when_nobody_looks_on(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)    # another test's
    reporter = progress.Progress("demo")
    reporter.plan("speed", POINTS, 4, None)
    reporter.start(POINTS[0])
    reporter.done(POINTS[0], 1, new=True)
    reporter.complete()
    assert capsys.readouterr() == ("", "")

"""The line for whoever looks on; the events for the press are tested with the runs."""

import json
import sys

from labbook.claims import claims
from labbook.study import progress
from labbook.study.experiment import grid

POINTS = grid("speed", {}, {"clients": [1, 2, 3, 4]}, 1)


def test_a_line_tells_what_is_done_and_left(monkeypatch, capsys):
    monkeypatch.setattr(progress, "interactive", lambda: True)
    told = progress.Progress("demo")
    told.plan("speed", POINTS[1:], 4, None)
    told.start(POINTS[1])
    told.done(POINTS[1], 120, new=True)
    told.fail(POINTS[2], 120, "SystemFailure: it died")
    told.complete()
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
        told = progress.Progress("demo")
        told.plan("speed", POINTS[1:], total, None)
        told.start(POINTS[1])
        assert capsys.readouterr().err.startswith(f"\r{line}")


def test_it_is_quiet_when_nobody_looks_on(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)    # another test's
    told = progress.Progress("demo")
    told.plan("speed", POINTS, 4, None)
    told.start(POINTS[0])
    told.done(POINTS[0], 1, new=True)
    told.complete()
    assert capsys.readouterr() == ("", "")

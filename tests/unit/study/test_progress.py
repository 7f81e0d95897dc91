"""The line for whoever looks on; the events for the press are tested with the runs."""

import sys

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


def test_it_is_quiet_when_nobody_looks_on(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)    # another test's
    told = progress.Progress("demo")
    told.plan("speed", POINTS, 4, None)
    told.start(POINTS[0])
    told.done(POINTS[0], 1, new=True)
    told.complete()
    assert capsys.readouterr() == ("", "")

"""The series `hosts` of a point: from samplers, and never a reason to fail."""

from types import SimpleNamespace

import pytest

from labbook.lab.series import watch
from labbook.study.watcher import Watcher


class Samples:
    """A sampler that gives a sample a call, of a host that uses half a core."""

    def __init__(self, breaks=False):
        self.at, self.breaks, self.closed = 0, breaks, 0

    def take(self):
        if self.breaks:
            raise EOFError("gone")
        self.at += 1
        return [[float(self.at), {"h1": {"cpu_us": 500_000 * self.at}}]]

    def close(self):
        self.closed += 1


@pytest.fixture
def lab():
    return SimpleNamespace(downs=[], before_down=lambda undo: None)


def watched(monkeypatch, lab, *samplers):
    monkeypatch.setattr(watch, "start", lambda _: list(samplers))
    watcher = Watcher()
    watcher.begin(lab)
    return watcher


def test_a_point_has_what_came_since_it_began(monkeypatch, lab):
    watcher = watched(monkeypatch, lab, Samples())
    assert watcher.table().cpu_cores.tolist() == [0.5]
    watcher.begin(lab)
    assert watcher.table().at_s.tolist() == [4.0], "the next point has its own"


def test_samplers_stay_for_the_lab_and_go_with_it(monkeypatch, lab):
    one, downs = Samples(), []
    lab.before_down = downs.append
    watcher = watched(monkeypatch, lab, one)
    watcher.begin(lab)
    assert one.closed == 0 and len(downs) == 1
    downs[0]()
    assert one.closed == 1 and watcher.table() is None


@pytest.mark.parametrize("samplers", [[Samples(breaks=True)], []])
def test_without_an_answer_there_is_no_series_and_no_error(monkeypatch, lab, samplers):
    watcher = watched(monkeypatch, lab, *samplers)
    assert watcher.table() is None and all(one.closed for one in samplers)


def test_a_lab_that_cannot_be_watched_is_measured_all_the_same(monkeypatch):
    def broken(_):
        raise AttributeError("a stand-in without hosts")
    monkeypatch.setattr(watch, "start", broken)
    watcher = Watcher()
    watcher.begin(object())
    assert watcher.table() is None

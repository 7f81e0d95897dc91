"""CPU of processes through time: what is sampled, and what a window of it has used."""

import math
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from labbook.errors import LabError
from labbook.workloads.clients import cpu_watch


def test_a_window_has_what_was_used_in_it_by_all_hosts():
    one = np.array([[100.0, 1.0], [101.0, 2.0], [102.0, 2.0]])
    other = np.array([[100.0, 0.0], [102.0, 1.0]])
    assert cpu_watch.used([one, other], 100.5, 101.5) == pytest.approx(0.5 + 0.5)
    assert math.isnan(cpu_watch.used([], 0, 1)) and math.isnan(cpu_watch.used([one[:0]], 0, 1))


def test_an_incomplete_line_is_dropped_and_times_are_the_drivers():
    assert cpu_watch.samples("12.5 0.1\n13.0 0.", 2.0).tolist() == [[10.5, 0.1]]
    assert cpu_watch.samples("", 0.0).shape == (0, 2)


def test_the_sampler_counts_processes_and_keeps_what_an_ended_one_had_used(tmp_path):
    busy, idle = subprocess.Popen([sys.executable, "-c", "while True: pass"]), subprocess.Popen(["sleep", "600"])
    out = tmp_path / "samples"
    out.touch()
    sampler = subprocess.Popen([sys.executable, "-I", "-S", cpu_watch.PROGRAM, out, "0.02", str(busy.pid),
                                str(idle.pid)])
    try:
        found = await_samples(out, lambda found: len(found) and found[-1, 1] - found[0, 1] >= 0.1)
        busy.kill()
        busy.wait()
        number = len(found)
        found = await_samples(out, lambda found: len(found) >= number + 3)
    finally:
        for process in (busy, idle, sampler):
            process.kill()
            process.wait()
    assert (np.diff(found[:, 1]) >= 0).all()


class Host:
    """A host with a sampler, or one where it cannot be started, or of which nothing can be got."""

    python, root, is_remote = "x", "x", False

    def __init__(self, name, log, breaks=""):
        self.name, self._log, self._breaks, self._runs = name, log, breaks, False

    def run(self, command):
        self._log.append((self.name, command.split()[0]))

    def put(self, *_):
        self._act("put")

    def start(self, *_):
        self._act("start")
        self._runs = True

    def process(self, _name):
        return None if not self._runs else SimpleNamespace(stop=lambda _seconds: self._act("stop"))

    def get(self, _path):
        self._act("get")
        return b"1.0 2.0\n"

    def _act(self, what):
        self._log.append((self.name, what))
        if what == self._breaks:
            raise LabError(f"{self.name} does not {what}")


def watch(*hosts):
    return cpu_watch.CpuWatch([SimpleNamespace(host=host, pid=1) for host in hosts])


@pytest.mark.parametrize("breaks", ["put", "start"])
def test_where_one_sampler_cannot_be_started_the_others_end(breaks):
    """A full disk of one host ended the whole study with an AttributeError."""
    log = []
    with pytest.raises(LabError, match=f"b does not {breaks}"), watch(Host("a", log), Host("b", log, breaks)):
        raise AssertionError("not reached")
    assert ("a", "stop") in log and log.count(("a", "rm")) == log.count(("b", "rm")) == 1


def test_where_one_host_is_lost_the_samplers_of_the_others_end(monkeypatch):
    monkeypatch.setattr(cpu_watch, "ahead_s", lambda _host: 0.0)
    log = []
    with pytest.raises(LabError, match="a does not get"), watch(Host("a", log, "get"), Host("b", log)) as cpu:
        pass
    assert ("b", "stop") in log and len(cpu._samples) == 1


def await_samples(out, enough):
    until = time.monotonic() + 60
    while not enough(found := cpu_watch.samples(out.read_text(), 0.0)):
        assert time.monotonic() < until, found
        time.sleep(0.02)
    return found

"""CPU of processes through time: what is sampled, and what a window of it has used."""

import math
import subprocess
import sys
import time

import numpy as np
import pytest

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


def await_samples(out, enough):
    until = time.monotonic() + 60
    while not enough(found := cpu_watch.samples(out.read_text(), 0.0)):
        assert time.monotonic() < until, found
        time.sleep(0.02)
    return found

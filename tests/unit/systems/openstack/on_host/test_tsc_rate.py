"""The rate of the processor's time-stamp counter."""

import subprocess
import sys
import time

import pytest

from labbook.systems.openstack.lab_cloud import TSC_RATE
from labbook.systems.openstack.on_host import tsc_rate


def test_it_is_that_of_the_counter_however_long_it_is_watched():
    short, long = tsc_rate.rate_khz(0.02), tsc_rate.rate_khz(0.1)
    assert short == pytest.approx(long, rel=1e-2) and long > 1e5


def test_the_counter_is_read_at_the_time_that_goes_with_it(monkeypatch):
    read = tsc_rate.reader()
    before, (at, counter), after = read(), tsc_rate.both(read), read()
    assert before < counter < after and at <= time.monotonic_ns()


def test_a_host_without_packages_prints_it():
    done = subprocess.run([sys.executable, "-I", "-S", "-"], input=TSC_RATE.read_text(), capture_output=True, text=True,
                          check=True)
    assert int(done.stdout) > 1e5

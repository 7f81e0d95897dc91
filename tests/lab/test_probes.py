"""Probes as root: each tries the real thing, fast, and leaves nothing."""

import os
import resource
import subprocess
from pathlib import Path

import pytest
from small_labs import SUDO

from labbook.lab import deadline, features, probes
from labbook.lab.disk import loop_device

CPU_SECONDS = 1     # of the processor, at most: all together take a third, however busy the machine is


def test_all_are_tried_quickly_and_leave_nothing():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = probes.probes(again=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert 0 < after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < CPU_SECONDS
    assert all(p.ok or p.found and p.remedy for p in found.values())
    assert found["root"].ok and found["namespaces"].ok
    assert found["delay"].ok == (found["netem"].ok or found["nfqueue"].ok)
    assert not [*Path("/sys/fs/cgroup").glob("*/labbook-probe-*"),
                *features.SCRATCH.glob("*")]
    backing = subprocess.run(["losetup", "--list"], capture_output=True, text=True).stdout
    assert "labbook-probe" not in backing


@pytest.mark.skipif(os.geteuid(), reason="root itself")
def test_what_a_killed_try_left_goes_with_the_next():
    features.SCRATCH.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = features.SCRATCH / "labbook-probe-killed"
    device = loop_device.make(file, 8 << 20)
    groups = sorted(path for path in Path("/sys/fs/cgroup").glob("*/cgroup.procs"))[:1]
    for group in groups:
        (group.parent / "labbook-probe-killed").mkdir()
    probes.probes(["tbf"], again=True)
    assert not file.exists() and device not in loop_device.devices(str(file))
    assert not any((group.parent / "labbook-probe-killed").exists() for group in groups)


def test_what_is_found_is_remembered(monkeypatch):
    found = probes.probe("tbf")
    monkeypatch.setattr(deadline, "to_its_end", None)       # by which probes are tried
    assert probes.probe("tbf") == found
    with pytest.raises(TypeError):
        probes.probes(["tbf"], again=True)


def test_netem_is_what_tc_says():
    """Asked another way: does a new namespace's own interface take it?"""
    script = ("ip link add veth0 type veth peer name veth1 && "
              "tc qdisc add dev veth0 root netem limit 9")
    done = subprocess.run([*SUDO, "unshare", "--net", "sh", "-c", script], capture_output=True)
    assert probes.probes(["netem"], again=True)["netem"].ok == (done.returncode == 0)


def test_a_queue_that_cannot_be_had_is_reported(monkeypatch):
    monkeypatch.setattr(features.delayline, "__file__", "/no/such/delayline.py")
    try:
        features._nfqueue()
    except features.Missing as missing:
        assert "delayline.py" in str(missing)
    else:
        raise AssertionError("the delay line was not tried")

"""Frozen hosts: they rest, take commands, wake, and leave nothing when the lab goes down."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import helper_kill
import pytest
from small_labs import describe, new_id

from labbook.lab import Environment, Lab
from labbook.lab.local import provider

COUNT = "sh -c 'while :; do echo >> count; sleep 0.01; done'"
DRIVER = """
import sys, time
sys.path.insert(0, sys.argv[2])
from small_labs import describe
from labbook.lab import Environment, Lab
lab = Lab.up(describe({"h1": {}, "h2": {"memory": "64M"}}), Environment("local"), sys.argv[1])
for host in lab.hosts.values():
    host.start("busy", "sh -c 'while :; do sleep 0.01; done'")
assert lab.freeze("h1", "h2") == ["h1", "h2"]
print("frozen", flush=True)
time.sleep(600)
"""


def count(host):
    return int(host.run("touch count; wc -l < count").stdout)


def moves(host):
    before = count(host)
    time.sleep(0.3)
    return count(host) > before


def groups(lab: str) -> list:
    """The control groups of a lab, which lie at the top or in one of the groups there."""
    root = Path("/sys/fs/cgroup")
    return [path for path in (root / f"labbook-{lab}", *root.glob(f"*/labbook-{lab}")) if path.exists()]


def wait_for(condition):
    until = time.monotonic() + 20
    while not condition() and time.monotonic() < until:
        time.sleep(0.1)
    assert condition()


@pytest.fixture
def lab():
    with Lab.up(describe({"h1": {}, "h2": {"memory": "64M"}}), Environment("local"), new_id()) as lab:
        if lab.facts()["without_freezer"]:
            pytest.skip("this machine has no freezer")
        for host in lab.hosts.values():
            host.start("count", COUNT)
            wait_for(lambda host=host: count(host) > 0)
        yield lab


def test_a_frozen_host_rests_and_takes_commands_until_it_wakes(lab):
    h1, h2 = lab.host("h1"), lab.host("h2")
    with lab.only("h2") as frozen:
        assert frozen == ["h1"] and not moves(h1)
        wait_for(lambda: moves(h2))
        late = h1.start("late", "sh -c 'echo here > late; sleep 600'")
        wait_for(lambda: h1.run("test -e late", check=False).exit_code == 0)
    wait_for(lambda: moves(h1))
    assert late.alive()
    with lab.only("h1"):
        assert not moves(h2)
        wait_for(lambda: moves(h1))
    wait_for(lambda: moves(h2))


def test_a_lab_with_frozen_hosts_goes_down(lab):
    lab.freeze("h1", "h2")
    lab.down()
    assert not groups(lab.id)


def test_processes_that_start_others_without_a_pause_freeze_each_time(lab):
    """The shell starts others by vfork, and waits until they execute."""
    for one in range(6):
        lab.host("h1").start(f"busy{one}", "sh -c 'while :; do sleep 0; done'")
    for _ in range(60):
        lab.freeze("h1")
        lab.thaw("h1")


@contextmanager
def frozen_by_another(lab: str):
    """A driver that has brought up a lab and frozen its hosts; it is killed at the end, and the lab taken down."""
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, lab, os.path.dirname(__file__)],
                              stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout.readline() == "frozen\n"
        yield driver
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        provider.down(lab)


def test_a_lab_whose_driver_died_with_frozen_hosts_goes_down():
    lab = new_id()
    with frozen_by_another(lab):
        pass
    assert not provider.state_folder(lab).exists()
    assert not groups(lab)


def test_the_helper_that_freezes_ends_with_its_driver():
    with frozen_by_another(new_id()) as driver:
        helper, = (pid for pid in helper_kill.children(driver.pid) if b"root.serve" in helper_kill.command(pid))
    wait_for(lambda: not helper_kill.command(helper))


def test_a_host_is_thawed_though_its_helper_was_killed(lab):
    lab.freeze("h1")
    helper, = (pid for pid in helper_kill.children(os.getpid()) if b"root.serve" in helper_kill.command(pid))
    subprocess.run([*(["sudo", "-n"] if os.geteuid() else []), "kill", "-KILL", str(helper)], check=True)
    lab.thaw("h1")
    wait_for(lambda: moves(lab.host("h1")))

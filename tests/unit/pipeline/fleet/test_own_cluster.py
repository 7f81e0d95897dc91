"""The controller of a fleet and its keys go with its driver: when that closes it, and when it is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from labbook.pipeline.executing import driver as executing
from labbook.pipeline.fleet import own_cluster

DRIVER = """
import sys
from types import SimpleNamespace
from labbook.pipeline.fleet.own_cluster import OwnCluster
cluster = OwnCluster(SimpleNamespace(machines=[], lost_after_s=60))
print(cluster._controller.pid, flush=True)
sys.stdin.readline()
cluster.close()
"""


@pytest.mark.parametrize("killed", [False, True])
def test_no_process_of_the_controller_outlives_its_driver_and_no_key_the_next_command(tmp_path, monkeypatch, killed):
    monkeypatch.setenv("LABBOOK_ROOT", str(tmp_path / "book"))
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)})
    session = int(driver.stdout.readline())
    assert len(_alive(session)) == 2    # the controller, and what it has forked
    executing.sweep_sockets()
    assert len(list(tmp_path.glob("labbook-fleet-*"))) == 1, "its driver lives"
    if killed:
        driver.send_signal(signal.SIGKILL)
    driver.communicate("\n")
    until = time.monotonic() + 20
    while _alive(session) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _alive(session)
    executing.sweep_sockets()
    assert not list(tmp_path.glob("labbook-fleet-*")) and not list(tmp_path.glob("book/build/logs/*.sockets"))


def test_the_next_run_of_a_fleet_removes_the_keys_of_one_that_was_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_ROOT", str(tmp_path / "book"))
    monkeypatch.setattr(own_cluster.tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "labbook-fleet-left"
    left.mkdir()
    note = tmp_path / "book/build/logs/fleet-1.sockets"
    note.parent.mkdir(parents=True)
    note.write_text(str(left))
    with own_cluster._own_folder() as one, own_cluster._own_folder() as other:
        assert set(tmp_path.glob("labbook-fleet-*")) == {one, other}, "two drivers at a time"
        assert one.stat().st_mode & 0o777 == 0o700


def _alive(session: int) -> list[str]:
    listed = subprocess.run(["ps", "-s", str(session), "-o", "pid=,stat="], capture_output=True, text=True)
    return [line for line in listed.stdout.splitlines() if "Z" not in line]

"""The controller of a fleet ends with its driver: when that closes it, and when it is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

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
def test_no_process_of_the_controller_outlives_its_driver(tmp_path, killed):
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)})
    session = int(driver.stdout.readline())
    assert len(_alive(session)) == 2    # the controller, and what it has forked
    if killed:
        driver.send_signal(signal.SIGKILL)
    driver.communicate("\n")
    until = time.monotonic() + 20
    while _alive(session) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _alive(session)


def _alive(session: int) -> list[str]:
    listed = subprocess.run(["ps", "-s", str(session), "-o", "pid=,stat="], capture_output=True, text=True)
    return [line for line in listed.stdout.splitlines() if "Z" not in line]

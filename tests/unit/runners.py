"""Programs that run clients, started as a client host's engine starts them, and whether they are gone."""

import json
import subprocess
import sys
import time
from contextlib import contextmanager


@contextmanager
def ready(module: str, spec: dict, out="out", clients: int = 1):
    """The program once it and all of its clients are there; at the end they are all gone."""
    runner = subprocess.Popen(
        [sys.executable, "-m", f"labbook.workloads.{module}", str(out)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True)
    with runner:
        runner.stdin.write(json.dumps(spec).encode() + b"\n")
        runner.stdin.flush()
        assert runner.stdout.readline() == b"ready\n"
        assert len(_session(runner.pid)) == 1 + clients
        yield runner
    until = time.monotonic() + 20
    while _session(runner.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _session(runner.pid)


def begin(runner) -> None:
    """Let the clients start at once."""
    runner.stdin.write(b"0\n")
    runner.stdin.flush()


def _session(leader: int) -> list[str]:
    return subprocess.run(["pgrep", "-s", str(leader)], capture_output=True,
                          text=True).stdout.split()

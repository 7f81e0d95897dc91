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
        assert len(session(runner.pid)) == 1 + clients
        yield runner
    await_end(runner.pid)


def begin(runner) -> None:
    """Let the clients start at once."""
    runner.stdin.write(b"%r\n" % time.time())
    runner.stdin.flush()


def await_work(leader: int) -> None:
    """Until each client has used 30 ms of a processor since now: it calls."""
    clients = [int(pid) for pid in session(leader) if int(pid) != leader]
    before = {pid: _ticks(pid) for pid in clients}
    until = time.monotonic() + 20
    while any(_ticks(pid) < before[pid] + 3 for pid in clients) and time.monotonic() < until:
        time.sleep(0.02)
    assert all(_ticks(pid) >= before[pid] + 3 for pid in clients)


def _ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def await_end(leader: int) -> None:
    """Until no process of the leader's session is left."""
    until = time.monotonic() + 20
    while session(leader) and time.monotonic() < until:
        time.sleep(0.05)
    assert not session(leader)


def session(leader: int) -> list[str]:
    """The processes of a session that are alive."""
    listed = subprocess.run(["ps", "-s", str(leader), "-o", "pid=,stat="], capture_output=True, text=True)
    return [line.split()[0] for line in listed.stdout.splitlines() if "Z" not in line]

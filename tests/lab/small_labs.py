"""Descriptions of small labs, ids of their own, and a small machine for them."""

import os
import secrets
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from labbook.lab import Lab, LabDescription
from labbook.lab.ownership import Ownership

SUDO = ["sudo", "-n"] if os.geteuid() else []


def describe(hosts: dict, links=(), **more) -> LabDescription:
    """A description from `{name: limits}` in one site, or `{name: (site, limits)}`."""
    entries = {}
    for name, given in hosts.items():
        site, limits = given if isinstance(given, tuple) else ("lan", given)
        entries[name] = {"site": site, "role": "client" if "client" in name else "db",
                         "limits": limits}
    sites = list(dict.fromkeys(e["site"] for e in entries.values()))
    return LabDescription.parse({"sites": sites, "hosts": entries, "links": list(links), **more})


def new_id() -> str:
    return f"t{secrets.token_hex(3)}"


def swept(lab_id: str, seconds: float = 60) -> bool:
    """Sweep; whether a lab whose driver died is gone. Another worker's sweep may have come first."""
    until = time.monotonic() + seconds
    while lab_id not in Lab.sweep() and Path("/run/labbook", lab_id).exists():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def owned_state(open_state) -> Ownership:
    """A lab's state folder, whose path open_state() gives, so that no other worker's sweep takes it."""
    while not (ownership := Ownership(open_state())).take():
        pass
    return ownership


def backing_files() -> list[str]:
    """The files below the machine's loop devices; others detach theirs meanwhile."""
    found = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):
            found.append(path.read_text())
    return found


def put_as(user: str, host):
    """host.put for a host whose commands run as `user` (its number), though SSH's login is root."""
    put, run = host.put, host.run

    def put_and_give(data, path, mode=0o644):
        put(data, path, mode)
        run(f"chown {user}:{user} {path}")

    return put_and_give


@pytest.fixture
def small_machine(tmp_path):
    """A file system of 96 MB where labs keep their hosts' disks, which are sparse files. In memory: hosts of
    other labs hold what is mounted when they start, and would keep a loop device with it."""
    place = tmp_path / "state"
    place.mkdir()
    subprocess.run([*SUDO, "mount", "-t", "tmpfs", "-o", "size=96m,mode=0755", "full-disk", str(place)], check=True)
    yield place
    subprocess.run([*SUDO, "umount", str(place)], check=True)


# A refused connect takes one round trip, and no ping: another witness than a link's own check.
# The shortest counts, as there: cores that idle meanwhile were seen to wake several ms late.
CONNECT = """
import socket, sys, time
times = []
for _ in range(9):
    began = time.perf_counter()
    assert socket.socket().connect_ex((sys.argv[1], 9)) == 111
    times.append((time.perf_counter() - began) * 1e3)
print(min(times))
"""


def connect_ms(source, target) -> float:
    """The shortest round trip from one host to another's data address."""
    return float(source.run(f"{source.python} -I -S -c '{CONNECT}' {target.address}").stdout)


def best_of(tries, measure, good):
    """A busy machine gets another chance; the last answer when none is good."""
    for _ in range(tries):
        answer = measure()
        if good(answer):
            break
    return answer

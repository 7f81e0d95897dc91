"""Labs on hosts of a user's own: up, found again, limited, down; nothing of them stays."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from foreign import differences, foreign_hosts
from small_labs import describe, new_id

from labbook.errors import LabError
from labbook.lab import Environment, Lab

HERE = Path(__file__).parent
LIMITS = {"h1": {"cores": 1, "quota": 0.5, "memory": "256M"}, "h2": {"cores_of": "h1"}}
ALLOW = ["limits", "disk", "shape"]


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["r1", "r2"], jump="bastion") as made:
        yield made


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "labbook" / "labs"


@pytest.fixture
def there(place, tmp_path):
    """An environment of the two hosts that allows all, and what they were like before."""
    return Environment.load(place.environment(tmp_path / "hosts.yml", allow=ALLOW))


@pytest.fixture
def same(place):
    """After the test, hosts are as they were before it."""
    before = {name: place.snapshot(name) for name in place.names}
    yield before
    for name in place.names:
        assert differences(before[name], place.snapshot(name)) == [], name


def test_up_and_down_leave_nothing_here_or_there(place, there, same, state):
    description = describe(LIMITS)
    with Lab.up(description, there, new_id()) as lab:
        h1, h2 = lab.host("h1"), lab.host("h2")
        assert h1.run("id -un; pwd; echo $HOME").stdout.split() == ["op", str(h1.root), str(h1.root)]
        assert h1.address == place.addresses["r1"]["data"]
        assert h1.run("stat -c %a . ..").stdout.split() == ["700", "700"]
        assert h1.run("nproc").stdout.strip() == "1" and len(h2.cores) == 1
        server = h1.start("server", "sleep 1000")
        groups = h1.run(f"cat /proc/{server.pid}/cgroup").stdout
        assert groups.count(f"labbook-{lab.id}/h1") == len(h1.groups) > 0
        h2.start("roots", "sleep 1001", root=True)
        h2.run("setsid sh -c 'sleep 1002 & sleep 1003' > /dev/null 2>&1 < /dev/null & true")
        assert (lab.folder / "lab.json").stat().st_mode and lab.folder.parent == state
        facts = json.dumps(lab.facts())
        for secret in (there.hosts[0].key, "op", h1.address, h1.login.address):
            assert f'"{secret}"' not in facts
        assert lab.facts()["hosts"]["h1"]["machine"]["cores"] >= 1
    assert list(state.iterdir()) == []

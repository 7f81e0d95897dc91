"""Which host keys a cloud's servers must have."""

import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from here import here_host

from labbook.errors import SystemFailure
from labbook.workloads.clouds.guests import Guests


class Cloud:
    """Shows a key for each server but `mute`, and counts how often it is asked."""

    user = "debian"

    def __init__(self, own):
        self.own, self.key_requests = own, []

    def host_keys(self, server):
        self.key_requests.append(server.id)
        if server.name == "mute":
            raise SystemFailure("no key")
        return [f"ssh-ed25519 AAAA{server.id}"]


def server(id, address, name="vm"):
    return SimpleNamespace(id=id, address=address, name=name)


@pytest.fixture
def via(tmp_path):
    return here_host(tmp_path, "client")


def test_a_server_of_a_users_cloud_has_the_key_that_its_console_showed(via):
    cloud = Cloud(own="a cloud of the user's")
    guests = Guests(cloud, via, str(via.root / "key"))
    one, other = server("i1", "10.0.0.4"), server("i2", "10.0.0.5")
    for each in (one, other, one):
        machine = guests.reach(each)
        assert "StrictHostKeyChecking=yes" in machine.ssh_options()
    assert cloud.key_requests == ["i1", "i2"]
    known = Path(machine.known_hosts)
    assert known.read_text() == "10.0.0.4 ssh-ed25519 AAAAi1\n10.0.0.5 ssh-ed25519 AAAAi2\n"
    assert stat.S_IMODE(known.stat().st_mode) == 0o600
    guests.reach(server("i3", "10.0.0.4"))      # a later server has the address of an ended one
    assert "10.0.0.4 ssh-ed25519 AAAAi3\n" in known.read_text() and "AAAAi1" not in known.read_text()
    with pytest.raises(SystemFailure, match="no key"):
        guests.reach(server("i4", "10.0.0.6", "mute"))


def test_servers_inside_a_host_of_the_lab_are_taken_as_they_are(via):
    cloud = Cloud(own=None)
    assert Guests(cloud, via, "/key").reach(server("i1", "10.0.0.4")).known_hosts == ""
    assert not cloud.key_requests

"""The other version of a cloud's client: what is asked of the host, and what its failures say."""

import json
import shlex
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook.errors import SystemFailure
from labbook.systems.openstack.other_client import OtherClient

AUTH = {"auth_url": "http://127.0.0.1:5000/v3", "username": "admin"}


class Host:
    def __init__(self, exit_code=0, stdout="", stderr=""):
        self.result = SimpleNamespace(exit_code=exit_code, stdout=stdout, stderr=stderr)
        self.commands, self.files = [], {}

    def run(self, command, timeout=60, check=True):
        assert not check, "a failure of the client is no failure of the lab"
        self.commands.append(command)
        return self.result

    def put(self, text, path):
        self.files[str(path)] = text


def client(host):
    return OtherClient(host, AUTH, "/lab/keys/password", PurePosixPath("/lab/openstack"))


def test_its_name_has_the_version_of_the_hosts_package():
    assert client(Host(stdout="0.101.0\n")).name() == "openstacksdk 0.101.0"
    assert client(Host(exit_code=1, stderr="PackageNotFoundError: openstacksdk")).name() is None


def test_it_is_asked_for_an_image_of_the_server_and_no_password_is_on_the_command_line():
    host = Host(stdout='{"image": "i1"}\n')
    assert client(host).snapshot("s1", "labbook-a b", {"labbook": "t1"}) == "i1"
    (path, program), = host.files.items()
    words = shlex.split(host.commands[0])
    assert path == words[-1] == "/lab/openstack/other_client.py" and "create_server_image" in program
    given = json.loads(words[1])
    assert given["auth"] == AUTH and given["password_file"] == "/lab/keys/password"
    assert (given["server"], given["name"], given["metadata"]) == ("s1", "labbook-a b", {"labbook": "t1"})


@pytest.mark.parametrize("said, told", [("Traceback\nConflictException: 409: busy\n", "409: busy"), ("", "no word")])
def test_what_it_fails_at_is_the_clouds_failure(said, told):
    with pytest.raises(SystemFailure, match=f"image of a server: .*{told}"):
        client(Host(exit_code=1, stderr=said)).snapshot("s1", "n", {})

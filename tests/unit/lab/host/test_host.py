"""A host's connection, which its threads share."""

from pathlib import PurePosixPath
from types import SimpleNamespace

import paramiko
import pytest

from labbook.errors import Lost
from labbook.lab.host.host import Host
from labbook.lab.ssh import connection as ssh
from labbook.lab.ssh.login import Login


def connection():
    return SimpleNamespace(is_connected=True)


@pytest.fixture
def host(monkeypatch):
    closed = []
    monkeypatch.setattr(ssh, "close", closed.append)
    made = Host("db1", "a", "db", "192.0.2.1", Login("192.0.2.1", "me", "/key", "/known"), PurePosixPath("/labs/l/db1"),
                "python3")
    made.closed = closed
    return made


@pytest.mark.parametrize("renewed", [True, False])
def test_a_connection_that_broke_is_dropped_and_not_one_opened_since(host, monkeypatch, renewed):
    first = host._connection = connection()
    second = connection() if renewed else first

    def run(given, line, timeout):
        assert given is first
        host._connection = second
        raise paramiko.SSHException("broken")

    monkeypatch.setattr(ssh, "run", run)
    with pytest.raises(Lost, match="broken"):
        host.run("true")
    assert host.closed == ([] if renewed else [first])
    assert host._connection is (second if renewed else None)

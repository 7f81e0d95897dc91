"""Ceph: asking daemons at their sockets, and the monitor by the teller."""

import json
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from here import here_host

from labbook.errors import LabError, SystemFailure
from labbook.systems.ceph import admin_socket as asking


class Daemon:
    """Answers questions at a socket as daemons do; `cut`: ends before its answer does."""

    def __init__(self, path: Path, answer: bytes, cut: int = 0):
        self.answer, self.cut, self.asked = answer, cut, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection = self.listener.accept()[0]
            asked = b""
            while not asked.endswith(b"\0"):
                asked += connection.recv(100)
            self.asked.append(json.loads(asked[:-1]))
            whole = struct.pack(">I", len(self.answer)) + self.answer
            connection.sendall(whole[:len(whole) - self.cut])
            connection.close()


@pytest.fixture
def host(tmp_path):
    host = here_host(tmp_path, "h")
    asking.put_tools(host, host.root)
    return host


def test_a_socket_is_asked_and_answers_in_json_or_words(host):
    daemon = Daemon(host.root / "one", b'{"version": "16.2.15"}')
    assert asking.ask(host, host.root, "one", {"prefix": "version"}) == {"version": "16.2.15"}
    assert daemon.asked == [{"format": "json", "prefix": "version"}]
    found = asking.ask_all(host, host.root, "one", [{"prefix": "a", "n": 1}, {"prefix": "b"}])
    assert len(found) == 2 and daemon.asked[1] == {"format": "json", "prefix": "a", "n": 1}
    Daemon(host.root / "two", b'[{"addr": "1.2.3.4:0/5"}][]')   # as the monitor's blocklist
    assert asking.ask(host, host.root, "two", {"prefix": "x"}) == [{"addr": "1.2.3.4:0/5"}]
    Daemon(host.root / "twice", b'{"request": {"tid": 1}, "request": {"tid": 2}}')   # as a client's calls
    assert asking.ask(host, host.root, "twice", {"prefix": "x"}) == {"request": [{"tid": 1}, {"tid": 2}]}
    Daemon(host.root / "words", b"mds not active")
    assert asking.ask(host, host.root, "words", {"prefix": "x"}) == "mds not active"
    Daemon(host.root / "none", b"")
    assert asking.ask(host, host.root, "none", {"prefix": "x"}) == {}


def test_no_answer_and_a_refusal_are_told(host):
    with pytest.raises(SystemFailure, match="no answer to `version`.*No such file"):
        asking.ask(host, host.root, "nothing", {"prefix": "version"})
    Daemon(host.root / "cut", b"a long answer", cut=5)
    with pytest.raises(SystemFailure, match="ended 5 bytes before its end"):
        asking.ask(host, host.root, "cut", {"prefix": "x"})
    silent = socket.socket(socket.AF_UNIX)
    silent.bind(str(host.root / "silent"))
    silent.listen()
    began = time.monotonic()
    with pytest.raises(SystemFailure, match="no answer.*timed out"):
        asking.ask(host, host.root, "silent", {"prefix": "x"}, 0.2)
    assert time.monotonic() - began < asking.SLACK_S
    Daemon(host.root / "refuses", json.dumps({"refused": -22, "why": "no such rank"}).encode())
    with pytest.raises(SystemFailure, match="`mds fail` was refused: no such rank"):
        asking.ask(host, host.root, "refuses", {"prefix": "mds fail"})
    (Path(host.root) / "ceph_tools" / "asking.py").unlink()
    with pytest.raises(LabError, match=r"(?s)asking one failed.*No module named .asking"):
        asking.ask(host, host.root, "one", {"prefix": "x"})


class FakeCluster:
    def mon_command(self, command, given, timeout):
        asked = json.loads(command)
        if asked["prefix"] == "no":
            return -22, b"", "invalid command"
        return 0, json.dumps({"asked": asked, "given": given.decode()}).encode(), ""


def test_the_teller_passes_on_what_the_monitor_says(monkeypatch):
    monkeypatch.syspath_prepend(str(asking.TOOLS))
    import teller

    found = json.loads(teller.told(FakeCluster(), {"prefix": "fs dump", "input": "map"}))
    assert found == {"asked": {"prefix": "fs dump"}, "given": "map"}
    assert json.loads(teller.told(FakeCluster(), {"prefix": "no"})) == {
        "refused": -22, "why": "invalid command"}

"""Questions to daemons at their admin sockets, and to the monitor through its proxy."""

import json
import socket
import struct
import threading
from pathlib import Path

import pytest
from here import here_host

from labbook.errors import LabError, SystemFailure
from labbook.systems.ceph import admin_socket


class Daemon:
    """A daemon's admin socket; the last `cut` bytes of an answer are missing."""

    def __init__(self, path: Path, answer: bytes, cut: int = 0):
        self.answer, self.cut, self.questions = answer, cut, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection = self.listener.accept()[0]
            request = b""
            while not request.endswith(b"\0"):
                request += connection.recv(100)
            self.questions.append(json.loads(request[:-1]))
            whole = struct.pack(">I", len(self.answer)) + self.answer
            connection.sendall(whole[:len(whole) - self.cut])
            connection.close()


@pytest.fixture
def host(tmp_path):
    host = here_host(tmp_path, "h")
    admin_socket.put_tools(host, host.root)
    return host


def test_answers_are_parsed_json_or_text(host):
    daemon = Daemon(host.root / "one", b'{"version": "16.2.15"}')
    assert admin_socket.ask(host, host.root, "one", {"prefix": "version"}) == {"version": "16.2.15"}
    assert daemon.questions == [{"format": "json", "prefix": "version"}]
    found = admin_socket.ask_all(host, host.root, "one", [{"prefix": "a", "n": 1}, {"prefix": "b"}])
    assert len(found) == 2 and daemon.questions[1] == {"format": "json", "prefix": "a", "n": 1}
    Daemon(host.root / "two", b'[{"addr": "1.2.3.4:0/5"}][]')   # as the monitor's blocklist
    assert admin_socket.ask(host, host.root, "two", {"prefix": "x"}) == [{"addr": "1.2.3.4:0/5"}]
    Daemon(host.root / "twice", b'{"request": {"tid": 1}, "request": {"tid": 2}}')   # as a client's requests
    assert admin_socket.ask(host, host.root, "twice", {"prefix": "x"}) == {"request": [{"tid": 1}, {"tid": 2}]}
    Daemon(host.root / "words", b"mds not active")
    assert admin_socket.ask(host, host.root, "words", {"prefix": "x"}) == "mds not active"
    Daemon(host.root / "none", b"")
    assert admin_socket.ask(host, host.root, "none", {"prefix": "x"}) == {}


def test_no_answer_and_a_refusal_are_errors(host):
    with pytest.raises(SystemFailure, match="no answer to `version`.*No such file"):
        admin_socket.ask(host, host.root, "nothing", {"prefix": "version"})
    Daemon(host.root / "cut", b"a long answer", cut=5)
    with pytest.raises(SystemFailure, match="lacks its last 5 bytes"):
        admin_socket.ask(host, host.root, "cut", {"prefix": "x"})
    silent = socket.socket(socket.AF_UNIX)
    silent.bind(str(host.root / "silent"))
    silent.listen()
    with pytest.raises(SystemFailure, match="no answer.*timed out"):
        admin_socket.ask(host, host.root, "silent", {"prefix": "x"}, 0.2)
    Daemon(host.root / "refuses", json.dumps({"refused": -22, "why": "no such rank"}).encode())
    with pytest.raises(SystemFailure, match="`mds fail` was refused: no such rank"):
        admin_socket.ask(host, host.root, "refuses", {"prefix": "mds fail"})
    (Path(host.root) / "ceph_tools" / "admin_protocol.py").unlink()
    with pytest.raises(LabError, match=r"(?s)query of one failed.*No module named .admin_protocol"):
        admin_socket.ask(host, host.root, "one", {"prefix": "x"})


class FakeCluster:
    def mon_command(self, command, given, timeout):
        request = json.loads(command)
        if request["prefix"] == "no":
            return -22, b"", "invalid command"
        return 0, json.dumps({"asked": request, "given": given.decode()}).encode(), ""


def test_the_proxy_passes_on_the_monitors_answer(monkeypatch):
    monkeypatch.syspath_prepend(str(admin_socket.TOOLS))
    import mon_proxy

    found = json.loads(mon_proxy.mon_answer(FakeCluster(), {"prefix": "fs dump", "input": "map"}))
    assert found == {"asked": {"prefix": "fs dump"}, "given": "map"}
    assert json.loads(mon_proxy.mon_answer(FakeCluster(), {"prefix": "no"})) == {
        "refused": -22, "why": "invalid command"}

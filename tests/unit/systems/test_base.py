"""The life of a system, with a toy server on this machine, run by the user who runs the tests."""

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path, PurePosixPath

import pytest
from here import free_port

from labbook.errors import InputError, LabError, SystemFailure
from labbook.lab.cache.build import COMPLETE, build_once, is_whole
from labbook.lab.cache.push import push
from labbook.lab.host import process as processes
from labbook.lab.host.host import Host, Result
from labbook.lab.ssh import transfer
from labbook.lab.ssh.login import Login
from labbook.systems.base import LISTENER, System, memory_mb

SERVER = """
import socket, sys, time
port, mood = int(sys.argv[1]), sys.argv[2]
if mood == "broken":
    sys.exit("no such setting: mood")
listening = socket.create_server(("127.0.0.1", port)) if mood != "deaf" else None
print("serving", flush=True)
while True:
    if mood == "deaf":
        time.sleep(1)
    caller, _ = listening.accept()
    caller.sendall(b"hello" if mood == "good" else b"go away")
    caller.close()
"""


class Here(Host):
    """This machine as a host, without SSH."""

    def __init__(self, root: Path):
        super().__init__("here", "lan", "db", "127.0.0.1",
                         Login("127.0.0.1", "root", "", ""), root, sys.executable)

    def _run(self, line, command, timeout):
        done = subprocess.run(line, shell=True, text=True, capture_output=True, timeout=timeout)
        return Result(done.stdout, done.stderr, done.returncode)

    def put(self, data, remote, mode=0o644):
        raw = data.read_bytes() if isinstance(data, Path) else data.encode()
        Path(self.root / remote).write_bytes(raw)

    def dial(self, address, port, timeout=10):
        return socket.create_connection((address, port), timeout)


class Toy(System):
    NAME = "toy"
    SETTINGS = {"mood": {"enum": ["good", "rude", "deaf", "broken"], "default": "good"},
                "port": {"type": "integer"}}
    START_SECONDS = 10

    @property
    def port(self):
        return self.settings.port

    def deploy(self):
        self.put(SERVER, "server.py")

    def command(self):
        return f"exec {sys.executable} {self.home}/server.py {self.port} {self.settings.mood}"

    def answers(self):
        with self.channel() as calling:
            greeting = calling.recv(10)
        if greeting != b"hello":
            raise ValueError(greeting)

    def report(self):
        self.answers()
        return {"version": "1"}


@pytest.fixture
def port():
    with free_port() as port:
        yield port


@pytest.fixture
def host(tmp_path):
    if not shutil.which("ss"):
        pytest.skip("no ss (package iproute2) here")
    host = Here(tmp_path)
    try:
        yield host
        if left := host.process("toy"):
            left.stop()
    finally:
        end_what_runs_below(tmp_path)


def end_what_runs_below(folder):
    """Whatever is wrong with the processes that are tested."""
    for ids in folder.glob("processes/*/ids"):
        leader, _, child, *_ = ids.read_text().split()
        for pid in (leader, child):
            with suppress(FileNotFoundError, ProcessLookupError):
                if str(folder).encode() in Path("/proc", pid, "cmdline").read_bytes():
                    os.kill(int(pid), signal.SIGKILL)


def test_life_from_up_to_destroy(host, port):
    toy = Toy(host, port=port).up()
    facts = toy.facts()
    assert facts["system"] == "toy" and facts["version"] == "1" and facts["mood"] == "good"
    assert facts["threads"] == 1 and 1 < facts["resident_mb"] < 500
    json.dumps(facts)
    toy.stop()
    assert not toy.process.alive()
    with pytest.raises(SystemFailure, match="does not run") as ended:
        toy.facts()
    assert "serving" in ended.value.log
    toy.start()
    toy.destroy()
    assert not Path(toy.home).exists()


def test_another_object_finds_the_running_server(host, port):
    Toy(host, port=port).up()
    again = Toy(host, port=port)
    assert again.process.alive() and again.facts()["threads"] == 1
    again.destroy()
    assert not host.process("toy").alive()


def test_up_replaces_what_an_earlier_run_left(host, port):
    earlier = Toy(host, port=port).up().process.pid
    assert Toy(host, port=port).up().process.pid != earlier


def test_a_killed_server_is_gone_at_once_and_one_that_remains_is_an_error(host, port, monkeypatch):
    toy = Toy(host, port=port).up()
    earlier = toy.process.pid
    toy.process.kill()
    toy.start()
    assert toy.process.pid != earlier
    # Nothing that can be made at will outlives SIGKILL: here it does not arrive.
    monkeypatch.setattr(processes, "KILL", processes.KILL.replace("pkill", ": pkill"))
    monkeypatch.setattr(processes, "KILL_SECONDS", 0)
    with pytest.raises(LabError, match="here: toy is not gone"):
        toy.process.kill()


def test_the_error_of_a_server_that_dies_at_start_has_its_logs_tail(host, port):
    toy = Toy(host, port=port, mood="broken")
    with pytest.raises(SystemFailure) as failure:
        toy.up()
    assert failure.value.log.strip() == "no such setting: mood"
    assert "no such setting: mood" in str(failure.value) and "exit code 1" in str(failure.value)


def test_a_port_in_use_is_an_error_even_when_its_owner_answers_alike(host, port, tmp_path):
    (tmp_path / "other.py").write_text(SERVER)
    other = subprocess.Popen([sys.executable, tmp_path / "other.py", str(port), "good"],
                             stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "serving\n"
        with pytest.raises(SystemFailure, match="Address already in use"):
            Toy(host, port=port).up()
    finally:
        other.kill()
        other.communicate()


@pytest.mark.parametrize("mood, message", [("deaf", "serving|not within"), ("rude", "go away")])
def test_a_server_that_never_answers_is_stopped_and_its_last_error_reported(host, port, mood, message,
                                                                   monkeypatch):
    monkeypatch.setattr(Toy, "START_SECONDS", 0.5)
    toy = Toy(host, port=port, mood=mood)
    with pytest.raises(SystemFailure, match=message):
        toy.up()
    assert not toy.process.alive()


def test_an_error_of_the_lab_ends_the_wait(host, port, monkeypatch):
    def lost(self):
        raise LabError("connection lost")

    monkeypatch.setattr(Toy, "answers", lost)
    with pytest.raises(LabError, match="connection lost"):
        Toy(host, port=port).up()


@pytest.mark.parametrize("error", [TypeError, AttributeError, NameError, ModuleNotFoundError])
def test_a_mistake_in_the_code_that_asks_is_raised_at_once(host, port, monkeypatch, error):
    calls = []

    def mistaken(self):
        calls.append(1)
        raise error("a mistake")

    monkeypatch.setattr(Toy, "answers", mistaken)
    toy = Toy(host, port=port)
    with pytest.raises(error, match="a mistake"):
        toy.up()
    assert len(calls) == 1 and not toy.process.alive()


def test_a_killed_server_starts_again_with_its_files(host, port):
    toy = Toy(host, port=port).up()
    toy.kill()
    assert not toy.process.alive() and (Path(toy.home) / "server.py").exists()
    toy.start()
    assert toy.processes == [toy.process] and toy.process.alive()
    assert toy.addresses == ["127.0.0.1"]


@pytest.mark.parametrize("settings, message", [
    ({"moood": "good"}, "moood.*did you mean 'mood'"),
    ({"mood": "sad"}, "mood: 'sad' is not allowed .*good, rude"),
    ({"port": "80"}, "port: '80' is not of type integer"),
])
def test_wrong_settings(tmp_path, settings, message):
    with pytest.raises(InputError, match=f"settings of toy: {message}"):
        Toy(Here(tmp_path), **settings)


def test_memory_is_the_limit_or_the_machines(tmp_path):
    host = Here(tmp_path)
    assert 100 < memory_mb(host) < 10_000_000
    host.limits = {"memory": 3 << 30}
    assert memory_mb(host) == 3072


class Foreign(Here):
    """Sees nothing of this machine's cache; counts what is sent."""

    sent = 0

    def run(self, command, **options):
        return super().run(command.replace("/cache/", "/not-here/"), **options)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(transfer, "feed", feed)
    return build_once("store-1.2", lambda folder: (folder / "store-1.2.jar").write_text("a jar"))


def feed(host, command, pour, size, what):
    """As transfer.feed, to this machine."""
    host.sent += 1
    poured = io.BytesIO()
    pour(poured)
    subprocess.run(command, shell=True, check=True, input=poured.getvalue())


def test_a_folder_that_the_host_sees_is_used_where_it_is(folder, tmp_path):
    host = Here(tmp_path / "host")
    host.root.mkdir()
    assert push(host, folder) == PurePosixPath(folder)
    assert not list(host.root.iterdir())


def test_a_folder_is_copied_to_a_host_that_does_not_see_it(folder, tmp_path):
    host = Foreign(tmp_path / "host")
    host.root.mkdir()
    there = push(host, folder)
    assert there == host.root / "artifacts" / "store-1.2" and is_whole(there)
    assert [p.name for p in there.parent.iterdir()] == ["store-1.2"]
    assert push(host, folder) == there and host.sent == 1
    (there / COMPLETE).write_text("of another version")
    assert push(host, folder) == there and host.sent == 2 and is_whole(there)


def users_own(tmp_path, *allow):
    host = Foreign(tmp_path / "root" / "lab" / "db1")
    host.root.mkdir(parents=True)
    host.allow = frozenset(allow)
    return host


def test_a_folder_is_copied_to_a_remote_host_that_allows_it(folder, tmp_path):
    host = users_own(tmp_path, "software")
    place = tmp_path / "root" / "lab" / "artifacts" / "store-1.2"
    assert push(host, folder) == place and is_whole(place)
    assert push(host, folder) == place and host.sent == 1


def test_a_remote_host_that_allows_it_gets_a_copy_beside_one_that_is_not_the_same(folder, tmp_path):
    host, existing = users_own(tmp_path, "software"), tmp_path / "root" / "artifacts" / "store-1.2"
    shutil.copytree(folder, existing)
    (existing / "store-1.2.jar").write_text("a lie")
    there = push(host, folder)
    assert there != existing and (there / "store-1.2.jar").read_text() == "a jar"


def test_a_remote_host_may_have_the_folder_already_if_it_is_whole(folder, tmp_path):
    host, existing = users_own(tmp_path), tmp_path / "root" / "artifacts" / "store-1.2"
    with pytest.raises(LabError, match=r"root/artifacts/store-1.2 is not there.*`allow`"):
        push(host, folder)
    shutil.copytree(folder, existing)
    (existing / "store-1.2.jar").write_text("a lie")        # of the same size
    with pytest.raises(LabError, match="not whole"):
        push(host, folder)
    (existing / "store-1.2.jar").write_text("a jar")
    assert push(host, folder) == existing and host.sent == 0
    (existing / "store-1.2.jar").write_text("cut")
    with pytest.raises(LabError, match="not whole"):
        push(host, folder)


def test_a_foreign_listener_at_the_port_of_another_address_hides_no_server(tmp_path):
    """Process 11 is another session's; 22 is of the session that 33 began."""
    (tmp_path / "ss").write_text("#!/bin/sh\nprintf 'x users:((\"a\",pid=11,fd=3))\\nx users:((\"b\",pid=22,fd=3))\\n'\n")
    (tmp_path / "ps").write_text("#!/bin/sh\ncase $4 in 11) echo 1;; *) echo 5;; esac\n")
    for stub in tmp_path.iterdir():
        stub.chmod(0o700)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", LISTENER.format(port=3306, pid=33)], env=path, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("22\n", 0)
    (tmp_path / "ps").write_text("#!/bin/sh\ncase $4 in 33) echo 5;; *) echo 1;; esac\n")
    done = subprocess.run(["sh", "-c", LISTENER.format(port=3306, pid=33)], env=path, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 1)

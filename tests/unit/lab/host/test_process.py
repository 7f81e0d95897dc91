"""Processes on a host, by what /proc says of them."""

import os
import shutil
import signal
import threading
from contextlib import contextmanager

import pytest
from here import here_host

from labbook.errors import SystemFailure
from labbook.lab import kernel

# Calls itself what servers do that say what they are at.
PROGRAM = """import ctypes, time
ctypes.CDLL(None).prctl(15, b"at) work: 1 (of", 0, 0, 0)
print("named", flush=True)
time.sleep(60)"""


@pytest.fixture
def process(tmp_path):
    host = here_host(tmp_path, "h1")
    host.put(PROGRAM, "program.py")
    started = host.start("server", f"{host.python} program.py")
    host.wait_for(started.log_tail, "its name", 10, started, interval=0.01)
    yield started
    started.kill()


def test_one_whose_name_has_spaces_is_known_again(process):
    again = process.host.process("server")
    assert "at) work: 1 (of" in process.host.run(f"cat /proc/{again.pid}/stat").stdout
    assert again.alive() and again.exit_code() is None


@contextmanager
def noted(process, change):
    """What is noted of a process is change(its fields) within the block, which the process outlives."""
    host, ids = process.host, process.host.root / "processes" / "server" / "ids"
    fields = host.run(f"cat {ids}").stdout.split()
    host.put(change(fields), ids)
    try:
        yield
        assert not host.run(f"test -d /proc/{fields[2]}", check=False).exit_code
    finally:
        host.put(" ".join(fields), ids)


def test_another_of_its_number_is_not_taken_for_it(process):
    with noted(process, lambda fields: f"{fields[0]} 1 {fields[2]} 1"):
        assert not process.alive()
        process.kill()


def test_what_has_a_sessions_number_after_a_boot_is_left_alone(process):
    """Ended by its number, as root, on a user's host that had started anew while the lab was up."""
    gone = process.host.run("sh -c 'echo $$'").stdout.strip()
    with noted(process, lambda fields: f"{fields[0]} {fields[1]} {gone} 1 another-boot"):
        process.kill()
        process.stop()


def test_one_whose_start_is_unknown_is_no_process_at_all(process):
    """The leader of a program that ended at once had noted no start, and its session was ended by any later process's
    number: whoever had it by then."""
    gone = process.host.run("sh -c 'echo $$'").stdout.strip()
    with noted(process, lambda fields: f"{fields[0]} 1 {gone} "):
        process.kill()
        process.stop()


@pytest.fixture
def late(tmp_path):
    """A process that has ended with 7, whose leader writes that down in 0.3 s."""
    host = here_host(tmp_path, "h1")
    os.mkfifo(tmp_path / "go")
    ended = host.start("quick", f"sh -c 'read line < {tmp_path}/go; exit 7'")
    leader = int(host.run(f"cat {ended.folder}/ids").stdout.split()[0])
    os.kill(leader, signal.SIGSTOP)
    (tmp_path / "go").write_text("\n")
    host.wait_for(lambda: not ended.alive(), "it to end", 10, interval=0.01)
    threading.Timer(0.3, os.kill, (leader, signal.SIGCONT)).start()
    return ended


def test_its_exit_code_is_known_though_its_leader_has_not_written_it_yet(late):
    assert late.exit_code() == 7


def test_the_next_of_its_name_does_not_get_its_exit_code(late):
    following = late.host.start("quick", "sleep 60")
    try:
        with pytest.raises(SystemFailure):
            late.host.wait_for(lambda: not following.alive(), "it to be taken for ended", 1)
    finally:
        following.kill()


def test_of_one_that_was_killed_with_its_leader_the_code_says_so(process):
    process.kill()
    assert process.exit_code() == -9


def test_one_that_ignores_sigterm_is_killed_though_each_look_takes_long(tmp_path, monkeypatch):
    """SIGKILL came after so many looks, which a busy host did not get through in time."""
    host = here_host(tmp_path, "h1")
    stubborn = host.start("server", "sh -c 'trap : TERM; echo up; while :; do sleep 0.1; done'")
    host.wait_for(lambda: "up" in stubborn.log_tail(), "it to be up", 10, stubborn, interval=0.01)
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "pgrep").write_text(f"#!/bin/sh\nsleep 0.7\nexec {shutil.which('pgrep')} \"$@\"\n")
    (slow / "pgrep").chmod(0o700)
    monkeypatch.setenv("PATH", f"{slow}:{os.environ['PATH']}")
    stubborn.stop(timeout=1)
    assert not stubborn.alive() and stubborn.exit_code() == -9


def test_what_its_program_left_running_in_the_session_is_killed_too(tmp_path):
    """Once the program and its leader had ended, nothing was done: a database's script of its transfer kept its port."""
    host = here_host(tmp_path, "h1")
    ended = host.start("server", f"sh -c 'sleep 60 & echo $! > {tmp_path}/child; exit 3'")
    assert ended.exit_code() == 3
    child = int((tmp_path / "child").read_text())
    assert kernel.start_time(child) is not None
    ended.kill()
    assert kernel.start_time(child) is None, "ended, though nobody may have waited for it"

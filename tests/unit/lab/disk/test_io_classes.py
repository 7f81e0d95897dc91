"""I/O classes of threads: really set, by name, on threads of this process's own children."""

import os
import subprocess
import sys
import time

import pytest
from here import here_host

from labbook.errors import InputError, LabError
from labbook.lab.disk.io_classes import io_class
from labbook.lab.disk.on_host import iowatch
from labbook.lab.disk.on_host.iowatch import Watch, priority_of, threads, value

IDLE, BEST = value("idle", 4), value("best-effort", 2)
# Threads named reader and other; a word on standard input makes another one, or renames `other`.
NAMED = """
import ctypes, sys, threading, time
libc, renamed = ctypes.CDLL(None), []
def life(name):
    libc.prctl(15, name.encode())
    while True:
        time.sleep(0.01)
        if renamed and name == "other":
            libc.prctl(15, renamed[-1].encode())
def begin(name):
    threading.Thread(target=life, args=(name,), daemon=True).start()
begin("reader"); begin("other"); print("named", flush=True)
for line in sys.stdin:
    word, name = line.split()
    begin(name) if word == "begin" else renamed.append(name)
"""


@pytest.fixture
def server():
    process = subprocess.Popen([sys.executable, "-c", NAMED], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    until(lambda: {"reader", "other"} <= set(threads(process.pid).values()))
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def started(tmp_path):
    """Starts a process on a host of its own, here."""
    processes = []

    def start(command, **host_has):
        host = here_host(tmp_path, "h1")
        vars(host).update(host_has)
        processes.append(host.start("server", command))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()


def until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def send(process, line):
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def priorities(process) -> dict:
    return {name: priority_of(tid) for tid, name in threads(process.pid).items()}


def test_the_kernel_s_numbers():
    assert (IDLE, BEST, value("realtime", 0), value("none", 4)) == (3 << 13, 2 << 13 | 2, 1 << 13, 0)


def test_threads_get_it_by_their_names_and_give_it_back(server):
    before = priorities(server)
    watch = Watch([server.pid], "^read", IDLE)
    assert watch.look()
    assert priorities(server) == {**before, "reader": IDLE}
    watch.give_back()
    assert priorities(server) == before


def test_those_to_come_get_it_and_a_new_name_counts(server):
    watch = Watch([server.pid], "^read", BEST)
    watch.look()
    send(server, "begin reader-2")
    send(server, "rename read-other")
    until(lambda: {"reader-2", "read-other"} <= set(threads(server.pid).values()))
    watch.look()
    found = priorities(server)
    assert [found[name] for name in ("reader", "reader-2", "read-other")] == [BEST] * 3
    send(server, "rename no-more")
    until(lambda: "no-more" in threads(server.pid).values())
    watch.look()
    assert priorities(server)["no-more"] == 0


def test_a_thread_that_inherited_it_loses_it(server):
    tid, = [tid for tid, name in threads(server.pid).items() if name == "other"]
    iowatch.set_priority(tid, IDLE)
    Watch([server.pid], "^read", IDLE).look()
    assert priorities(server)["other"] == 0


def test_another_class_that_it_has_is_left_alone(server):
    tid, = [tid for tid, name in threads(server.pid).items() if name == "other"]
    iowatch.set_priority(tid, BEST)
    Watch([server.pid], "^read", IDLE).look()
    assert priorities(server)["other"] == BEST


def test_it_ends_with_the_process(server):
    watch = Watch([server.pid], "x", IDLE)
    assert watch.look()
    server.kill()
    server.wait()
    assert not watch.look()
    watch.give_back()


@pytest.mark.parametrize("arguments, message", [
    (dict(threads="(", klass="idle"), "threads: .* no regular expression"),
    (dict(threads="a", klass="fast"), "klass: no I/O class 'fast' .allowed: none, realtime"),
    (dict(threads="a", klass="best-effort", level=8), "level: no I/O level 8 .allowed: 0"),
    (dict(threads="a", klass="best-effort", level=True), "no I/O level")])
def test_what_cannot_be_is_refused(started, arguments, message):
    with pytest.raises(InputError, match=message):
        io_class(started("sleep 100"), **arguments)


def test_realtime_takes_leave_on_a_user_s_own_host(started):
    with pytest.raises(LabError, match="realtime takes root.*Add limits"):
        io_class(started("sleep 100", allow=frozenset({"disk"})), "sleep", "realtime", 0)


def test_the_program_on_a_host_from_begin_to_end(started):
    """Of a server below a shell: the whole session counts."""
    process = started("sh -c 'sleep 100; true'")
    with io_class(process, "^sleep$", "idle") as idle, io_class(process, "^sh$", "best-effort", 6):
        found = {row["name"]: (row["klass"], row["level"]) for row in idle.now()}
        assert found["sleep"] == ("idle", 0) and found["sh"][0] == "best-effort"
    assert {row["klass"] for row in idle.now()} == {"none"}


def test_a_class_and_level_that_other_threads_are_given_is_refused(started):
    """Each of the two programs would take it away from the other's threads."""
    process = started("sleep 100")
    with io_class(process, "^sleep$", "idle"):
        with pytest.raises(InputError, match="klass: other threads of server have the I/O class idle"):
            io_class(process, "^other$", "idle", 2)     # which has no levels
        io_class(process, "^other$", "best-effort", 2).end()
    io_class(process, "^other$", "idle").end()


def test_what_threads_had_at_once_is_known_when_they_are_gone(started):
    process = started("sh -c 'sleep 100; true'")
    with io_class(process, "^sleep$", "best-effort", 2) as given:
        process.kill()
    assert sorted((pair["klass"], pair["level"]) for pair in given.seen()) == [
        ("best-effort", 2), ("none", 0)]


def test_one_class_for_all_is_seen_as_one(started):
    with io_class(started("sleep 100"), "^nobody$", "idle") as given:
        assert given.seen() == [{"klass": "none", "level": 0}]


def test_an_error_in_the_block_is_not_hidden_by_one_of_its_end(started, monkeypatch):
    def gone():
        raise LabError("the host is gone")

    with pytest.raises(ValueError, match="first"), \
            io_class(started("sleep 100"), "^sleep$", "idle") as given:
        monkeypatch.setattr(given._watch, "stop", gone)
        raise ValueError("first")
    monkeypatch.undo()
    given.end()


def test_it_needs_python_alone():
    done = subprocess.run([sys.executable, "-I", "-S", iowatch.__file__, "--pid", str(os.getpid()),
                           "--threads=x", "--class=idle", "--show"], capture_output=True, text=True)
    assert done.returncode == 0 and str(os.getpid()) in done.stdout, done.stderr

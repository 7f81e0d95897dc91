"""SIGKILL of the driver at seeded random moments: the next command leaves nothing and loses nothing."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import helper_kill
import machine_state
import pytest
from small_labs import backing_files, describe, new_id, swept

from labbook.errors import LabError
from labbook.lab import Environment, Lab
from labbook.lab.local import provider

HERE = Path(__file__).parent
SEED = 20100826
# Twenty kills: twelve in these phases, two where a record is written, six of the privileged helper.
MOMENTS = [("raise", 0.0, 0.9)] * 4 + [("up", 0.0, 0.4)] * 2 + [("measure", 0.0, 0.4)] * 4 + [
    ("down", 0.0, 0.25)] * 2
RENAMES = [1, 4]
HELPER_KILLS = ["up", "down"] * 3
TRIES = 20      # of a helper that had ended when it was to be killed


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A checkout with one study in it, and a lab of its own."""
    (tmp_path / "_toc.yml").touch()
    (tmp_path / "notebooks").mkdir()
    cell = {"cell_type": "code", "id": "c", "metadata": {}, "outputs": [], "execution_count": None,
            "source": "from labbook.study import Study"}
    (tmp_path / "notebooks" / "tiny.ipynb").write_text(json.dumps(
        {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    paper = tmp_path / "data" / "papers" / "tiny"
    paper.mkdir(parents=True)
    (paper / "claims.yml").write_text("[]\n")
    (paper / "lab.yml").write_text("sites: [a]\nhosts: {h1: {site: a, role: db}}\n")
    (tmp_path / "environments").mkdir()
    shutil.copy(HERE.parents[1] / "environments" / "local.yml", tmp_path / "environments")
    monkeypatch.setenv("LABBOOK_ROOT", str(tmp_path))
    monkeypatch.setenv("TINY_LAB", new_id())
    yield Driver(tmp_path, os.environ["TINY_LAB"])
    provider.down(os.environ["TINY_LAB"])  # when the test failed half-way


class Driver:
    def __init__(self, root, lab):
        self.root, self.lab, self.log = root, lab, root / "log"

    def start(self, *moment):
        return subprocess.Popen(
            [sys.executable, HERE / "tiny_study.py", self.log, *map(str, moment)],
            stdout=subprocess.DEVNULL, stderr=open(self.root / "stderr", "a"),
            env={**os.environ, "PYTHONPATH": str(HERE)})

    def lines(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def wait_for(self, word, process, count=1, limit=60):
        until = time.monotonic() + limit
        while sum(line.startswith(word) for line in self.lines()) < count:
            assert process.poll() is None, (self.root / "stderr").read_text()
            assert time.monotonic() < until, f"{word} never came"
            time.sleep(0.002)

    def records(self):
        return {path.stem for path in self.root.glob("data/records/**/[!.]*.parquet")
                if ".series." not in path.name}

    def left_over(self):
        """Everything on this machine that carries the lab's id."""
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        backing = backing_files()
        found = [*Path("/sys/class/net").glob(f"lb-{self.lab}"),
                 *Path("/sys/fs/cgroup").glob(f"*/labbook-{self.lab}"),
                 *Path("/sys/fs/cgroup").glob(f"labbook-{self.lab}"),
                 *Path("/run/labbook").glob(self.lab), *Path("/var/lib/labbook").glob(self.lab),
                 *(line for line in [*mounts, *backing] if self.lab in line)]
        return found + [p for p in Path("/proc").glob("[0-9]*") if self._of_lab(p)]

    def inside(self):
        """The processes in the namespaces of the lab's hosts, and the FUSE connections mounted there."""
        theirs, numbers = set(), set()
        for host in self.hosts():
            theirs |= machine_state.namespaces(host)
            try:
                mounts = Path(f"/proc/{host}/mountinfo").read_text().splitlines()
            except OSError:
                continue
            numbers |= {line.split()[2].partition(":")[2] for line in mounts if "fuse.mute" in line}
        each = (p.name for p in Path("/proc").glob("[0-9]*") if machine_state.namespaces(p.name) & theirs)
        return {identity_of(pid) for pid in each} | numbers

    def hosts(self):
        """Process ids of the lab's hosts, by its journal."""
        try:
            lines = Path("/run/labbook", self.lab, "journal").read_text().split("\n")[:-1]
        except OSError:
            return []
        return [entry["pid"] for entry in map(json.loads, lines) if entry["made"] == "process"]

    def _of_lab(self, process):
        try:
            return f"/run/labbook/{self.lab}/".encode() in (process / "cmdline").read_bytes()
        except OSError:
            return False


def check_next_command(tiny):
    """The next command leaves nothing, and a rerun measures only the rest."""
    done, began, inside = tiny.records(), len(tiny.lines()), tiny.inside()
    assert swept(tiny.lab)
    assert tiny.left_over() == []
    assert not stays(inside)
    process = tiny.start()
    assert process.wait(90) == 0, (tiny.root / "stderr").read_text()
    again = {line.split()[1] for line in tiny.lines()[began:] if line.startswith("measure")}
    assert not again & done, "a finished point was measured twice"
    assert tiny.records() == done | again and len(tiny.records()) == 4
    assert not list(tiny.root.glob("data/records/**/.tmp*"))
    assert tiny.left_over() == []


def stays(inside):
    """What of a lab's is there still. A process is known by its start; the number of a FUSE connection may be another
    test's by now, which does not keep it for a minute."""
    until = time.monotonic() + 60
    while (found := standing(inside)) and not any(isinstance(one, tuple) for one in found) and time.monotonic() < until:
        time.sleep(0.5)
    return found


def standing(inside):
    """What of a lab's processes and FUSE connections there is still."""
    every = {identity_of(p.name) for p in Path("/proc").glob("[0-9]*")}
    return (inside & (every | machine_state.connections())) - {None}


def identity_of(pid):
    """Process id and start time of a process that has not ended: the kernel gives ids again, to
    processes of other tests, too."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else (pid, fields[19])


@pytest.mark.parametrize("number", range(len(MOMENTS)))
def test_killed_at_a_random_moment(tiny, number):
    word, earliest, latest = MOMENTS[number]
    chance = random.Random(SEED + number)
    count, after_s = chance.randint(1, 4) if word == "measure" else 1, chance.uniform(earliest, latest)
    while not is_hit(tiny, word, count, after_s):       # it had ended by then
        shutil.rmtree(tiny.root / "data/records")
        tiny.log.unlink()
        after_s /= 2
    check_next_command(tiny)


def is_hit(tiny, word, count, after_s):
    """Whether a run was killed so long after it wrote `word`, and had not ended by then."""
    process = tiny.start()
    tiny.wait_for(word, process, count=count)
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    code = process.wait()
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize("number", RENAMES)
def test_killed_just_before_a_record_is_renamed(tiny, number):
    process = tiny.start("rename", number)
    assert process.wait(60) == -signal.SIGKILL
    assert len(tiny.records()) == number - 1
    check_next_command(tiny)


class Killer:
    """Kills the helper that answers a request, at a random moment of the time that one took before."""

    def __init__(self, monkeypatch, do, chance):
        self.do, self.chance, self.seconds = do, chance, None
        self._helper, self._ask, self.hits = provider.helper, provider._ask, 0
        monkeypatch.setattr(provider, "helper", self.helper)
        monkeypatch.setattr(provider, "_ask", self.ask)

    def helper(self, do, **request):
        self._now = do
        return self._helper(do, **request)

    def ask(self, command, request):
        if self._now != self.do or self.hits:
            return self._ask(command, request)
        if self.seconds is None:
            began = time.monotonic()
            answer = self._ask(command, request)
            self.seconds = time.monotonic() - began
            return answer
        timer, began = threading.Timer(self.chance.uniform(0, self.seconds), self._kill), time.monotonic()
        timer.start()
        try:
            code, *output = self._ask(command, request)
        finally:
            timer.cancel()
            timer.join()
        self.hits += code in (-signal.SIGKILL, 128 + signal.SIGKILL)     # the latter by sudo
        self.seconds = min(self.seconds, time.monotonic() - began)  # the first one may have had to wait
        return code, *output

    def _kill(self):
        if (pid := helper_kill.helper_of(os.getpid())) is not None:
            helper_kill.kill(pid)


@pytest.mark.parametrize("number", range(len(HELPER_KILLS)))
def test_the_privileged_helper_killed_at_a_random_moment(tiny, monkeypatch, number):
    """The driver lives and says so; then one command takes down what there is."""
    killer = Killer(monkeypatch, HELPER_KILLS[number], random.Random(SEED + number))
    limits = {"cores": 1, "memory": "256M", "disk": {"size": "64M", "iops": 1000}}
    description = describe({"h1": ("a", limits), "h2": ("b", {})}, [{"between": ["a", "b"]}])
    for _ in range(TRIES):
        try:
            Lab.up(description, Environment("local"), tiny.lab).down()
        except LabError as error:
            assert "privileged helper failed" in str(error)
            break
    else:
        pytest.fail("no error: the helper was not killed, or the driver did not say so")
    assert killer.hits == 1
    inside = tiny.inside()
    assert swept(tiny.lab)
    assert tiny.left_over() == [] and not stays(inside)


def test_what_a_killed_helper_did_not_delete_goes_with_the_next_command(tiny):
    trash, lock = Path("/run/labbook", f".gone-{tiny.lab}-1"), Path("/run/labbook/.locks", f"lab-{tiny.lab}")
    root = ["sudo", "-n"] if os.geteuid() else []
    subprocess.run([*root, "mkdir", "-p", "-m", "700", str(trash / "x"), str(lock.parent)], check=True)
    subprocess.run([*root, "touch", str(lock)], check=True)
    Lab.sweep()
    assert not trash.exists()
    assert subprocess.run([*root, "test", "-e", str(lock)], check=False).returncode == 1


def test_what_a_killed_command_half_made_in_the_cache_goes_with_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path))
    draft = tmp_path / "artifacts/.drafts/guest-1/tmpabc"
    draft.mkdir(parents=True)
    Lab.sweep()
    assert not draft.exists()


def test_ctrl_c_leaves_nothing_and_keeps_what_is_done(tiny):
    process = tiny.start()
    tiny.wait_for("measure", process, count=3)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) != 0
    assert tiny.left_over() == [] and len(tiny.records()) in (2, 3)
    assert not list(tiny.root.glob("data/records/**/*.failure.json"))


def test_sigterm_leaves_nothing_too(tiny):
    process = tiny.start()
    tiny.wait_for("measure", process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) != 0
    assert tiny.left_over() == []

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
from contextlib import suppress
from pathlib import Path

import pytest
from small_labs import describe, new_id

from labbook.errors import LabError
from labbook.lab import Environment, Lab
from labbook.lab.local import provider

HERE = Path(__file__).parent
SEED = 20100826
MOMENTS = [("raise", 0.0, 0.9)] * 3 + [("measure", 0.0, 0.4)] * 3 + [("down", 0.0, 0.25)] * 2
RENAMES = [1, 4]


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
        return {path.stem for path in self.root.glob("data/records/**/[!.]*.parquet")}

    def left_over(self):
        """Everything on this machine that carries the lab's id."""
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        backing = [p.read_text() for p in Path("/sys/block").glob("loop*/loop/backing_file")]
        found = [*Path("/sys/class/net").glob(f"lb-{self.lab}"),
                 *Path("/sys/fs/cgroup").glob(f"*/labbook-{self.lab}"),
                 *Path("/sys/fs/cgroup").glob(f"labbook-{self.lab}"),
                 *Path("/run/labbook").glob(self.lab), *Path("/var/lib/labbook").glob(self.lab),
                 *(line for line in [*mounts, *backing] if self.lab in line)]
        return found + [p for p in Path("/proc").glob("[0-9]*") if self._of_lab(p)]

    def _of_lab(self, process):
        try:
            return f"/run/labbook/{self.lab}/".encode() in (process / "cmdline").read_bytes()
        except OSError:
            return False


def check_next_command(tiny):
    """What the issue promises after a kill: sweep leaves nothing, a rerun measures only the rest."""
    done, began = tiny.records(), len(tiny.lines())
    Lab.sweep()
    assert tiny.left_over() == []
    process = tiny.start()
    assert process.wait(90) == 0, (tiny.root / "stderr").read_text()
    again = {line.split()[1] for line in tiny.lines()[began:] if line.startswith("measure")}
    assert not again & done, "a finished point was measured twice"
    assert tiny.records() == done | again and len(tiny.records()) == 4
    assert not list(tiny.root.glob("data/records/**/.tmp*"))
    assert tiny.left_over() == []


def network_namespaces():
    return {os.readlink(p) for p in Path("/proc").glob("[0-9]*/ns/net") if os.access(p, os.R_OK)}


@pytest.mark.parametrize("number", range(len(MOMENTS)))
def test_killed_at_a_random_moment(tiny, number):
    word, earliest, latest = MOMENTS[number]
    chance = random.Random(SEED + number)
    process = tiny.start()
    tiny.wait_for(word, process, count=chance.randint(1, 4) if word == "measure" else 1)
    time.sleep(chance.uniform(earliest, latest))
    process.send_signal(signal.SIGKILL)
    process.wait()
    check_next_command(tiny)


@pytest.mark.parametrize("number", RENAMES)
def test_killed_just_before_a_record_is_renamed(tiny, number):
    process = tiny.start("rename", number)
    assert process.wait(60) == -signal.SIGKILL
    assert len(tiny.records()) == number - 1
    check_next_command(tiny)


@pytest.mark.parametrize("number", range(3))
def test_the_privileged_helper_killed_while_it_makes_a_lab(tiny, monkeypatch, number):
    """The driver lives, says so, and takes down what there is by another helper."""
    real, killed = subprocess.Popen.communicate, []
    after_s = random.Random(SEED + number).uniform(0.02, 0.25)

    def communicate(process, *given, **options):
        if "labbook.lab.local.root" in str(process.args) and not killed:
            killed.append(process)
            threading.Timer(after_s, process.kill).start()
        return real(process, *given, **options)

    monkeypatch.setattr(subprocess.Popen, "communicate", communicate)
    limits = {"cores": 1, "memory": "256M", "disk": {"size": "64M", "iops": 1000}}
    description = describe({"h1": ("a", limits), "h2": ("b", {})}, [{"between": ["a", "b"]}])
    with suppress(LabError):
        Lab.up(description, Environment("local"), tiny.lab).down()
    assert killed and tiny.left_over() == []


def test_ctrl_c_leaves_nothing_and_keeps_what_is_done(tiny):
    process = tiny.start()
    tiny.wait_for("measure", process, count=3)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) != 0
    assert tiny.left_over() == [] and len(tiny.records()) in (2, 3)
    assert not list(tiny.root.glob("data/records/**/*.failure.json"))


def test_sigterm_leaves_nothing_too(tiny):
    process = tiny.start()
    tiny.wait_for("up", process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) != 0
    assert tiny.left_over() == []

"""What is reported of a fleet's machines, and which of them are prepared."""

import os
import subprocess
import threading
import time
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook.errors import LabError
from labbook.pipeline.fleet import machines
from labbook.pipeline.fleet.file import FleetMachine

JOB = "0123456789abcdef"


@pytest.fixture
def prepare(monkeypatch):
    """Prepare a machine that says this of its job: (why it could not be, its commands)."""
    def prepare(answer, allow=("code", "packages")):
        commands = []

        def run(connection, machine, command, seconds):
            commands.append(command)
            return answer if "under_way" in command else (0, "", "")

        monkeypatch.setattr(machines, "ssh", SimpleNamespace(
            connect=lambda *_: object(), close=lambda _: None, TimedOut=TimeoutError, LOST=(OSError,)))
        monkeypatch.setattr(machines, "_run", run)
        monkeypatch.setattr(machines, "_send_checkout", lambda *_: commands.append("copy"))
        machine = FleetMachine("m1", None, PurePosixPath("/home/op/labbook"), allow=frozenset(allow))
        return machines._prepare(machine, ["s"], "quick", "build/mark"), commands

    return prepare


@pytest.mark.parametrize("allow", [("code",), ("packages",)])
def test_a_machine_that_measures_is_left_as_it_is(prepare, allow):
    why, commands = prepare((0, f"{JOB}\n", ""), allow)
    assert why.startswith(f"m1: it measures job {JOB}. Wait until") and len(commands) == 1


@pytest.mark.parametrize("answer", [
    (0, "\n", ""), (1, "", "sh: 1: cd: can't cd to /home/op/labbook"), (127, "", "sh: 1: .venv/bin/python: not found"),
    (1, "", "ModuleNotFoundError: No module named 'labbook'")])
def test_one_that_measures_nothing_or_has_no_checkout_yet_is_prepared(prepare, answer):
    why, commands = prepare(answer)
    assert why is None and "copy" in commands and commands[-1].endswith("labbook.cli install --profile quick s")


class Here:
    """Commands run on this machine, as if it were the machine of the fleet; `copied`: the commands that copy."""

    TimedOut, LOST = TimeoutError, (OSError,)

    def __init__(self):
        self.copied = []

    def run(self, _connection, command, _seconds):
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        return done.stdout, done.stderr, done.returncode


@pytest.fixture
def here(root, monkeypatch):
    (root / "_toc.yml").touch()
    shell = Here()
    monkeypatch.setattr(machines, "ssh", shell)
    monkeypatch.setattr(machines, "_tracked", lambda: ["_config.yml", "_toc.yml"])
    monkeypatch.setattr(machines, "_copy", lambda _connection, folder, files: shell.copied.append((folder, files)))
    return shell


def test_this_checkout_is_not_copied_over_itself(root, here):
    this = FleetMachine("m1", None, PurePosixPath(root))
    with machines._marked() as mark, pytest.raises(LabError, match="is this checkout, or another machine's"):
        machines._send_checkout(None, this, mark)
    assert not here.copied and not list((root / "build").glob(".copying-*"))


def test_marks_of_copies_that_were_killed_do_not_stay(root, here, tmp_path):
    there, ago = tmp_path / "there", time.time() - 60 * (machines.MARK_MINUTES + 2)
    for build in (root / "build", there / "build"):
        build.mkdir(parents=True)
        for name in (".copying-old", ".copying-new"):
            (build / name).touch()
        os.utime(build / ".copying-old", (ago, ago))
    with machines._marked() as mark:
        machines._send_checkout(None, FleetMachine("m1", None, PurePosixPath(there)), mark)
    for build in (root / "build", there / "build"):
        assert [one.name for one in build.iterdir()] == [".copying-new"]


def test_machines_that_share_a_checkout_are_not_copied_to_at_the_same_time(root, here, tmp_path, monkeypatch):
    shared = FleetMachine("m1", None, PurePosixPath(tmp_path / "there"))
    monkeypatch.setattr(machines, "_copy", lambda *given: here.copied.append(given) or again())

    def again():
        with pytest.raises(LabError, match="another machine's"):
            machines._send_checkout(None, shared, mark)

    with machines._marked() as mark:
        machines._send_checkout(None, shared, mark)
        assert len(here.copied) == 1 and here.copied[0][2] == ["_toc.yml", "_config.yml"]
        assert not list((tmp_path / "there/build").iterdir())      # and it is free for the next command


def test_on_ctrl_c_nothing_waits_for_what_runs_on_machines(monkeypatch, capsys):
    """What waits for a command there ends when its connection is closed."""
    closed = threading.Event()
    monkeypatch.setattr(machines, "ssh", SimpleNamespace(
        connect=lambda *_: "connection", close=lambda _: closed.set()))

    def action(name):
        if name == "interrupted":
            raise KeyboardInterrupt
        machines._connect(SimpleNamespace(name=name, login=None))
        assert closed.wait(60)

    waiting = threading.Event()
    with pytest.raises(KeyboardInterrupt):
        machines._of_each(["interrupted", "waits"], lambda name: (name == "waits" or waiting.wait(60)) and (
            action(name) if name == "interrupted" else waits(action, waiting)))
    assert closed.is_set() and "stopping" in capsys.readouterr().err
    machines._connections.clear()


def waits(action, waiting):
    machines._connect(SimpleNamespace(name="waits", login=None))
    waiting.set()
    action("waits")


def test_no_remedy_is_no_line():
    lost, refused = machines.Seen("m1", "no answer: EOFError"), machines.Seen("m2", "no route", "Check address")
    assert list(machines._lines([lost, refused], ["s"])) == [
        "m1: MISSING: no answer: EOFError", "m2: MISSING: no route\n         -> Check address"]

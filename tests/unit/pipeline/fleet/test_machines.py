"""What is reported of a fleet's machines, and which of them are prepared."""

from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

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
            connect=lambda *_: None, close=lambda _: None, TimedOut=TimeoutError, LOST=(OSError,)))
        monkeypatch.setattr(machines, "_run", run)
        monkeypatch.setattr(machines, "_send_checkout", lambda *_: commands.append("copy"))
        machine = FleetMachine("m1", None, PurePosixPath("/home/op/labbook"), allow=frozenset(allow))
        return machines._prepare(machine, ["s"], "quick"), commands

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


def test_no_remedy_is_no_line():
    lost, refused = machines.Seen("m1", "no answer: EOFError"), machines.Seen("m2", "no route", "Check address")
    assert list(machines._lines([lost, refused], ["s"])) == [
        "m1: MISSING: no answer: EOFError", "m2: MISSING: no route\n         -> Check address"]

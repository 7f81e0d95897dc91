"""A host whose clock is wrong."""

import time
from types import SimpleNamespace

import pytest

from labbook.lab import clock
from labbook.lab.clock import ahead_s


def host(is_remote, ahead):
    def run(command):
        assert command.startswith("date ")
        commands.append(command)
        return SimpleNamespace(stdout=f"{time.time() + ahead:.6f}\n")

    commands = []
    return SimpleNamespace(is_remote=is_remote, run=run, commands=commands)


def test_a_clock_of_its_own_is_asked_for_and_this_machine_s_is_not():
    assert ahead_s(host(True, -7)) == pytest.approx(-7, abs=0.1)
    here = host(False, 9)
    assert ahead_s(here) == 0 and not here.commands


def test_lengths_are_no_matter_of_a_clock_that_was_set(monkeypatch):
    clock.anchor()
    before = clock.now()
    assert abs(before - time.time()) < 1
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    assert 0 <= clock.now() - before < 60
    clock.anchor()      # as the next point begins
    assert before - clock.now() > 3000
    monkeypatch.undo()
    clock.anchor()


def test_a_clock_that_was_set_since_the_point_began_is_ahead_on_this_machine_as_elsewhere(monkeypatch):
    """What a host's log said was taken for another moment than the same moment here."""
    clock.anchor()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 30)
    assert ahead_s(host(False, 0)) == pytest.approx(30, abs=0.1)
    assert ahead_s(host(True, 0)) == pytest.approx(30, abs=0.1)
    monkeypatch.undo()
    clock.anchor()

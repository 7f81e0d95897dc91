"""Waiting for another process that builds for the cache."""

import fcntl
import os

import pytest

from labbook.errors import LabError
from labbook.lab.cache import build


def test_whoever_builds_is_named_and_is_not_waited_for_without_end(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(build, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(build, "LOOK_SECONDS", 0.001)
    lock = tmp_path / "locks/seed-1"
    with build._locked(lock):
        assert lock.read_text() == str(os.getpid())
        with pytest.raises(LabError, match=f"waited 0.01 s for process {os.getpid()}, which builds seed-1"), (
                build._locked(lock, 0.01)):
            raise AssertionError("not reached")
    assert capsys.readouterr().err == f"labbook: waiting for process {os.getpid()}, which builds seed-1\n"
    with build._locked(lock, 0):
        pass


def test_the_lock_of_a_process_that_is_gone_is_free(tmp_path):
    lock = tmp_path / "seed-1"
    lock.write_text("4711")
    with build._locked(lock, 0), open(lock) as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

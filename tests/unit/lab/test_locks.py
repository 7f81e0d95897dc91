"""Locks that only one user can hold."""

import fcntl
import os
import subprocess
import sys

import pytest

from labbook.lab import locks

HOLD = ("import sys, time; from pathlib import Path; from labbook.lab import locks\n"
        "with locks.alone('x', 5, 'counts to ten', Path(sys.argv[1])):\n"
        "    print('held', flush=True); time.sleep(60)")


@pytest.fixture
def place(tmp_path):
    return tmp_path / "run" / "locks"


def test_who_waits_is_told_who_holds_it_and_the_lock_dies_with_its_holder(place):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, place], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(OSError, match=rf"process {holder.pid} \(counts to ten\), which has the lock x"):
            with locks.alone("x", 0.1, "a test", place):
                pass
    finally:
        holder.kill()
        holder.wait()
    with locks.alone("x", 5, "a test", place):
        assert locks.holder(place / "x") == f"process {os.getpid()} (a test)"
    assert list(place.iterdir()) == []


def test_only_their_user_can_open_them(place):
    with locks.alone("x", 1, "a test", place):
        assert place.stat().st_mode & 0o777 == 0o700 and (place / "x").stat().st_mode & 0o777 == 0o600


def test_a_planted_link_is_not_followed_and_a_planted_folder_not_used(place, tmp_path):
    place.mkdir(parents=True, mode=0o700)
    (tmp_path / "precious").write_text("text")
    (place / "x").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError):
        with locks.alone("x", 0.1, "a test", place):
            pass
    assert (tmp_path / "precious").read_text() == "text"
    place.chmod(0o755)
    with pytest.raises(OSError, match="not this user's alone"):
        with locks.alone("y", 0.1, "a test", place):
            pass


def test_a_lock_whose_file_was_replaced_is_not_enough(place, monkeypatch):
    """As when its holder ends and another begins while a third waits."""
    real, replaced = fcntl.flock, []

    def replace_once(file, how):
        real(file, how)
        if not replaced:
            (place / "x").unlink()
            replaced.append(file)

    monkeypatch.setattr(locks.fcntl, "flock", replace_once)
    with locks.alone("x", 1, "a test", place):
        assert replaced and (place / "x").exists()


def test_a_full_disk_keeps_nobody_from_a_lock(place, monkeypatch):
    """A lab could not be taken down while /run was full."""
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(locks.os, "write", full)
    with locks.alone("x", 1, "down of lab x", place):
        assert (place / "x").exists()
    assert not (place / "x").exists()

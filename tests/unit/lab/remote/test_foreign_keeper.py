"""The keeper of foreign hosts takes away what is its own, and not while another does."""

import fcntl
import importlib.util
import json
import os
import sys
import threading
from pathlib import Path

import pytest

LAB = Path(__file__).parents[3] / "lab"


@pytest.fixture
def keeper(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(LAB)
    spec = importlib.util.spec_from_file_location("foreign_keeper", LAB / "foreign_keeper.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "STATE", tmp_path)
    yield module
    sys.modules.pop("foreign_files", None)


def test_disks_of_other_file_systems_are_left_alone(keeper, tmp_path, monkeypatch):
    file = tmp_path / "h1.disk"
    file.touch()
    there, calls = file.stat(), []
    mine = f"  {os.major(there.st_dev)}:{os.minor(there.st_dev)}  "
    loops = [{"name": name, "back-ino": ino, "back-maj:min": device} for name, ino, device in (
        ("/dev/loop1", there.st_ino, mine), ("/dev/loop2", there.st_ino, "999:1"),
        ("/dev/loop3", there.st_ino + 1, mine))]

    def run(*command):
        calls.append(command)
        return json.dumps({"loopdevices": loops})
    monkeypatch.setattr(keeper, "run", run)
    keeper.detach_disks(tmp_path)
    assert [command[-1] for command in calls if "--detach" in command] == ["/dev/loop1"]


def test_a_place_is_cleared_only_when_no_other_keeper_makes_or_clears_one(
        keeper, tmp_path, monkeypatch):
    monkeypatch.setattr(keeper, "detach_disks", lambda folder: None)
    mine = keeper.Keeper()
    mine.folder = tmp_path / "abcdef"
    mine.folder.mkdir()
    monkeypatch.setattr(keeper, "clear", lambda folder: folder.rmdir())
    with open(tmp_path / "lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        ending = threading.Thread(target=mine.end)
        ending.start()
        ending.join(0.2)
        assert mine.folder.exists()
    ending.join(10)
    assert not mine.folder.exists()

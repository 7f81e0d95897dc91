"""Files that are whole or absent after a crash."""

import fcntl
import os

import pytest

from labbook.atomic_files import make_folder, open_lock, remove_unfinished, write_whole
from labbook.errors import LabError


@pytest.fixture
def calls(monkeypatch):
    """What is synced and renamed, in order: ("sync", path) and ("rename", path)."""
    calls, sync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (
        calls.append(("sync", os.readlink(f"/proc/self/fd/{handle}"))), sync(handle)))
    monkeypatch.setattr(os, "replace", lambda old, new: (
        calls.append(("rename", str(new))), replace(old, new)))
    return calls


def test_a_file_is_synced_before_its_rename_and_its_folder_after(tmp_path, calls):
    path = tmp_path / "a" / "file"
    write_whole(path, lambda out: out.write(b"text"))
    partial = str(path.parent / f".tmp-{os.getpid()}-file")
    assert calls == [("sync", str(tmp_path)), ("sync", partial), ("rename", str(path)),
                     ("sync", str(path.parent))]
    assert path.read_bytes() == b"text" and list(path.parent.iterdir()) == [path]


def test_each_new_folder_is_synced_into_its_parent(tmp_path, calls):
    make_folder(tmp_path / "a" / "b")
    assert calls == [("sync", str(tmp_path)), ("sync", str(tmp_path / "a"))]
    make_folder(tmp_path / "a" / "b")
    assert len(calls) == 2


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")

    def fails(_):
        raise OSError(28, "No space left on device")

    with pytest.raises(LabError, match="the disk is full: file"):
        write_whole(path, fails)
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_swept_before_its_writer_has_locked_it_is_written_all_the_same(tmp_path, monkeypatch):
    lock, swept = fcntl.flock, []

    def late(file, how):
        if not swept:
            swept.append(os.readlink(f"/proc/self/fd/{file.fileno()}"))
            os.unlink(swept[0])
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    write_whole(tmp_path / "file", lambda out: out.write(b"text"))
    assert swept and (tmp_path / "file").read_bytes() == b"text"


def test_a_running_writers_file_is_not_swept(tmp_path):
    def swept(out):
        remove_unfinished([tmp_path / f".tmp-{os.getpid()}-file"])
        out.write(b"text")

    write_whole(tmp_path / "file", swept)
    assert (tmp_path / "file").read_bytes() == b"text"


def test_a_file_to_lock_is_its_owners_alone_and_no_link(tmp_path):
    """Any open file would do to hold the lock, also one that was opened for reading."""
    path = tmp_path / "lock"
    path.touch(0o644)
    with open_lock(path, "a+") as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        open_lock(path)
    assert not (tmp_path / "elsewhere").exists()

"""A disk's file, without a loop device: what else there is takes root, and is tested in tests/lab."""

import os

from labbook.lab.disk import loop_device


def test_only_its_owner_can_read_a_disk_s_file_whatever_the_mask(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_device.deadline, "run", lambda *command, **_: "/dev/loop9\n")
    before = os.umask(0)
    try:
        assert loop_device.make(tmp_path / "h1.disk", 1 << 20) == "/dev/loop9"
    finally:
        os.umask(before)
    made = (tmp_path / "h1.disk").stat()
    assert made.st_mode & 0o777 == 0o600 and made.st_size == 1 << 20

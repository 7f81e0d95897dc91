"""A host's view of the machine, as far as it can be checked without making one."""

import subprocess

import pytest

from labbook.lab.local import sandbox


def test_what_the_host_would_hide_is_shown_again(tmp_path):
    assert sandbox._covered(["/usr", "/home/me/labbook/.venv"]) == []
    assert sandbox._covered(["/srv/book/.venv", "/tmp", "/tmpfoo/x"]) == ["/srv/book/.venv"]


def test_every_mount_is_made_readonly_whatever_its_name(monkeypatch, tmp_path):
    mounts = {}
    monkeypatch.setattr(sandbox.kernel, "mount",
                        lambda _, place, flags: mounts.update({place: flags}))
    table = tmp_path / "mountinfo"
    table.write_text("1 0 8:1 / / rw,relatime - ext4 /dev/x rw\n"
                     "2 1 8:2 / /media/J\u00fcrgen\\040B rw,nosuid,nodev - vfat /dev/y rw\n")
    monkeypatch.setattr(sandbox, "MOUNTS", str(table))
    sandbox._all_readonly()
    readonly = sandbox.kernel.REMOUNT | sandbox.kernel.BIND | sandbox.kernel.RDONLY
    assert mounts == {
        "/": readonly | sandbox.kernel.RELATIME,
        "/media/J\u00fcrgen B": readonly | sandbox.kernel.NOSUID | sandbox.kernel.NODEV}


def test_a_sandbox_that_died_says_why(tmp_path):
    """With `ip ... netns PID` the user had read only that there was no such process."""
    log = tmp_path / "db.log"
    log.write_text("PermissionError: devpts cannot be mounted\n")
    child = subprocess.Popen(["sleep", "60"])
    one = sandbox.Sandbox.__new__(sandbox.Sandbox)
    one.name, one.log, one.pid = "db", str(log), child.pid
    one.require_alive()
    child.kill()
    child.wait()
    with pytest.raises(OSError, match="db did not start: PermissionError: devpts cannot be mounted"):
        one.require_alive()

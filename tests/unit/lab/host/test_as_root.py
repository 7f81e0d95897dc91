"""Root's functions on real hosts: bare Python runs them, and what goes wrong comes back in words."""

import fcntl
import os
import subprocess
import sys
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook.errors import LabError
from labbook.lab.host import as_root
from labbook.lab.remote import root


@pytest.fixture
def host(tmp_path):
    """This machine in a host's place; nothing here needs root."""
    (tmp_path / "h1").mkdir()
    (tmp_path / "h1/file").touch()
    (tmp_path / as_root.STAYS).touch()

    def run(command, timeout, root):
        assert root
        return subprocess.run(command, shell=True, capture_output=True, text=True, check=True)

    return SimpleNamespace(name="h1", root=PurePosixPath(tmp_path / "h1"), python=sys.executable, run=run)


def test_every_module_is_there_and_needs_bare_python_alone(tmp_path):
    (tmp_path / "x.zip").write_bytes(as_root.archive())
    program = (f"import sys, importlib; sys.path.insert(0, {str(tmp_path / 'x.zip')!r})\n"
               f"for name in {as_root.MODULES}: importlib.import_module(name)\n"
               f"print([n for n, m in sys.modules.items() if n.startswith('labbook') "
               f"and 'x.zip' not in m.__file__])")
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True,
                          text=True)
    assert done.stdout == "[]\n", done.stderr


def test_a_disk_that_was_never_made_is_undone(host, tmp_path):
    assert as_root.call(host, root.undo_disk, file=str(tmp_path / "never.disk")) == {}


def test_what_root_runs_is_no_file_that_others_could_swap(host, tmp_path):
    """One that lies where it once was handed over is not even looked at."""
    (tmp_path / "as-root.zip").write_text("raise SystemExit('swapped')")
    (tmp_path / "labbook").mkdir()
    (tmp_path / "labbook/__init__.py").write_text("raise SystemExit('swapped')")
    before = sorted(tmp_path.rglob("*"))
    assert as_root.call(host, root.undo_disk, file=str(tmp_path / "never.disk")) == {}
    assert sorted(tmp_path.rglob("*")) == before


def test_what_stands_in_the_way_is_an_error_with_the_host_s_name(host, tmp_path):
    with pytest.raises(LabError, match="^h1: .*h1 is not empty"):
        as_root.call(host, root.make_disk, place=str(host.root), disk={"size": 1 << 20})
    assert not (tmp_path / "journal").exists(), "nothing was made"


def test_a_disk_s_file_and_mount_are_closed_to_others_from_the_start(tmp_path, monkeypatch):
    """It lies on a machine that has other users: its data must not be readable there."""
    folder, modes, commands = tmp_path / "h1", [], []
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(root.loop_device, "make", lambda file, size: (
        modes.append(file.stat().st_mode & 0o777), "/dev/loop9")[1])
    for name, answer in (("queue", {}), ("tune", None), ("number", "7:9")):
        monkeypatch.setattr(root.loop_device, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(root.deadline, "run", lambda *command: commands.append(command))
    assert root.make_disk(str(folder), {"size": 1 << 20}) == {"device": "/dev/loop9", "number": "7:9"}
    assert modes == [0o600] and folder.stat().st_mode & 0o777 == 0o700
    options = commands[0][commands[0].index("-o") + 1].split(",")
    assert {"nosuid", "nodev"} <= set(options)


def test_a_mount_is_found_by_its_device_s_number_the_last_one_first(monkeypatch):
    mounts = ("30 1 7:3 / /data rw - ext4 /dev/loop3 rw\n"
              "31 1 7:4 / /my\\040lab/h1 rw - ext4 /dev/loop4 rw\n"
              "32 31 7:4 / /my\\040lab/h1/again rw - ext4 /dev/loop4 rw\n")
    monkeypatch.setattr(root.kernel, "read_mounts", lambda: mounts)
    assert root._mounted("7:4") == ["/my lab/h1/again", "/my lab/h1"]


def test_what_is_being_made_is_waited_for_and_then_no_more_is(host, tmp_path):
    """A driver that was killed has left something running there while its lab goes down."""
    down = ["sh", "-ec", as_root.going_down(str(tmp_path))]
    with open(tmp_path / "making", "w") as made:
        making = subprocess.Popen(
            ["sh", "-ec", "\n".join([*as_root.unless_going_down(str(tmp_path)), "echo begun",
                                     "read end", "echo made"])],
            stdin=subprocess.PIPE, stdout=made, text=True)
    while "begun" not in (tmp_path / "making").read_text():
        assert making.poll() is None
    going = subprocess.Popen(down)
    while (tmp_path / as_root.STAYS).exists():
        assert going.poll() is None
    assert going.poll() is None, "it waits"
    making.communicate("end\n")
    assert going.wait(20) == 0 and "made" in (tmp_path / "making").read_text()

    (tmp_path / "h1/file").unlink()
    with pytest.raises(subprocess.CalledProcessError) as error:
        as_root.call(host, root.make_disk, place=str(host.root), disk={"size": 1 << 20})
    assert "being taken down" in error.value.stderr and not (tmp_path / "journal").exists()
    assert as_root.call(host, root.undo_disk, file=str(tmp_path / "h1.disk")) == {}
    again = subprocess.run(["sh", "-ec", "\n".join(as_root.unless_going_down(str(tmp_path)))])
    assert again.returncode != 0


def test_a_lab_on_a_full_disk_goes_down(tmp_path):
    """No file is made for it; see test_what_is_being_made_is_waited_for_and_then_no_more_is."""
    (tmp_path / as_root.STAYS).touch()
    for _ in range(2):
        subprocess.run(["sh", "-ec", as_root.going_down(str(tmp_path))], check=True)
        assert list(tmp_path.iterdir()) == []


def test_a_command_that_does_not_end_is_not_waited_for_without_end(tmp_path, monkeypatch):
    (tmp_path / as_root.STAYS).touch()
    monkeypatch.setattr(as_root, "ALONE_SECONDS", 0.1)
    main = as_root.main()
    command = [sys.executable, "-I", "-S", "-c", main, str(tmp_path), '["labbook.lab.remote.root", "undo_disk", {}]']
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and f"another command works in {tmp_path}, and does not end" in done.stderr
    for commands in (as_root.unless_going_down(str(tmp_path)), [as_root.going_down(str(tmp_path))]):
        assert subprocess.run(["sh", "-ec", "\n".join(commands)], timeout=60).returncode
    os.close(held)


def test_who_comes_while_a_command_works_or_the_lab_goes_down_is_told_so(tmp_path, monkeypatch):
    def said_by(*commands):
        done = subprocess.run(["sh", "-ec", "\n".join(commands)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        return done.stderr

    (tmp_path / as_root.STAYS).touch()
    monkeypatch.setattr(as_root, "ALONE_SECONDS", 0.1)
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    for commands in (as_root.unless_going_down(str(tmp_path)), [as_root.going_down(str(tmp_path))]):
        assert said_by(*commands) == "another command of the lab still works there: try again\n"
    os.close(held)
    assert said_by(*as_root.unless_going_down(str(tmp_path))) == "the lab is being taken down\n"

"""Packages of a system's own: by the Python of a host, kept apart, fetched once."""

import subprocess
import sys

import pytest

from labbook.errors import LabError
from labbook.lab import python_packages
from labbook.lab.python_packages import PythonPackages
from labbook.lab.remote import wheels
from labbook.lab.remote.on_host import probe_python as look
from labbook.pipeline.setup import install

FILES = ("tool/core.py", "tool/tests/test_core.py", "tool/locale/de/tool.mo", "bin/tool")


@pytest.fixture
def packages(tmp_path, monkeypatch):
    commands = []

    def fetch(command):
        commands.append(command)
        target = wheels.Path(command[command.index("--target") + 1])
        for name in FILES:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_text("VALUE = 7\n")
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(wheels, "_complaint_of", fetch)
    (tmp_path / "pins.txt").write_text("tool==1.2\n")
    made = PythonPackages("tool", "1.2", ("tool==1.2", "helper"), tmp_path / "pins.txt")
    object.__setattr__(made, "commands", commands)
    return made


def test_they_are_fetched_once_at_their_pins_and_seen_by_a_python_that_sees_no_others(packages):
    assert not install.is_here(packages)
    folder = packages.fetch()
    assert packages.fetch() == folder and folder.name == packages.folder and install.is_here(packages)
    (command,) = packages.commands
    assert command[-4:] == ["--no-deps", "--require-hashes", "-r", str(packages.pins)]
    assert {f.name for f in folder.rglob("*.py")} == {"core.py"} and not (folder / "bin").exists()
    program = "import tool.core; print(tool.core.VALUE, tool.core.__cached__)\nimport pytest"
    done = subprocess.run([sys.executable, "-S", "-c", program], env={"PYTHONPATH": str(folder)},
                          text=True, capture_output=True)
    value, bytecode = done.stdout.split()
    assert value == "7" and wheels.Path(bytecode).exists() and "No module named 'pytest'" in done.stderr


def test_other_pythons_and_other_pins_have_folders_of_their_own(packages):
    seen = look.look(())
    other = {**seen, "version": [3, seen["version"][1] + 1, 0]}
    folders = {packages.fetch(seen), packages.fetch(other)}
    assert not list(packages.fetch(other).rglob("*.pyc"))  # that Python makes its own
    packages.pins.write_text("tool==1.2\nhelper==3\n")
    folders.add(packages.fetch())
    assert len(folders) == 3 == len(packages.commands)
    with pytest.raises(LabError, match="rack1: .*older than 3.11"):
        packages.fetch({**seen, "version": [3, 9, 2], "host": "rack1"})


def test_what_cannot_be_fetched_is_reported_and_leaves_nothing(packages, monkeypatch):
    monkeypatch.setattr(wheels, "_complaint_of", lambda command: "no such version")
    with pytest.raises(LabError, match="packages for tool 1.2 .*:\nno such version\nno such version"):
        packages.fetch()
    assert not install.is_here(packages)


def test_a_hosts_python_is_its_own_interpreter(packages, monkeypatch):
    seen = {**look.look(()), "python": "/usr/bin/python 3"}
    monkeypatch.setattr(python_packages.software, "ask", lambda host, python: seen)
    monkeypatch.setattr(python_packages, "push", lambda host, folder: f"/there/{folder.name}")
    host = type("Host", (), {"name": "rack1", "python": "/lab/software/python"})()
    assert packages.python_on(host) == (f"env PYTHONPATH=/there/{packages.folder} PYTHONNOUSERSITE=1 "
                                        "'/usr/bin/python 3' -S")

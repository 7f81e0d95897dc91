"""What a foreign host's Python must be, lacks and gets, judged without a host."""

import sys
import tarfile
from importlib import metadata
from types import SimpleNamespace

import pytest

from labbook.errors import LabError
from labbook.lab.host.host import Result
from labbook.lab.remote import packages, software, wheels
from labbook.lab.remote.on_host import probe_python as look

SEEN = {"python": "/usr/bin/python3", "version": [3, 12, 3], "bits": 64, "implementation": "cpython",
        "machine": "x86_64", "free_threaded": False, "libc": ["glibc", "2.39"], "library": None,
        "packages": dict.fromkeys(wheels.PACKAGES)}


@pytest.mark.parametrize("change, reason", [
    ({"version": [3, 10, 12]}, "3.10.12, x86_64.*older than 3.11"),
    ({"libc": ["musl", ""]}, "built for musl"),
    ({"libc": ["glibc", "2.17"]}, "glibc 2.17 is older than 2.28"),
    ({"machine": "riscv64"}, "x86_64 and aarch64 only"),
    ({"implementation": "pypy"}, "not the usual 64-bit CPython"),
    ({"free_threaded": True}, "not the usual 64-bit CPython"),
    ({"bits": 32}, "not the usual 64-bit CPython"),
])
def test_a_python_for_which_there_are_no_packages_is_reported(change, reason):
    with pytest.raises(LabError, match=f"rack1: .*{reason}.*`python`"):
        wheels.check_kind("rack1", SEEN | change)


def test_other_pythons_and_processors_get_packages_of_their_own(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path))
    monkeypatch.setattr(wheels, "_complaint_of", lambda command: asked.append(command) or fill(command))
    for change in ({}, {"version": [3, 11, 2]}, {"machine": "aarch64"}, {}, {"version": [3, 12, 9]}):
        packed = wheels.packages("rack1", SEEN | change)
        with tarfile.open(packed) as tar:
            assert {m.name for m in tar} == {".", "./zmq", "./zmq/core.py"}
    assert [(c[c.index("--python-version") + 1], c[c.index("--python-platform") + 1]) for c in asked] == [
        ("3.12", "x86_64-manylinux_2_28"), ("3.11", "x86_64-manylinux_2_28"),
        ("3.12", "aarch64-manylinux_2_28")]


def fill(command):
    target = wheels.Path(command[command.index("--target") + 1])
    for name in ("zmq/core.py", "zmq/core.pyx", "zmq/tests/test.py", "jedi/__init__.py", "bin/jedi"):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).touch()


def test_where_uv_fails_pip_is_tried_and_both_complaints_are_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path))
    monkeypatch.setattr(wheels, "_complaint_of", lambda command: f"{command[1]} says no")
    with pytest.raises(LabError, match="rack1's Python 3.12 on x86_64 with glibc:\npip says no\n-m says no"):
        wheels.packages("rack1", SEEN)


def test_look_describes_this_python():
    seen = look.look(wheels.PACKAGES)
    assert seen["version"] == sys.version_info[:3] and seen["machine"] in wheels.MACHINES
    assert seen["packages"]["ipyparallel"] == metadata.version("ipyparallel")
    assert software.lacks(seen) is None


def test_the_digest_is_of_names_and_contents_and_not_of_bytecode(tmp_path):
    for name in ("lab/a.py", "errors.py", "figures/f.py", "lab/__pycache__/a.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    first = look.library_digest(tmp_path)
    (tmp_path / "figures/f.py").write_text("2")
    (tmp_path / "lab/__pycache__/a.pyc").write_text("2")
    assert look.library_digest(tmp_path) == first
    (tmp_path / "lab/a.py").write_text("2")
    second = look.library_digest(tmp_path)
    (tmp_path / "lab/a.py").rename(tmp_path / "lab/b.py")
    assert len({first, second, look.library_digest(tmp_path)}) == 3


def test_the_alternative_that_the_hosts_lists_have_is_chosen():
    listing = "a:\n  Installed: (none)\n  Candidate: (none)\nb:\n  Installed: (none)\n  Candidate: 1.2\n"
    for lists, choice in ((listing, "b"), ("", "a")):
        host = SimpleNamespace(run=lambda command, check: Result(lists, "", 0))
        assert packages._choose(host, "a | b") == choice
    assert packages._choose(None, "only") == "only"


def test_nobody_waits_for_an_installation_whose_lab_is_stopped():
    stops = iter([False, False, True])
    host = SimpleNamespace(name="rack1", root="/r/apt", run=lambda command, check: Result("", "", 1))
    with pytest.raises(LabError, match="rack1: stopped while Debian packages are installed.*/r/apt/log"):
        packages._await_end(host, lambda: next(stops))


def test_of_papers_only_what_runs_on_hosts_is_brought(tmp_path):
    files = ["errors.py", "study/point.py", "papers/__init__.py", "papers/a/__init__.py",
             "papers/a/figures.py", "papers/a/on_host/load.py", "papers/b/protocols/redis.py"]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = {str(file.relative_to(tmp_path)) for file in look.library_files(tmp_path)}
    assert found == {*files} - {"study/point.py", "papers/a/figures.py"}

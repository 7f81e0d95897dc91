"""Probes without root: what is remembered, and what is reported of what is missing."""

import os
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from labbook.errors import InputError
from labbook.lab import deadline, features, kernel, probes
from labbook.lab.features import Missing
from labbook.lab.finding import Finding
from labbook.lab.local import provider


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Which names were `tried` as root; all is there but what is `missing`."""
    machine = SimpleNamespace(tried=[], missing=set(), boot=tmp_path / "boot_id")

    def as_root(names):
        machine.tried.extend(names)
        made = {name: Finding("", name, name not in machine.missing, "") for name in names}
        probes._update_cache(made)
        return made

    machine.boot.write_text("one\n")
    monkeypatch.setattr(probes, "CACHE", tmp_path / "labbook" / "probes.json")
    monkeypatch.setattr(probes, "BOOT_ID", machine.boot)
    monkeypatch.setattr(probes, "_as_root", as_root)
    return machine


def test_what_is_there_is_tried_once_a_boot(machine):
    assert probes.probe("tbf").ok and probes.probe("tbf").ok
    assert machine.tried == ["tbf"]
    machine.boot.write_text("another\n")
    assert probes.probe("tbf").ok
    assert machine.tried == ["tbf", "tbf"]


def test_all_are_tried_together(machine):
    assert list(probes.probes()) == machine.tried == list(probes.NAMES)


def test_what_is_missing_is_tried_again_for_it_may_have_been_installed(machine):
    machine.missing = {"loop", "netem"}
    assert not probes.probe("loop").ok and not probes.probe("netem").ok
    machine.missing = set()
    assert probes.probe("loop").ok
    assert not probes.probe("netem").ok      # a delay line stands in: not worth the time
    assert probes.probes(["netem"], again=True)["netem"].ok


def test_another_user_s_privilege_is_not_ours(machine):
    probes.probe("root")
    probes.probe("root")
    assert machine.tried == ["root", "root"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"boot": "one\\n", "probes": [{"name": 1}]}'])
def test_a_broken_memory_is_no_memory(machine, text):
    probes.CACHE.parent.mkdir()
    probes.CACHE.write_text(text)
    assert probes.probe("tbf").ok


def test_a_place_that_cannot_remember_tries_each_time(machine, tmp_path):
    probes.CACHE.parent.write_text("a file, no folder")
    assert probes.probe("tbf").ok and probes.probe("tbf").ok
    assert machine.tried == ["tbf", "tbf"]


def test_unknown_names_are_refused(machine):
    with pytest.raises(InputError, match="cgroup io"):
        probes.probe("cgroup disk")


def test_without_privilege_nothing_is_tried_and_the_remedy_is_sudo(monkeypatch):
    monkeypatch.setattr(deadline, "to_its_end", lambda *_: (1, "", "sudo: a password is required\n"))
    found = probes._as_root(["netem", "loop"])
    assert [p.ok for p in found.values()] == [False, False]
    assert "a password is required" in found["loop"].found and "sudo -n true" in found["loop"].remedy


def test_ctrl_c_while_features_are_tried_takes_effect_after_their_end(tmp_path, monkeypatch):
    """What is killed half way would leave something, and sudo's cannot be: that was taken for a missing privilege."""
    monkeypatch.setattr(probes.os, "geteuid", lambda: 0)
    monkeypatch.setattr(probes, "PROGRAM", "import os, signal, sys, time; os.kill(os.getppid(), signal.SIGINT); "
                                           "time.sleep(1); open(sys.argv[2], 'w')")
    with pytest.raises(KeyboardInterrupt):
        probes._as_root([str(tmp_path / "tried")])
    assert (tmp_path / "tried").exists()


def test_a_missing_command_names_its_package(monkeypatch):
    with pytest.raises(Missing, match="no command no-such-thing"):
        features._run("no-such-thing --now")
    monkeypatch.setitem(features.PACKAGE_OF, "no-such-thing", "no-such-package")
    for command in ("no-such-thing", "sh -c no-such-thing"):
        with pytest.raises(Missing) as missing:
            features._run(command)
        assert missing.value.remedy == "Type: apt-get install no-such-package"


def test_what_fails_reports_its_output_and_what_to_do(monkeypatch):
    def fails():
        raise Missing("Specified qdisc kind is unknown")

    monkeypatch.setitem(probes.PROBES, "tbf", (fails, "Take another kernel"))
    assert probes._try("tbf") == Finding(
        "", "tbf", False, "", "Specified qdisc kind is unknown", "Take another kernel")


@pytest.fixture
def groups(monkeypatch, tmp_path):
    monkeypatch.setattr(features, "CGROUPS", tmp_path)
    return tmp_path


def test_cgroups_of_neither_version(groups):
    with pytest.raises(Missing, match="no cgroup controller memory"):
        features._cgroup("memory", "memory.limit_in_bytes", "memory.max")()


def test_cgroup_v1_without_the_limit_s_file(groups):
    (groups / "blkio").mkdir()
    with pytest.raises(Missing, match="no blkio.throttle.read_iops_device"):
        features._cgroup("io", "blkio.throttle.read_iops_device", "io.max")()
    assert not list((groups / "blkio").iterdir())


def test_cgroup_v2_is_left_as_it_was(groups):
    (groups / "cgroup.controllers").write_text("cpu io memory\n")
    control = groups / "cgroup.subtree_control"
    control.write_text("memory\n")
    with pytest.raises(Missing, match="no io.max"):     # this one is no kernel: no files appear
        features._cgroup("io", "blkio.throttle.read_iops_device", "io.max")()
    assert control.read_text() == "-io"
    with pytest.raises(Missing, match="no cgroup controller cpuset"):
        features._cgroup("cpuset", "cpuset.cpus", "cpuset.cpus")()


def test_root_imports_nothing_from_the_working_folder(tmp_path, monkeypatch):
    """Others may write into it, such as /tmp."""
    commands = []
    with monkeypatch.context() as patched:
        patched.setattr(deadline, "to_its_end", lambda command, *_: commands.append(command) or (0, "[]", ""))
        probes._as_root(["iptables"])
    (tmp_path / "json.py").write_text("raise SystemExit('imported as root')")
    for command in (*commands, provider._command("")):
        options = command[command.index(sys.executable):command.index("-c")]
        done = subprocess.run([*options, "-c", "import json; print(json.__file__)"], cwd=tmp_path, capture_output=True,
                              text=True)
        assert done.returncode == 0 and str(tmp_path) not in done.stdout


def test_a_mounts_place_is_read_as_mountinfo_writes_it():
    assert kernel.unescaped(r"/data/my\040labs/l1\134x") == "/data/my labs/l1\\x"


def test_what_is_found_can_be_read_by_others_whatever_the_mask(monkeypatch):
    """With a mask of 077 the next command of the user could not read it, and the next install failed for good."""
    for name in ("find_tools", "clear_leftovers", "_update_cache"):
        monkeypatch.setattr(probes, name, lambda *_: None)
    monkeypatch.setattr(probes.locks, "alone", lambda *_: nullcontext())
    before = os.umask(0o077)
    try:
        probes.main([])
    finally:
        made_with = os.umask(before)
    assert made_with == 0o022

"""Machines that are reached over ssh, which a script plays here, and the host itself."""

import time
from pathlib import Path

import pytest
from here import here_host

from labbook.errors import LabError, SystemFailure
from labbook.workloads.machines.machine import Machine

# Notes its arguments and runs the last one, as sshd would, in a folder of the guest's own.
SSH = """#!/bin/sh
for word; do echo "$word" >> {folder}/arguments; last=$word; done
case "$*" in *10.0.0.99*) echo "No route to host" >&2; exit 255;; esac
cd {folder}/guest && exec sh -c "$last"
"""


@pytest.fixture
def guest(tmp_path):
    (tmp_path / "guest").mkdir()
    (tmp_path / "bin").mkdir()
    ssh = tmp_path / "bin/ssh"
    ssh.write_text(SSH.format(folder=tmp_path))
    ssh.chmod(0o755)
    host = here_host(tmp_path, "cloud")
    host.env = {"PATH": f"{tmp_path}/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    return Machine("vm1", host, "10.0.0.4", key="/cloud/key", folder=str(tmp_path / "guest"))


def test_a_command_is_run_there_as_it_was_given(guest, tmp_path):
    text = "one 'two  three' $HOME"
    assert guest.run(f'echo "{text}" | tr a-z A-Z').stdout.startswith("ONE 'TWO  THREE' /")
    assert guest.run("pwd").stdout.strip() == str(tmp_path / "guest")
    arguments = (tmp_path / "arguments").read_text().split("\n")
    assert arguments[arguments.index("-i") + 1] == "/cloud/key" and arguments[arguments.index("-l") + 1] == "root"
    assert "StrictHostKeyChecking=no" in arguments and "BatchMode=yes" in arguments


def test_a_way_there_that_hangs_is_given_up_and_nothing_of_it_stays(guest, tmp_path):
    with pytest.raises(LabError, match="vm1: `echo .* did not end within 2 s"):
        guest.run(f"echo $$ > {tmp_path}/pid; exec sleep 61", timeout=2)
    pid = (tmp_path / "pid").read_text().strip()
    assert not Path("/proc", pid).exists()


def test_a_known_host_key_is_asked_for():
    options = Machine("vm1", None, "10.0.0.4", key="k", known_hosts="/k/known").ssh_options()
    assert "StrictHostKeyChecking=yes" in options and "UserKnownHostsFile=/k/known" in options
    assert "UserKnownHostsFile=/dev/null" not in options


def test_what_fails_there_and_what_is_not_reached_are_distinguished(guest):
    with pytest.raises(LabError, match="vm1: `echo no; exit 3` ended with exit code 3: no"):
        guest.run("echo no; exit 3")
    assert guest.run("exit 3", check=False).exit_code == 3
    away = Machine("vm2", guest.via, "10.0.0.99", key="k")
    with pytest.raises(LabError, match="vm2 .* cannot be reached from cloud: No route"):
        away.run("true", check=False)


def test_a_folder_is_sent_with_what_it_holds(guest, tmp_path):
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep/program").write_text("text")
    (source / "deep/program").chmod(0o755)
    guest.send(source, f"{guest.folder}/a machine")
    copy = Path(guest.folder, "a machine/deep/program")
    assert copy.read_text() == "text" and copy.stat().st_mode & 0o111


def test_long_work_gives_all_its_output(guest):
    output = guest.finish("long", "for i in $(seq 200); do echo line $i; done", 10, "counting")
    assert output.splitlines()[0] == "line 1" and len(output.splitlines()) == 200


def test_long_work_that_fails_is_reported_with_its_words(guest):
    with pytest.raises(SystemFailure, match="counting on vm1 failed with exit code 7") as failure:
        guest.finish("long", "echo the disk is full; exit 7", 10, "counting")
    assert "the disk is full" in failure.value.log


def test_long_work_that_takes_too_long_is_ended_there(guest):
    with pytest.raises(SystemFailure, match="counting on vm1 to end: not within 0.3 s"):
        guest.finish("long", "echo begun; exec sleep 61", 0.3, "counting")
    until = time.monotonic() + 10
    while guest.via.process("long").alive() and time.monotonic() < until:
        time.sleep(0.01)
    assert not guest.via.process("long").alive()


def test_the_host_itself_is_a_machine(tmp_path):
    host = here_host(tmp_path, "node")
    machine = Machine.of(host)
    assert machine.here and machine.folder == f"{host.root}/benchmarks"
    assert machine.run("pwd").stdout.strip() == str(host.root)
    assert machine.finish("long", "echo done", 5, "work") == "done\n"


def test_another_host_gets_the_labs_own_key_but_no_users(tmp_path):
    cloud, node = here_host(tmp_path, "cloud"), here_host(tmp_path, "node")
    key = tmp_path / "key"
    key.write_text("a private key")
    node.login = node.login.__class__("127.0.0.9", "me", str(key), "")
    machine = Machine.of(node, cloud)
    assert machine.address == "127.0.0.9" and machine.data == "127.0.0.1" and machine.via is cloud
    assert Path(machine.key).read_text() == "a private key"
    assert not machine.key.startswith(machine.folder)   # what is sent on has no key in it
    assert Path(machine.key).stat().st_mode & 0o777 == 0o600
    node.allow = frozenset()
    with pytest.raises(LabError, match="no key for node"):
        Machine.of(node, cloud)

"""What a lab has is left out while another living process owns it, and only then."""

import os

import machine_state
import pytest
from other_labs import OtherLabs
from small_labs import describe, new_id
from test_fuse import HERE, SECONDS, mounted
from test_kill import Driver

from labbook.lab import Environment, Lab


@pytest.fixture(scope="module")
def lab():
    limits = {"fuse": True, "cores": 1, "memory": "256M", "disk": {"size": "64M", "iops": 1000}}
    with Lab.up(describe({"h1": limits, "h2": {}}), Environment("local"), new_id()) as lab:
        host = lab.host("h1")
        host.put(HERE / "mute_fs.py", host.root / "mute_fs.py")
        host.run("mkdir fs")
        server = host.start("mute", f"{host.python} mute_fs.py {host.root}/fs", root=True)
        host.wait_for(lambda: mounted(host), "the file system", SECONDS, server)
        yield lab


@pytest.fixture(scope="module")
def things(lab, tmp_path_factory):
    """The lines of a snapshot that are this lab's: by its id, its first processes and its FUSE mount."""
    mounts = lab.host("h1").run("cat /proc/self/mountinfo").stdout.splitlines()
    numbers = [line.split()[2].partition(":")[2] for line in mounts if "fuse.mute" in line]
    processes = tuple(f"process {pid} of " for pid in Driver(tmp_path_factory.getbasetemp(), lab.id).hosts())
    return {line for line in machine_state.snapshot() if lab.id in line or line.startswith(processes)
            or line in [f"FUSE connection {number}" for number in numbers]}


def test_a_lab_has_things_of_each_kind(lab, things):
    kinds = {line.partition(" ")[0] for line in things}
    assert kinds >= {"file", "loop", "control", "FUSE", "process", "ip"}
    assert any(line.startswith("process ") and lab.id not in line for line in things)


def test_what_another_living_process_has_is_left_out(things):
    others = OtherLabs()
    assert not [line for line in things if not others.have(line)]


def test_what_has_no_other_owner_is_not_left_out(things):
    others = OtherLabs(is_ours=lambda pid: pid == os.getpid())
    assert not [line for line in things if others.have(line)]


def test_a_lab_whose_name_begins_like_anothers_is_not_that_one(lab):
    others = OtherLabs()
    for name in (lab.id[:-1], f"{lab.id}x"):
        assert not others.have(f"file /run/labbook/{name}/journal")
        assert not others.have(f"ip -o link: lb-{name}: <UP>")

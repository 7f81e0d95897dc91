"""Single-place benchmarks where they are reached over ssh: UnixBench-style and bonnie++."""

import math
import time

import pytest
from small_labs import describe, new_id

from labbook.errors import InputError, LabError, SystemFailure
from labbook.lab import Environment, Lab
from labbook.workloads.machines import unixbench
from labbook.workloads.machines.bonnie_disk import bonnie_disk
from labbook.workloads.machines.machine import Machine
from labbook.workloads.machines.unixbench import TESTS, unixbench_style


@pytest.fixture(scope="module")
def lab():
    hosts = {"node": {"memory": "64M", "disk": {"size": "2G"}}, "client": {}}
    with Lab.up(describe(hosts), Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture(scope="module")
def guest(lab):
    """The node as a guest is: behind the client."""
    return Machine.of(lab.host("node"), lab.host("client"))


def test_a_guest_has_what_was_compiled_elsewhere(lab, guest):
    client = lab.host("client")
    unixbench.build(client, "made")
    guest.send(client.root / "made", f"{guest.folder}/unixbench")
    load = unixbench_style(guest, copies=2, passes=1, share_of_time=0.002)
    assert len(load.rows) == len(TESTS) and (load.rows.score > 0).all()
    assert load.metrics["index"] > 0 and load.metrics["suite"] == "UnixBench-style"
    assert "scratch" not in guest.run(f"ls {guest.folder}/unixbench").stdout


def test_what_takes_too_long_is_ended_in_the_guest(lab, guest):
    with pytest.raises(SystemFailure, match="waiting on node to end: not within 0.5 s"):
        guest.finish("waiting", "sleep 4321", 0.5, "waiting")
    node, until = lab.host("node"), time.monotonic() + 20
    while (left := node.run("pgrep -x sleep || true").stdout) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left


def test_a_connection_is_held_open_until_the_end(lab, guest):
    masters = "pgrep -fx 'ssh .* -M .*|ssh -M .*' || true"
    with guest.held() as held:
        assert held.run("hostname").stdout.strip() == "node"
        row = unixbench.one_pass(held, TESTS[0], copies=1, share_of_time=0.002)
        assert row["score"] > 0 and lab.host("client").run(masters).stdout
    until = time.monotonic() + 20
    while (left := lab.host("client").run(masters).stdout) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left


def test_a_guest_that_has_gone_is_an_error(guest):
    away = Machine("away", guest.via, "198.18.255.254", key=guest.key)
    with pytest.raises(LabError, match="away .* cannot be reached from client"):
        away.run("true")
    with pytest.raises(LabError, match="away .* cannot be reached from client: .*ssh: connect"), away.held():
        pass


@pytest.mark.parametrize("direct", [False, True])
def test_bonnie_measures_a_disk(lab, direct):
    node = lab.host("node")
    load = bonnie_disk(Machine.of(node), node.root / "disk", size_mb=768, byte_mb=0 if direct else 8,
                       files=1, direct=direct, seconds_at_most=300)
    assert load.csv.split(",")[5] == "768M" and len(load.rows) == 12
    assert math.isnan(load.metrics["put_c_kib_per_s"]) == direct
    assert load.metrics["rewrite_kib_per_s"] > 0
    assert not node.run("ls disk").stdout


def test_what_its_memory_would_keep_is_refused(lab):
    with pytest.raises(InputError, match="64 MB"):
        bonnie_disk(Machine.of(lab.host("node")), "/tmp", size_mb=100, byte_mb=8, seconds_at_most=60)

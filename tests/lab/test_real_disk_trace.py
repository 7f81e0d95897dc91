"""Disks of foreign hosts: set, traced where that is allowed, and left as they were."""

import subprocess
import sys
from pathlib import Path

import pytest
from foreign import foreign_hosts
from real_labs import as_before
from small_labs import describe, new_id
from test_disk_trace import DRIVER
from traces_left import instances

from labbook.errors import InputError, LabError
from labbook.lab import Environment, Lab, io_class
from labbook.lab.disk import modelled
from labbook.lab.journal import parse

HERE = Path(__file__).parent
DISK = {"disk": {"size": "64M"}}
TRACED = {"disk": {"size": "64M", "trace": True}}


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["r1"]) as made:
        yield made


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def there(place, tmp_path):
    def allowing(*kinds):
        return Environment.load(place.environment(tmp_path / "hosts.yml", allow=list(kinds)))
    return allowing


def test_requests_are_traced_and_settings_set_and_nothing_stays(place, there):
    with as_before(place):
        with Lab.up(describe({"h1": TRACED}), there("disk", "trace"), new_id()) as lab:
            disk, host = lab.disk("h1"), lab.host("h1")
            disk.set(scheduler="mq-deadline", read_ahead_kb=64)
            assert disk.facts()["scheduler"] == "mq-deadline" and disk.facts()["direct_io"]
            with disk.trace() as trace:
                host.run("dd if=/dev/zero of=x bs=64k count=16 oflag=direct status=none")
            mine = trace.requests[trace.requests["thread"] == "dd"]
            assert mine[mine["event"] == "queue"]["size_bytes"].sum() == 16 << 16
            disk.trace().begin()
            assert instances(f"labbook-{lab.id}-")
        assert not instances(f"labbook-{lab.id}-")


def test_a_killed_driver_s_trace_goes_with_the_next_command(place, there, tmp_path):
    lab_id = new_id()
    with as_before(place):
        there("disk", "trace")
        subprocess.run([sys.executable, "-c", DRIVER, lab_id, HERE, tmp_path / "hosts.yml"])
        assert instances(f"labbook-{lab_id}-") and "tracer.py" in place.inside("r1", "ps -eo args")
        Lab.sweep()
        assert not instances(f"labbook-{lab_id}-")


def test_a_modelled_disk_is_compiled_served_and_gone(place, there):
    limits = {"disk": {"size": "256M", "model": "hdd_2010", "order": "fcfs"}}
    with as_before(place):
        with Lab.up(describe({"h1": limits}), there("disk"), new_id()) as lab:
            disk, host = lab.disk("h1"), lab.host("h1")
            before = disk.served_so_far()["served"]
            host.run("dd if=/dev/zero of=x bs=64k count=16 oflag=direct status=none")
            requests = disk.served(before)
            assert requests[requests["write"]]["size_bytes"].sum() >= 16 << 16
            disk.set(order="elevator")
            assert disk.facts()["order"] == "elevator" and disk.facts()["model"] == "hdd_2010"
            assert lab.broken_disks() == []
            host.start("w", "dd if=/dev/urandom of=y bs=64k count=2000")


def test_a_host_is_clean_after_its_modelled_disk_s_daemon_was_killed(place, there):
    limits = {"disk": {"size": "256M", "model": "hdd_2010"}}
    with as_before(place):
        lab = Lab.up(describe({"h1": limits}), there("disk"), new_id())
        lab.host("h1").run("echo data > data && sync")
        daemon, = (entry for entry in parse(lab.host("h1").run("cat ../journal").stdout)
                   if entry["made"] == modelled.KIND)
        place.inside("r1", f"kill -9 {daemon['pid']}")
        assert "the modelled disk of h1 has ended" in lab.broken_disks()[0]
        lab.down()


def test_it_takes_leave(place, there):
    with as_before(place):
        with pytest.raises(InputError, match="hosts.r1.allow: .* asks for trace"):
            Lab.up(describe({"h1": TRACED}), there("disk"), new_id())
        with Lab.up(describe({"h1": DISK}), there("disk"), new_id()) as lab:
            with pytest.raises(LabError, match="trace is not allowed"):
                lab.disk("h1").trace().begin()
            process = lab.host("h1").start("sleep", "sleep 1000")
            with io_class(process, "^sleep$", "idle") as idle:
                assert "idle" in {row["klass"] for row in idle.now()}
            with pytest.raises(LabError, match="realtime takes root"):
                io_class(process, "^sleep$", "realtime")

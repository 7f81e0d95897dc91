"""What the sampler reads, and what its samples become."""

import json
import os
import socket
import sys
from types import SimpleNamespace

import pytest

from labbook.lab.local import cgroups
from labbook.lab.series import watch
from labbook.lab.series.on_host import sampler

PRESSURE = ("some avg10=1.57 avg60=0.98 avg300=1.28 total=27168373\n"
            "full avg10=0.00 avg60=0.00 avg300=0.00 total=6475066\n")
NET = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:  100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0
 data0: 5000      10    0    0    0     0          0         0     7000      12    0    0    0     0       0          0
w-eu-1:7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0
"""
DISKS = """   7       0 loop0 9 9 9 9 9 9 9 9 9 9 9
 254       0 vda 10 0 80 5 20 0 160 7 0 30 12 0 0 0 0
 254       1 vda1 10 0 80 5 20 0 160 7 0 30 12 0 0 0 0
 254      16 vdb 1 0 8 5 2 0 16 7 0 40 12 0 0 0 0
"""


def test_files_of_the_kernel_as_counters():
    assert sampler.usage("usage_usec 30\nuser_usec 20\nsystem_usec 10\nnice_usec 3\nnr_periods 0\n") == {
        "cpu_us": 30, "user_us": 20, "system_us": 10}
    assert sampler.stalled(PRESSURE) == 27168373 and sampler.stalled("") is None
    assert sampler.network(NET) == {"rx_bytes_data0": 5000, "tx_bytes_data0": 7000, "rx_bytes_w-eu-1": 7,
                                    "tx_bytes_w-eu-1": 8}
    assert sampler.disks(DISKS) == {"reads": 11, "read_bytes": 88 * 512, "writes": 22, "written_bytes": 176 * 512,
                                    "disk_busy_ms_vda": 30, "disk_busy_ms_vdb": 40}
    assert sampler.used("MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable: 30 kB\n") == {"memory_bytes": 70 * 1024}
    found = sampler.processor("cpu  10 5 20 1000 7 1 2 3 0 0\ncpu0 1 1 1 1\n")
    assert {name: count // sampler.TICK_US for name, count in found.items()} == {
        "cpu_us": 38, "user_us": 15, "system_us": 23, "iowait_us": 7, "steal_us": 3}


@pytest.mark.parametrize("parse", [sampler.usage, sampler.network, sampler.processor, sampler.disks, sampler.used])
def test_what_the_kernel_does_not_tell_is_left_out(parse):
    assert parse("") == {}


def test_a_host_is_read_from_its_own_files(tmp_path):
    group = tmp_path / "group"
    group.mkdir()
    (group / "cpu.stat").write_text("usage_usec 30\nuser_usec 20\nsystem_usec 10\n")
    (group / "io.pressure").write_text(PRESSURE)
    (group / "memory.current").write_text("4096\n")
    found = sampler.of_host({"name": "h", "group": str(group), "memory": str(group / "memory.current"), "disk": "none"})
    assert found == {"cpu_us": 30, "user_us": 20, "system_us": 10, "stalled_io_us": 27168373, "memory_bytes": 4096}
    (group / "cgroup.procs").write_text("1\n999999999\n")
    assert sampler.of_host({"name": "h", "group": str(group)})["memory_bytes"] >= 0, "processes may have ended"


def test_a_file_that_the_kernel_gives_in_parts_is_read_to_its_end(tmp_path, monkeypatch):
    (tmp_path / "dev").write_text(NET)
    read = os.read
    monkeypatch.setattr(os, "read", lambda file, size: read(file, 40))
    assert sampler.read(str(tmp_path / "dev")) == NET


def test_rates_are_of_the_interval_that_there_was():
    first = [100.0, {"h": {"cpu_us": 0, "memory_bytes": 10, "rx_bytes_data0": 0}}]
    second = [102.0, {"h": {"cpu_us": 1_000_000, "memory_bytes": 20, "rx_bytes_data0": 500}, "new": {"cpu_us": 5}}]
    frame = watch.table([[first, second]])
    row = frame[frame.host == "h"].iloc[0]
    assert (row.at_s, row.seconds, row.cpu_cores, row.memory_bytes, row.rx_bytes_per_s_data0) == (102, 2, 0.5, 20, 250)
    assert frame[frame.host == "new"].cpu_cores.isna().all()


def test_of_several_disks_the_busiest_in_the_interval_counts():
    """The growth of the larger counter was taken: a disk that had been busy for long hid another that was now."""
    first = [100.0, {"m": {"disk_busy_ms_vda": 900_000, "disk_busy_ms_vdb": 1_000}}]
    second = [101.0, {"m": {"disk_busy_ms_vda": 900_000, "disk_busy_ms_vdb": 1_800}}]
    assert list(watch.table([[first, second]])["disk_busy"]) == [0.8]


def test_samples_go_on_evenly_when_the_clock_is_set(monkeypatch):
    before = sampler.sample([])[0]
    monkeypatch.setattr(sampler.time, "time", lambda: 0.0)
    assert before <= sampler.sample([])[0] < before + 60


def test_the_sampler_of_a_users_own_hosts_is_outside_of_their_limits(monkeypatch):
    """It was in the first host's, whose quota it used and with which it was frozen."""
    opened, mine = [], SimpleNamespace(settimeout=lambda seconds: None, sendall=lambda request: None)

    def host(name):
        login = SimpleNamespace(address="192.0.2.1", port=22)
        return SimpleNamespace(name=name, is_remote=True, login=login, python="python3", open=lambda command, **how: (
            opened.append((name, how)) or mine))

    monkeypatch.setattr(watch.clock, "ahead_s", lambda host: 0.0)
    watch.start(SimpleNamespace(_made={"hosts": []}, routers={}, hosts={name: host(name) for name in ("h1", "h2")}))
    assert opened == [("h1", {"apart": True})]


def test_samples_too_close_and_clocks_set_back_make_no_rows():
    at = [[100.0, {"h": {"cpu_us": 1}}], [100.001, {"h": {"cpu_us": 2}}], [90.0, {"h": {"cpu_us": 3}}]]
    assert len(watch.table([at])) == 0 and len(watch.table([])) == 0


def test_a_counter_that_began_anew_makes_no_rate():
    frame = watch.table([[[1.0, {"h": {"cpu_us": 9}}], [2.0, {"h": {"cpu_us": 1}}]]])
    assert "cpu_cores" not in frame


def test_every_counter_has_a_column():
    samples = sampler.sample([{"name": "m", "machine": True}])
    frame = watch.table([[[0.0, samples[1]], [1.0, samples[1]]]])
    assert {"cpu_cores", "steal_cores", "memory_bytes"} <= set(frame)


def test_a_sampler_gives_all_since_the_last_time_and_ends_with_its_connection():
    one = watch.local([{"name": "m", "machine": True}], seconds=0.02)
    try:
        first, again = one.take(), one.take()
        assert len(first) >= 1 and again[-1][0] >= first[-1][0] and again[0][1]["m"]["cpu_us"] > 0
    finally:
        one.close()
    assert one._process.returncode == 0


def test_a_sampler_that_ended_is_an_error_not_a_wait():
    mine, its = socket.socketpair()
    one = watch.Sampler(mine, [])
    assert json.loads(its.recv(1000))["hosts"] == []
    its.close()
    with pytest.raises((OSError, EOFError)):
        one.take()


@pytest.mark.parametrize("v2", [True, False])
def test_what_is_read_of_a_local_host(tmp_path, v2):
    (tmp_path / "unified").mkdir()
    marks = tmp_path / "cgroup.controllers" if v2 else tmp_path / "unified/cgroup.procs"
    marks.touch()
    group = (tmp_path if v2 else tmp_path / "unified") / "labbook-t1" / "h"
    made = {"name": "h", "pid": 7, "device": "/dev/loop3"}
    assert watch.of_local("t1", made, tmp_path) == {"name": "h", "pid": 7, "disk": "loop3"}
    group.mkdir(parents=True)
    assert cgroups.account("t1", "h", tmp_path) == group
    assert watch.of_local("t1", made, tmp_path)["group"] == str(group)


def test_it_needs_the_standard_library_alone():
    assert {name.partition(".")[0] for name in vars(sampler) if hasattr(vars(sampler)[name], "__spec__")} <= set(
        sys.stdlib_module_names)

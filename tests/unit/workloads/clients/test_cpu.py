"""CPU of clients and servers, and results that the clients limited."""

import os
import subprocess
import time
from types import SimpleNamespace

import pandas as pd
import pytest
from here import here_host

from labbook.errors import LabError, SystemFailure
from labbook.workloads.clients.cpu import (
    busy_shares,
    ceilings_in,
    client_limited,
    core_seconds,
    cpus_together,
    limited_by_clients,
    server_cpu,
)


@pytest.mark.parametrize("rate, ceiling_rate, cpu_share, limited", [
    (1000, 10_000, 0.1, False),
    (7000, 10_000, 0.1, False),   # at the threshold, not above
    (7001, 10_000, 0.1, True),    # near the ceiling
    (1000, 10_000, 0.71, True),   # the clients' CPU is used up, whatever the ceiling says
])
def test_above_seventy_per_cent_of_either_it_is_limited(rate, ceiling_rate, cpu_share, limited):
    assert client_limited(rate, ceiling_rate, cpu_share) is limited


@pytest.mark.parametrize("issued, limited", [
    ([60, 60], False), ([71, 10], True), ([10, 60], False), ([10, 64], True), ([69], False)])
def test_each_host_is_held_against_its_own_ceiling(issued, limited):
    assert limited_by_clients(issued, [[100, 80], [90, 90]], 0.1) is limited
    assert limited_by_clients(issued, [], 0.8) and not limited_by_clients(issued, [], 0.1)


def test_a_ceiling_that_cannot_be_compared_is_an_error():
    old = pd.DataFrame({"rate_per_s": [9.0]})
    assert ceilings_in(old.assign(issued_per_s=[[5.0, 4.0]])) == [[5, 4]] and ceilings_in(old[:0]) == []
    for ceilings in (old, old.assign(issued_per_s=None)):
        with pytest.raises(LabError, match="earlier version"):
            ceilings_in(ceilings)


def test_a_core_that_waits_for_a_disk_is_not_busy_and_others_do_not_count(tmp_path):
    stat = "cpu 300 60 90 900 150 0 18 12 27 27\ncpu0 100 20 30 400 50 0 6 4 9 9\ncpu10 200 40 60 500 100 0 12 8 18 18\nintr 7\n"
    host = SimpleNamespace(run=lambda command: SimpleNamespace(stdout=stat))
    assert core_seconds(host, [0]) == (1.6, 6.1)      # guests' time, the last two, is a part of the users'
    assert core_seconds(host, [0, 10]) == (4.8, 15.3) and core_seconds(host, []) == (0, 0)
    assert core_seconds(host) == (4.8, 15.3)
    busy, every = core_seconds(here_host(tmp_path, "c1"), range(os.cpu_count()))
    assert 0 < busy < every <= os.cpu_count() * time.clock_gettime(time.CLOCK_BOOTTIME) + 10


def test_hosts_of_one_machine_may_have_the_same_cpus(tmp_path):
    one, other = here_host(tmp_path, "c1"), here_host(tmp_path, "c2")
    one.cores = other.cores = [1]
    assert cpus_together([one, other]) == 1
    other.cores = [2, 3]
    assert cpus_together([one, other]) == 3
    one.allow = other.allow = frozenset()       # a user's own, each of which is a machine
    other.cores = [1]
    assert cpus_together([one, other]) == 2


@pytest.mark.parametrize("cores, remote, busy", [
    (([0], [0]), False, [0.5, 0.5]), (([0], [1]), False, [0.25, 0.4]), (([0], [0]), True, [0.1, 0.4])])
def test_clients_are_busy_together_where_they_share_cpus(cores, remote, busy):
    hosts = [SimpleNamespace(is_remote=remote, cores=of_host, limits={}) for of_host in cores]
    assert busy_shares(hosts, [0.1, 0.4]) == pytest.approx(busy)
    assert busy_shares(hosts, [0.4]) == [0.4]


def run(command, check=True):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert not check or done.returncode == 0
    return SimpleNamespace(stdout=done.stdout, exit_code=done.returncode)


def process(pid):
    host = SimpleNamespace(name="db1", run=run)
    return SimpleNamespace(host=host, name="galera", pid=pid, log_tail=lambda: "out of memory")


def test_it_is_summed_over_processes_and_unknown_without_them():
    mine = process(os.getpid())
    one, two = server_cpu(SimpleNamespace(process=mine)), server_cpu(
        SimpleNamespace(process=None, processes=[mine, mine]))
    assert 0 < one < two
    assert server_cpu(SimpleNamespace()) is server_cpu(SimpleNamespace(process=None)) is None


def test_a_server_that_has_ended_is_reported_by_its_host():
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(SystemFailure, match="db1: galera has ended.*\n.*\nout of memory"):
        server_cpu(SimpleNamespace(processes=[process(ended.pid)]))

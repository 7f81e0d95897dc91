"""The CPU of servers, by what their hosts say of their processes."""

import os
import subprocess
from types import SimpleNamespace

import pytest

from labbook.errors import SystemFailure
from labbook.workloads.clients.cpu import server_cpu


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


def test_a_server_that_has_ended_is_told_by_its_host():
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(SystemFailure, match="db1: galera has ended.*\n.*\nout of memory"):
        server_cpu(SimpleNamespace(processes=[process(ended.pid)]))

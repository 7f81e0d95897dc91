"""Which cores processes get, by the scripts that hosts run, on processes of this machine."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from labbook.papers.cloud_platforms import pinning
from labbook.papers.cloud_platforms.pinning import halves, pinned

QEMU = "import sys, time; print(flush=True); time.sleep(60)"


@pytest.mark.parametrize("cores, own, rest", [
    ([3], [3], [3]), ([2, 3], [3], [2]), ([0, 1, 2], [1, 2], [0]), ([0, 1, 2, 3], [2, 3], [0, 1])])
def test_a_tested_server_has_the_upper_half(cores, own, rest):
    assert halves(cores) == (own, rest)


def cores_of(process) -> set:
    return os.sched_getaffinity(process.pid)


@pytest.fixture
def servers(tmp_path, monkeypatch):
    """{id: a process that looks like a server's QEMU}, by a name that no other process has."""
    name = f"qemu-stand-in-{os.getpid()}"
    monkeypatch.setattr(pinning, "QEMU", name)
    (tmp_path / name).symlink_to(sys.executable)
    found = {one: subprocess.Popen([tmp_path / name, "-c", QEMU, "-uuid", one, "x"], stdout=subprocess.PIPE)
             for one in ("aa-1", "bb-2")}
    for one in found.values():
        one.stdout.readline()       # it runs its program
    yield found
    for one in found.values():
        one.kill()
        one.wait()
        one.stdout.close()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="takes two cores")
def test_only_the_tested_server_has_its_own_cores(servers, monkeypatch):
    cores = sorted(os.sched_getaffinity(0))[:2]
    monkeypatch.setattr(pinning, "ALL", "true {cores}")     # of all processes of this machine
    host = SimpleNamespace(cores=cores, run=lambda command: subprocess.run(["sh", "-c", command], check=True))
    with pinned([host]) as pin:
        for tested, other in (("aa-1", "bb-2"), ("bb-2", "aa-1")):
            pin([tested])
            assert (cores_of(servers[tested]), cores_of(servers[other])) == ({cores[1]}, {cores[0]})
        pin(["aa-1", "bb-2"])
        assert cores_of(servers["aa-1"]) == cores_of(servers["bb-2"]) == {cores[1]}


def test_all_else_has_the_other_cores_until_the_end():
    ran = []
    hosts = [SimpleNamespace(cores=[4, 5], run=ran.append) for _ in range(2)]
    with pinned(hosts):
        assert len(ran) == 2 and all("taskset -acp 4 " in command for command in ran)
    assert len(ran) == 4 and all("taskset -acp 4,5 " in command for command in ran[2:])

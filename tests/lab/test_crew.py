"""Engines on lab hosts: where they run, who may call them, how they end."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from small_labs import describe, new_id

from labbook.errors import SystemFailure
from labbook.lab import Environment, Lab
from labbook.workloads.crew.crew import CONTROLLER, ENGINE, Crew


@pytest.fixture(scope="module")
def lab():
    description = describe({"client1": {}, "client2": {}, "server": {}})
    with Lab.up(description, Environment("local"), new_id()) as lab:
        yield lab


def shipped(function):
    """Send the code itself: the engines cannot import this file."""
    function.__module__ = "__main__"
    return function


@shipped
def where():
    import os
    import socket

    return socket.gethostname(), os.getpid()


@shipped
def library():
    import labbook

    return labbook.__file__


@shipped
def die():
    import os

    os._exit(3)


def test_one_engine_a_client_host_inside_it(lab):
    found = Crew.of(lab).run(where)
    assert [name for name, _ in found] == ["client1", "client2"]
    for name, pid in found:
        assert lab.host(name).process(ENGINE).pid == pid
    assert lab.host("server").process(ENGINE) is None


def test_engines_have_the_drivers_library_whatever_their_python_has_installed(lab):
    import labbook

    assert Crew.of(lab).run(library) == [labbook.__file__] * 2


def test_the_controller_listens_on_control_addresses_alone(lab):
    Crew.of(lab).run(where)
    host = lab.host("client1")
    listening = {line.split()[3].rpartition(":")[0]
                 for line in host.run("ss -Hltnp").stdout.splitlines() if "python" in line}
    assert host.control_address in listening and listening <= {host.control_address, "127.0.0.1"}


def test_another_process_takes_up_the_crew(lab):
    """What a restarted kernel does, except that this one holds the lab and keeps it."""
    before = Crew.of(lab).run(where)
    connection = lab.host("client1").get("crew/profile/security/ipcontroller-client.json")
    script = """import json, sys, ipyparallel
client = ipyparallel.Client(json.load(sys.stdin), timeout=20)
print(sorted(client[:].apply_sync(lambda: __import__("os").getpid())))"""
    done = subprocess.run([sys.executable, "-c", script], input=connection, capture_output=True,
                          timeout=60)
    assert done.stdout.decode().strip() == str(sorted(pid for _, pid in before)), done.stderr
    again = Crew(lab)
    assert again.run(where) == before
    again.close()


def test_a_dead_engine_is_reported_with_its_host_and_replaced(lab):
    with pytest.raises(SystemFailure, match="client1: the engine of the clients has died"):
        Crew.of(lab).run(die, timeout=10**6)     # which nobody waits for
    assert len(Crew.of(lab).run(where)) == 2


def test_a_dead_controller_is_replaced(lab):
    lab.host("client1").process(CONTROLLER).kill()
    assert len(Crew.of(lab).run(where)) == 2


def test_it_ends_with_the_lab():
    with Lab.up(describe({"client": {}}), Environment("local"), new_id()) as lab:
        Crew.of(lab).run(where)
        network = lab.host("client").run("readlink /proc/self/ns/net").stdout.strip()
        assert sum("ipyparallel" in command for command in _commands_in(network)) >= 2
    assert not _commands_in(network)


def _commands_in(network: str) -> list[str]:
    """Command lines of this machine's processes in a network namespace."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            if os.readlink(process / "ns" / "net") == network:
                found.append((process / "cmdline").read_text())
    return found

"""A crew on foreign hosts, one of them behind a jump host: reached, measured by, cut off from."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from foreign import foreign_hosts

from labbook.errors import LabError, SystemFailure
from labbook.lab import Environment
from labbook.lab.host.host import Host
from labbook.lab.remote import software
from labbook.lab.ssh import connection as ssh
from labbook.systems.null.server import NullServer
from labbook.workloads.crew import crew as crews
from labbook.workloads.crew.crew import ENGINE, Crew
from labbook.workloads.keyvalue.load import keyvalue


class Rack:
    """Client hosts of a lab: h1, and h2 behind the bastion."""

    id = "rack"

    def __init__(self, place, folder):
        environment = Environment.load(place.environment(folder / "rack.yml", allow=["software"]))
        self.place = place
        with ThreadPoolExecutor() as pool:
            self.hosts = list(pool.map(self._host, environment.hosts))

    def _host(self, real):
        root = real.root / "lab" / f"on-{real.name}"
        self.place.inside(real.name, f"mkdir -p {root}", user="op")
        host = Host(f"on-{real.name}", "lan", "client", real.data, real.login, root, real.python,
                    allow=real.allow)
        host.python = software.install(host, real, root.parent)
        return host

    def role(self, role):
        return self.hosts if role == "client" else []


@pytest.fixture(scope="module")
def rack(tmp_path_factory):
    with foreign_hosts(["h1", "h2"], jump="bastion") as place:
        rack = Rack(place, tmp_path_factory.mktemp("rack"))
        yield rack
        Crew.of(rack).stop()
        for host in rack.hosts:
            assert not host.tunnels
            host.close()


def shipped(function):
    """Send the code itself: the engines cannot import this file."""
    function.__module__ = "__main__"
    return function


@shipped
def where(*given):
    import os
    import sys

    return os.environ["LABBOOK_HOST"], os.getpid(), sys.executable, *given


@shipped
def rest(seconds):
    import os
    import time

    time.sleep(seconds)
    return os.getpid()


@shipped
def die():
    import os

    os._exit(3)


def test_engines_work_on_the_hosts_and_only_engines_come_by_the_data_network(rack):
    found = Crew.of(rack).run(where, ["a", "b"])
    assert [(name, given) for name, _, _, given in found] == [("on-h1", "a"), ("on-h2", "b")]
    assert all(python.startswith("/usr/bin/python3") for _, _, python, _ in found)
    first, second = rack.hosts
    listening = {line.split()[3].rpartition(":")[0]
                 for line in first.run("ss -Hltnp").stdout.splitlines() if "python" in line}
    assert listening <= {"127.0.0.1", first.address} and first.address in listening
    assert first.control_address not in listening and "pid" not in second.run("ss -Hltnp").stdout
    modes = first.run("stat -c %a crew crew/profile/*.py crew/profile/security/*.json").stdout.split()
    assert modes == ["700", "600", "600", "600"]


def test_a_crew_measures_there(rack):
    server = NullServer(rack.hosts[1], protocol="thrift").up()
    try:
        load = keyvalue(Crew.of(rack), server, op="read", clients=4, requests=50, rows=3,
                        value_bytes=100, warmup_requests=2, seed=1, seconds_at_most=20)
    finally:
        server.destroy()
    assert load.rows.ok.all() and len(load.rows) == 200
    assert set(load.rows.host) == {"on-h1", "on-h2"}


def test_clocks_of_one_machine_agree_within_what_is_reported(rack):
    clocks = Crew.of(rack).clock_offsets()
    assert len(clocks) == 2 and all(abs(c.offset_s) <= c.uncertainty_s + 0.001 for c in clocks)
    assert Crew.of(rack).clock_offsets() is clocks


@pytest.mark.parametrize("name", ["h1", "h2"])
def test_the_answer_is_got_though_the_connection_breaks(rack, name):
    crew = Crew.of(rack)
    engines = [pid for _, pid, *_ in crew.run(where)]
    broken = threading.Timer(0.5, rack.place.hang_up, [name])
    broken.start()
    assert crew.run(rest, [2, 2]) == engines
    broken.join()
    assert crew.run(rest, [0, 0]) == engines


def test_a_host_that_is_away_for_good_is_an_error_and_works_again_when_it_is_back(rack, monkeypatch):
    monkeypatch.setattr(ssh, "GONE_SECONDS", 2)
    for host in rack.hosts:
        host.disconnect()
    crew = Crew.of(rack)
    engines = crew.run(rest, [0, 0])
    away = threading.Timer(0.5, rack.place.cut, ["h1"])
    with monkeypatch.context() as soon:
        soon.setattr(crews, "BACK_SECONDS", 2)
        soon.setattr(ssh, "CONNECT_SECONDS", 2)
        away.start()
        with pytest.raises(LabError, match="lost and did not come back within 2 s"):
            crew.run(rest, [20, 20])
        away.join()
    monkeypatch.undo()
    rack.place.heal("h1")
    again = Crew.of(rack).run(rest, [0, 0])
    assert len(again) == 2 and not set(again) & set(engines)  # what those still did was not known


def test_a_dead_engine_is_reported_and_replaced(rack):
    with pytest.raises(SystemFailure, match="the engine of the clients has died"):
        Crew.of(rack).run(die)
    assert [name for name, *_ in Crew.of(rack).run(where)] == ["on-h1", "on-h2"]
    assert rack.hosts[1].process(ENGINE).alive()

"""Links and disks on hosts that are a user's own: what was asked is what packets meet, no more."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest
from foreign import differences, foreign_hosts
from small_labs import best_of, connect_ms

from labbook.errors import InputError, LabError
from labbook.lab import Environment, Host, Link
from labbook.lab.host import Login
from labbook.lab.real import as_root, disk, shape

SITES = {"a": ["h1"], "b": ["h2", "h3"]}
LAB = "t1"


@pytest.fixture(scope="module")
def place():
    """h3 is reached through h1, by which SSH is on the data network; it is of the far site."""
    with foreign_hosts(["h1", "h2", "h3"]) as made:
        yield made


def lab_in(file):
    """The least of a lab: its hosts, with folders, each found by its site."""
    sites = {name: site for site, names in SITES.items() for name in names}
    hosts = {}
    for real in Environment.load(file).hosts:
        login = _login(real)
        folder = PurePosixPath(real.root) / LAB / real.name
        hosts[real.name] = Host(real.name, sites[real.name], "db", real.data, login, folder,
                                real.python, sudo=True)
    return SimpleNamespace(id=LAB, routers={}, hosts=hosts,
                           site=lambda site: [hosts[name] for name in SITES[site]])


def _login(real):
    jump = _login(real.jump) if real.jump else None
    return Login(real.address, real.user, real.key, real.known_hosts, real.port, jump)


@pytest.fixture(scope="module")
def lab(place, tmp_path_factory):
    file = place.environment(tmp_path_factory.mktemp("env") / "hosts.yml", hosts={
        "h3": {"address": place.addresses["h3"]["data"], "jump": "h1"}})
    with open(file.parent / "foreign_known_hosts", "a") as known:
        known.write(f"{place.addresses['h3']['data']} {place.keys['hosts']['h3']}\n")
    for name in place.names:
        place.inside(name, f"mkdir -p /home/op/labbook/{LAB}/{name}", user="op")
    made = lab_in(file)
    made.file = file
    yield made
    for host in made.hosts.values():
        host.close()


@pytest.fixture
def link(lab):
    link = Link(lab, "a", "b")
    yield link
    link.heal()
    link.shape()


def rules(place, name):
    return [rule for rule in place.snapshot(name)["rules"] if "lb-" in rule or "delay" in rule]


def pings_back(lab, source="h1", target="h2"):
    said = lab.hosts[source].run(f"ping -q -c 3 -i 0.05 -W 0.5 {lab.hosts[target].address}",
                                 check=False).stdout
    return int(said.split(" received")[0].split()[-1])


def test_every_pair_of_hosts_is_as_far_apart_as_asked(lab, link):
    link.shape(rtt_ms=50)
    assert link.check()["measured_rtt_ms"] == pytest.approx(50, abs=2)
    for far in ("h2", "h3"):
        for ends in (("h1", far), (far, "h1")):
            near = best_of(3, lambda ends=ends: connect_ms(*(lab.hosts[e] for e in ends)),
                           lambda ms: abs(ms - 50) < 2)
            assert near == pytest.approx(50, abs=2), ends
    assert best_of(3, lambda: connect_ms(lab.hosts["h2"], lab.hosts["h3"]),
                   lambda ms: ms < 2) < 2, "one site"
    facts = link.facts()
    assert facts["means"] == "delay line" and set(facts["delay_lines"]) == {"h1", "h2", "h3"}


def test_loss_and_jitter(link):
    link.shape(rtt_ms=20, jitter_ms=8, loss=0.05)
    found = link.check()
    assert 0 < found["measured_loss"] < 0.2 and found["measured_jitter_ms"] > 2


def test_tcp_is_not_slowed_down_beyond_the_delay(lab, link):
    """Held where they leave, packets would still be their socket's, and TCP would send no more."""
    link.shape(rtt_ms=50)
    server = lab.hosts["h2"].start("iperf3", "iperf3 -s --forceflush")
    lab.hosts["h2"].wait_for(lambda: "listening" in server.log_tail(), "iperf3", 20, server)
    said = lab.hosts["h1"].run(f"iperf3 -J -c {lab.hosts['h2'].address} -t 2 -O 1 -P 4").stdout
    server.stop()
    assert json.loads(said)["end"]["sum_received"]["bits_per_second"] > 100e6


def test_a_cut_leaves_the_control_path_alone_even_where_it_is_the_data_path(lab, link):
    link.shape(rtt_ms=20)
    link.cut()
    assert pings_back(lab) == pings_back(lab, "h3", "h1") == 0
    assert link.check()["measured_loss"] == 1
    for host in lab.hosts.values():     # h3 by a new connection, through h1's and h3's data address
        host.close()
        assert host.run("hostname", timeout=10).stdout.strip() == host.name
    assert pings_back(lab, "h2", "h3") == 3
    link.shape(rtt_ms=40)               # a new shape heals nothing
    assert link.check()["measured_loss"] == 1
    Link(lab, "a", "b").heal()          # another process knows what was asked
    assert Link(lab, "a", "b").check()["measured_rtt_ms"] == pytest.approx(40, abs=2)


RECEIVE = """
import socket
socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
socket.bind(("0.0.0.0", 7007))
print("bound", flush=True)
while True: print(socket.recv(100).decode(), flush=True)
"""
SEND = "echo {word} | {python} -c 'import socket, sys; socket.socket(2, 2).sendto(sys.stdin.read().strip().encode(), (\"{to}\", 7007))'"


def test_packets_on_their_way_are_lost_by_a_cut(lab, link):
    near, far = lab.hosts["h1"], lab.hosts["h2"]
    link.shape(rtt_ms=2000)
    server = far.start("receive", f"{far.python} -c {shlex.quote(RECEIVE)}")
    far.wait_for(lambda: "bound" in server.log_tail(), "the receiver", 20, server)
    near.run(SEND.format(word="cut", python=near.python, to=far.address))
    held = Link(lab, "a", "b").facts()["delay_lines"]["h2"]["held"]
    link.cut()
    assert held == 1
    far.wait_for(lambda: link.facts()["delay_lines"]["h2"]["held"] == 0, "the packet's time", 20)
    link.heal()
    link.shape(rtt_ms=20)
    near.run(SEND.format(word="healed", python=near.python, to=far.address))
    far.wait_for(lambda: "healed" in server.log_tail(), "the second packet", 20, server)
    assert "cut" not in server.log_tail()
    server.stop()


def test_without_its_delay_line_a_link_is_closed_until_shaped_again(lab, link):
    link.shape(rtt_ms=20)
    lab.hosts["h2"].process("delay-a").kill()
    assert pings_back(lab) == 0 and pings_back(lab, "h1", "h3") == 3
    with pytest.raises(LabError, match="h1 to h2.*delay line on h2 has ended"):
        link.check()
    link.shape(rtt_ms=20)
    assert link.check()["measured_rtt_ms"] == pytest.approx(20, abs=2)


def test_rules_and_queues_of_others_are_left_alone(place, lab, link):
    others = f"PREROUTING -s 192.0.2.1 -j NFQUEUE --queue-num {shape.ALL_QUEUES[0]}"
    lab.hosts["h1"].run("rm -f queue-b")
    place.inside("h1", f"iptables -t mangle -A {others}")
    before = place.snapshot("h1")["rules"]
    link.shape(rtt_ms=20)
    link.cut()
    assert place.inside("h1", "cat /proc/net/netfilter/nfnetlink_queue").split()[0] == str(
        shape.ALL_QUEUES[1])
    link.heal()
    link.shape()
    assert place.snapshot("h1")["rules"] == before and link.check()["measured_rtt_ms"] < 2
    place.inside("h1", f"iptables -t mangle -D {others}")


def test_a_rate_is_refused_and_changes_nothing(link):
    link.shape(rtt_ms=20)
    with pytest.raises(InputError, match="rate_mbit: .*takes no rate"):
        link.shape(rate_mbit=10)
    assert link.asked["rtt_ms"] == 20


DRIVER = """
import sys, time
sys.path[:0] = [sys.argv[1]]
import test_real_links
from labbook.lab import Link
link = Link(test_real_links.lab_in(sys.argv[2]), "a", "b")
link.shape(rtt_ms=100)
link.cut()
print("shaped", flush=True)
time.sleep(1000)
"""


def test_what_a_killed_driver_left_is_undone_from_the_journals_alone(place, lab):
    hosts = lab.hosts.values()
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, os.path.dirname(__file__), lab.file],
                              stdout=subprocess.PIPE, text=True)
    assert driver.stdout.readline() == "shaped\n"
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    for host in hosts:
        assert rules(place, host.name)
        entries = [json.loads(line) for line in host.run("cat ../journal").stdout.splitlines()]
        for _ in range(2):
            for entry in entries:
                host.run("set -e\n" + "\n".join(shape.undo(entry)), root=True)
        assert not rules(place, host.name)
        host.process(f"delay-{'b' if host.site == 'a' else 'a'}").stop()
        assert not [p for p in place.snapshot(host.name)["processes"] if "delayline" in p]


def test_a_disk_of_its_own_and_its_end(place, lab):
    host = lab.hosts["h2"]
    host.run(f"mkdir -p ../{LAB}-disk")
    folder = host.root.parent / f"{LAB}-disk"
    before = place.snapshot("h2")
    made = as_root.call(host, disk.make, place=str(folder), disk={
        "size": 64 << 20, "read_ahead_kb": 16, "scheduler": "none"})
    device = made["device"].removeprefix("/dev/")
    said = host.run(f"cd {folder} && echo data > file && stat -f -c %T . && df -m --output=size . "
                    f"&& cat /sys/block/{device}/queue/read_ahead_kb /sys/block/{device}/loop/dio "
                    f"&& stat -c '%U %a' . ../{LAB}-disk.disk").stdout.split()
    assert said[0].startswith("ext") and 48 <= int(said[2]) <= 64
    assert said[3:] == ["16", "1", "op", "755", "root", "600"]
    entries = [json.loads(line) for line in host.run("cat ../journal").stdout.splitlines()]
    file, = {e["file"] for e in entries if e["made"] == disk.KIND}
    for _ in range(2):
        as_root.call(host, disk.undo, file=file)
    changed = [line for line in differences(before, place.snapshot("h2"))
               if "journal" not in line and as_root.ARCHIVE not in line]
    assert changed == []

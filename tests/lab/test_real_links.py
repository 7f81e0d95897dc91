"""Links and disks on hosts that are a user's own: what was asked is what packets meet, no more."""

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from foreign import differences, foreign_hosts
from small_labs import best_of, connect_ms, describe, new_id

from labbook.errors import InputError, LabError
from labbook.lab import Environment, Lab, Link
from labbook.lab.link import firewall

HERE = Path(__file__).parent
LAB = describe({"h1": ("a", {"quota": 0.5}), "h2": ("b", {}), "h3": ("b", {
    "disk": {"size": "64M", "iops": 50, "read_ahead_kb": 16, "scheduler": "none"}})},
    [{"between": ["a", "b"], "rtt_ms": 50}])


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["h1", "h2", "h3"]) as made:
        yield made


@pytest.fixture(scope="module")
def environment(place, tmp_path_factory):
    """h3 is reached through h1, at its data address: SSH from site to site."""
    data = place.addresses["h3"]["data"]
    file = place.environment(
        tmp_path_factory.mktemp("env") / "hosts.yml", allow=["limits", "shape", "disk"],
        hosts={"h1": {"site": "a"}, "h2": {"site": "b"},
               "h3": {"site": "b", "address": data, "shared_address": True, "jump": "h1"}})
    with open(file.parent / "foreign_known_hosts", "a") as known:
        known.write(f"{data} {place.keys['hosts']['h3']}\n")
    return file


@pytest.fixture(scope="module")
def lab(place, environment, tmp_path_factory):
    """Hosts are as they were when it and what came after it are down."""
    before = place.snapshots()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with Lab.up(LAB, Environment.load(environment), new_id()) as lab:
            yield lab
        after = place.snapshots()
    for name in before:     # the kernel's loop devices are also those of other tests' hosts
        changed = [line for line in differences(before[name], after[name])
                   if not line.startswith("loops:") or lab.id in line]
        assert changed == [], name


@pytest.fixture
def link(lab):
    link = Link(lab, "a", "b")
    yield link
    link.heal()
    link.shape()


def pings_back(lab, source="h1", target="h2"):
    output = lab.hosts[source].run(f"ping -q -c 3 -i 0.05 -W 0.5 {lab.hosts[target].address}",
                                   check=False).stdout
    return int(output.split(" received")[0].split()[-1])


def test_every_pair_of_hosts_is_as_far_apart_as_asked(lab):
    link, = lab.links()
    assert link.check()["measured_rtt_ms"] == pytest.approx(50, abs=2)
    for far in ("h2", "h3"):
        for ends in (("h1", far), (far, "h1")):
            near = best_of(3, lambda ends=ends: connect_ms(*(lab.hosts[e] for e in ends)),
                           lambda ms: abs(ms - 50) < 4)
            assert near == pytest.approx(50, abs=4), ends
    assert best_of(3, lambda: connect_ms(lab.hosts["h2"], lab.hosts["h3"]),
                   lambda ms: ms < 2) < 2, "one site"
    facts = link.facts()
    assert facts["means"] == "delay line" and set(facts["delay_lines"]) == {"h1", "h2", "h3"}


def test_a_delay_line_takes_nothing_of_its_host_s_share(lab):
    host = lab.hosts["h1"]
    line = host.process("delay-b")
    groups = host.run(f"cat /proc/{line.pid}/cgroup; echo and; cat /proc/self/cgroup").stdout
    of_line, of_host = groups.split("and\n")
    assert lab.id in of_host and lab.id not in of_line


def test_loss_and_jitter(link):
    link.shape(rtt_ms=20, jitter_ms=8, loss=0.05)
    found = link.check()
    assert 0 < found["measured_loss"] < 0.2 and found["measured_jitter_ms"] > 2


def test_tcp_is_not_slowed_down_beyond_the_delay(lab, link):
    """Held where they leave, packets would still be their socket's, and TCP would send no more."""
    link.shape(rtt_ms=50)
    server = lab.hosts["h2"].start("iperf3", "iperf3 -s --forceflush")
    lab.hosts["h2"].wait_for(lambda: "listening" in server.log_tail(), "iperf3", 20, server)
    report = lab.hosts["h1"].run(f"iperf3 -J -c {lab.hosts['h2'].address} -t 2 -O 1 -P 4").stdout
    server.stop()
    assert json.loads(report)["end"]["sum_received"]["bits_per_second"] > 100e6


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
    link.shape(rtt_ms=10_000)
    server = far.start("receive", f"{far.python} -c {shlex.quote(RECEIVE)}")
    far.wait_for(lambda: "bound" in server.log_tail(), "the receiver", 20, server)
    for word in ("cut-1", "cut-2", "cut-3"):    # each is held for five seconds, in which a busy machine may not look
        link.heal()
        near.run(SEND.format(word=word, python=near.python, to=far.address))
        link.cut()
        if (held := Link(lab, "a", "b").facts()["delay_lines"]["h2"]["held"]) == 1:
            break
    assert held == 1
    link.shape(rtt_ms=20)   # which lets go of what is held
    link.heal()
    near.run(SEND.format(word="healed", python=near.python, to=far.address))
    far.wait_for(lambda: "healed" in server.log_tail(), "the second packet", 20, server)
    assert word not in server.log_tail()
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
    others = f"PREROUTING -s 192.0.2.1 -j NFQUEUE --queue-num {firewall.ALL_QUEUES[0]}"
    lab.hosts["h1"].run("rm -f queue-b")
    place.inside("h1", f"iptables -t mangle -A {others}")
    before = place.snapshot("h1")["rules"]
    link.shape(rtt_ms=20)
    link.cut()
    assert place.inside("h1", "cat /proc/net/netfilter/nfnetlink_queue").split()[0] == str(
        firewall.ALL_QUEUES[1])
    link.heal()
    link.shape()
    assert place.snapshot("h1")["rules"] == before and link.check()["measured_rtt_ms"] < 2
    place.inside("h1", f"iptables -t mangle -D {others}")


def test_a_rate_is_refused_and_changes_nothing(link):
    link.shape(rtt_ms=20)
    with pytest.raises(InputError, match="rate_mbit: .*takes no rate"):
        link.shape(rate_mbit=10)
    assert link.asked["rtt_ms"] == 20


def test_a_disk_of_its_own(lab):
    host = lab.hosts["h3"]
    fields = host.run("echo data > file && stat -f -c %T . && df -m --output=size,source . && "
                      "stat -c '%U %a' . ../h3.disk && dd if=/dev/zero of=direct bs=4k count=50 "
                      "oflag=direct 2>&1 | sed -n 's/.*copied, //p'").stdout.split()
    assert fields[0].startswith("ext") and 48 <= int(fields[3]) <= 64
    queue = f"/sys/block/{fields[4].removeprefix('/dev/')}"
    assert host.run(f"cat {queue}/queue/read_ahead_kb {queue}/loop/dio").stdout.split() == ["16", "1"]
    assert fields[5:9] == ["op", "700", "root", "600"]
    assert float(fields[9]) > 0.5, "50 writes at 50 a second"


DRIVER = """
import sys, time
sys.path[:0] = [sys.argv[1]]
from test_real_links import LAB, Environment, Lab
lab = Lab.up(LAB, Environment.load(sys.argv[2]), sys.argv[3])
lab.link("a", "b").cut()
print("cut", flush=True)
time.sleep(1000)
"""


def test_what_a_killed_driver_left_is_undone_from_the_journals_alone(
        place, environment, tmp_path, monkeypatch, lab):
    """Whether all is as before is seen with the module's own lab, once both are gone."""
    lab.down()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    killed = new_id()
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, HERE, environment, killed],
                              stdout=subprocess.PIPE, text=True)
    assert driver.stdout.readline() == "cut\n"
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    found = place.snapshot("h3")
    assert "lb-" in str(found["rules"]) and "delayline" in str(found["processes"])
    assert killed in str(found["loops"])
    assert killed in Lab.sweep()
    assert killed not in str(place.snapshot("h3")["loops"])

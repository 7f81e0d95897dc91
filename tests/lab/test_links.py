"""Links of a local lab, measured: what was asked is what packets meet."""

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import small_labs
from small_labs import SUDO, best_of, describe, new_id

import labbook
from labbook.errors import InputError, LabError
from labbook.lab import Environment, Lab, Link
from labbook.lab.link.pings import Pings


@pytest.fixture(scope="module")
def lab():
    links = [{"between": ["a", "b"], "rtt_ms": 20}, {"between": ["b", "c"]}]
    hosts = {"ha": ("a", {}), "hb": ("b", {}), "hc": ("c", {})}
    with Lab.up(describe(hosts, links), Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture
def link(lab):
    link = lab.link("a", "b")
    yield link
    link.heal()
    link.shape()


def connect_ms(lab, source="ha", target="hb"):
    return small_labs.connect_ms(lab.host(source), lab.host(target))


def ping(lab, *options):
    return lab.host("ha").run(f"ping -n {' '.join(options)} {lab.host('hb').address}",
                              timeout=120, check=False).stdout


def megabits(lab, *options):
    """What iperf3 from ha to hb receives, Mbit/s."""
    report = lab.host("ha").run(f"iperf3 -J -c {lab.host('hb').address} {' '.join(options)}").stdout
    return json.loads(report)["end"]["sum_received"]["bits_per_second"] / 1e6


@pytest.fixture(scope="module")
def iperf(lab):
    process = lab.host("hb").start("iperf3", "iperf3 -s --forceflush")
    process.host.wait_for(lambda: "listening" in process.log_tail(), "iperf3", 20, process)
    yield
    process.stop()


def test_a_lab_comes_up_with_its_links_shaped(lab):
    first, second = lab.check_links()
    assert (first["asked_rtt_ms"], second["asked_rtt_ms"]) == (20, 0)
    assert second["measured_rtt_ms"] < 2


@pytest.mark.parametrize("rtt_ms", [5, 20, 100, 500])
def test_round_trips_within_two_percent_or_two_ms(lab, link, rtt_ms):
    link.shape(rtt_ms=rtt_ms)
    tolerance = max(2, 0.02 * rtt_ms)
    assert link.check()["measured_rtt_ms"] == pytest.approx(rtt_ms, abs=tolerance)
    near = best_of(3, lambda: connect_ms(lab), lambda ms: abs(ms - rtt_ms) <= 2 * tolerance)
    assert near == pytest.approx(rtt_ms, abs=2 * tolerance)


def test_the_other_link_and_the_control_path_are_left_alone(lab, link):
    link.shape(rtt_ms=500)
    assert best_of(3, lambda: connect_ms(lab, "hb", "hc"), lambda ms: ms < 2) < 2
    if link.facts()["means"] != "delay line":
        pytest.skip("this kernel has netem, which does not count")
    before = taken(link)
    lab.host("ha").run("true")
    assert taken(link) == before
    connect_ms(lab)
    assert all(now > count for now, count in zip(taken(link), before, strict=True))


def taken(link) -> list[int]:
    """Packets that each of its delay lines has delayed."""
    return [line["taken"] for line in link.facts()["delay_lines"].values()]


def test_100_mbit_at_50_ms_one_way(lab, link, iperf):
    link.shape(rtt_ms=100)
    rate = best_of(3, lambda: megabits(lab, "-t 5 -O 2 -P 4"), lambda rate: rate >= 100)
    assert rate >= 100
    assert link.check()["overflowed"] == 0


def test_a_rate_limit_with_delay(lab, link, iperf):
    link.shape(rtt_ms=20, rate_mbit=20)
    rate = best_of(3, lambda: megabits(lab, "-t 4 -O 1"), lambda rate: 17 < rate < 21)
    assert 17 < rate < 21
    link.shape(rate_mbit=50)
    rate = best_of(3, lambda: megabits(lab, "-t 4 -O 1"), lambda rate: 42 < rate < 52)
    assert 42 < rate < 52


def test_loss_is_what_was_asked_each_way(lab, link):
    link.shape(rtt_ms=10, loss=0.05)
    back = int(re.search(r"(\d+) received", ping(lab, "-q -c 1000 -i 0.002"))[1])
    expected, deviation = 1000 * 0.95 ** 2, (1000 * 0.9025 * 0.0975) ** 0.5
    assert abs(back - expected) < 4 * deviation
    assert link.check()["measured_loss"] > 0
    lines = link.facts()["delay_lines"]
    assert bool(lines) is (link.facts()["means"] == "delay line")
    assert all(line["lost_on_purpose"] > 0 for line in lines.values())


def times_of(pings: str) -> list[float]:
    return [float(ms) for ms in re.findall(r"time=([\d.]+) ms", pings)]


def spread_as_asked(times: list[float]) -> bool:
    """Whether round trips are 60 ms with a jitter of 20."""
    return (len(times) >= 99 and 40 <= min(times) < 52 and 68 < max(times) and statistics.quantiles(times)[2] < 82
            and statistics.stdev(times) == pytest.approx(20 / 6 ** 0.5, rel=0.35))


def test_jitter_spreads_round_trips_and_keeps_their_order(lab, link):
    link.shape(rtt_ms=60, jitter_ms=20)
    times = best_of(3, lambda: times_of(ping(lab, "-c 100 -i 0.025")), spread_as_asked)
    assert spread_as_asked(times), times
    dense = ping(lab, "-c 600 -i 0.002")
    numbers = [int(n) for n in re.findall(r"icmp_seq=(\d+)", dense)]
    assert numbers == sorted(numbers) and len(numbers) >= 598
    if link.facts()["means"] == "delay line":     # netem's mean grows
        assert statistics.median(times_of(dense)) == pytest.approx(60, abs=6)


def test_cut_and_heal(lab, link):
    link.shape(rtt_ms=20)
    link.cut()
    assert "100% packet loss" in ping(lab, "-c 3 -i 0.05 -W 0.5")
    report = link.check()
    assert report["cut"] and report["measured_rtt_ms"] is None and report["measured_loss"] == 1
    assert lab.host("hb").run("hostname").stdout.strip() == "hb"     # the control path stands
    assert lab.link("b", "c").check()["measured_rtt_ms"] < 2
    link.shape(rtt_ms=40)     # a new shape heals nothing
    assert link.check()["measured_loss"] == 1
    link.heal()
    link.heal()
    assert link.check()["measured_rtt_ms"] == pytest.approx(40, abs=2)


def test_a_cut_that_does_not_hold_is_an_error(lab, link):
    link.cut()
    for site in "ab":
        lab.routers[site].run("iptables -t mangle -F")
    with pytest.raises(LabError, match="yet pings come through"):
        link.check()


def test_a_link_that_is_not_what_was_asked_is_an_error(lab, link):
    link.shape(rtt_ms=20)
    lab.routers["a"].run("iptables -t mangle -F; tc qdisc del dev w-b root", check=False)
    with pytest.raises(LabError, match="ha to hb.*asked for a round trip of 20 ms, measured 1[0-4]"):
        link.check()


def test_a_local_link_with_a_delay_that_nobody_asked_for_is_an_error(link, monkeypatch):
    link.shape()
    monkeypatch.setattr(link, "_ping", lambda *_, **__: [("ha to hb", Pings(5, 5, 199, 200, 201))])
    with pytest.raises(LabError, match="asked for a round trip of 0 ms, measured 199"):
        link.check()


def test_without_its_delay_line_a_link_is_closed_until_shaped_again(lab, link):
    link.shape(rtt_ms=20)
    if link.facts()["means"] != "delay line":
        pytest.skip("this kernel has netem, which cannot die")
    lab.routers["b"].process("delay-w-a").kill()
    assert "100% packet loss" in ping(lab, "-c 3 -i 0.05 -W 0.5")
    with pytest.raises(LabError, match="delay line on router-b has ended"):
        link.check()
    link.shape(rtt_ms=20)
    assert link.check()["measured_rtt_ms"] == pytest.approx(20, abs=2)


def test_nothing_asked_leaves_no_rule_and_no_program(lab, link):
    link.shape(rtt_ms=20, loss=0.01, rate_mbit=10)
    link.shape()
    for site in "ab":
        router = lab.routers[site]
        assert "-A" not in router.run("iptables -t mangle -S").stdout
        assert "tbf" not in router.run("tc qdisc").stdout
        assert router.run("pgrep -f [d]elayline.py", check=False).exit_code == 1
    assert link.check()["measured_rtt_ms"] < 2


def test_wrong_values_change_nothing(link):
    link.shape(rtt_ms=20)
    with pytest.raises(InputError, match="rtt_ms: -1 .*0 to 10000 ms"):
        link.shape(rtt_ms=-1)
    assert link.asked["rtt_ms"] == 20
    assert link.check()["measured_rtt_ms"] == pytest.approx(20, abs=2)


def test_another_process_knows_what_was_asked(lab, link):
    link.shape(rtt_ms=30, rate_mbit=100)
    link.cut()
    again = Link(lab, "a", "b")
    assert again.asked == {"rtt_ms": 30, "jitter_ms": 0, "loss": 0, "rate_mbit": 100, "cut": True}
    again.heal()
    assert again.check()["measured_rtt_ms"] == pytest.approx(30, abs=2)


def test_what_another_process_asked_for_is_neither_overwritten_nor_reported_wrongly(lab, link):
    link.shape(rtt_ms=20)
    Link(lab, "a", "b").shape(rtt_ms=30)
    assert link.asked["rtt_ms"] == 30 and link.check()["measured_rtt_ms"] == pytest.approx(30, abs=2)
    Link(lab, "a", "b").cut()
    assert link.check()["cut"]
    link.shape(rtt_ms=40)
    assert Link(lab, "a", "b").asked == {**link.asked, "rtt_ms": 40, "cut": True}
    Link(lab, "a", "b").shape(rtt_ms=10)
    link.heal()
    assert link.check()["measured_rtt_ms"] == pytest.approx(10, abs=2)


TAKE_ALL = """
import socket, sys
server = socket.create_server((sys.argv[1], 4000))
print("listening", flush=True)
peer, _ = server.accept()
while peer.recv(65536):
    pass
"""
SEND = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 4000))
peer.sendall(bytes(int(sys.argv[2])))
peer.shutdown(socket.SHUT_WR)
peer.recv(1)
"""


@pytest.mark.parametrize("settings", [{}, {"rtt_ms": 20, "loss": 0.01, "rate_mbit": 50}])
def test_bytes_that_cross_are_counted_each_way(lab, link, settings):
    link.shape(**settings)
    sent, target = 10**6, lab.host("hb")
    server = target.start("taker", f"{target.python} -c '{TAKE_ALL}' {target.address}")
    target.wait_for(lambda: "listening" in server.log_tail(), "the taker", 20, server)
    before = link.traffic()
    lab.host("ha").run(f"{target.python} -c '{SEND}' {target.address} {sent}")
    after = Link(lab, "a", "b").traffic()
    there, back = ({key: after[way][key] - before[way][key] for key in ("bytes", "packets")}
                   for way in ("a>b", "b>a"))
    assert sent < there["bytes"] < 1.1 * sent
    assert 0 < back["bytes"] < sent / 10
    assert there["packets"] > sent / 2**16 and back["packets"] > 0


def test_what_a_cut_drops_has_not_crossed(lab, link):
    ping(lab, "-c 1")       # so that the hosts and routers have no need to ask for one another
    link.cut()
    before = link.traffic()
    ping(lab, "-c 3 -i 0.05 -s 1000 -W 0.2")
    assert link.traffic()["a>b"]["bytes"] - before["a>b"]["bytes"] < 1000


OVERFLOW = """
import socket, subprocess, sys
sys.path.insert(0, sys.argv[1])
from labbook.lab.link.on_host.delayline import Queue
for command in ("ip link set lo up", "iptables -A OUTPUT -o lo -j NFQUEUE --queue-num 5"):
    subprocess.run(command.split(), check=True)
queue = Queue(5, max_held=10)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(50):
    try:
        sender.sendto(b"x", ("127.0.0.1", 9))
    except PermissionError:     # how the kernel tells a local sender of the drop
        pass
print(*queue.counts())
"""


def test_a_full_queue_shows():
    lib = Path(labbook.__file__).parents[1]
    done = subprocess.run([*SUDO, "unshare", "--net", sys.executable, "-c", OVERFLOW, str(lib)],
                          capture_output=True, text=True)
    assert done.stdout.split() == ["10", "40", "0"], done.stderr

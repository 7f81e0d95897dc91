"""Command lines of a link's ends, and how its pings are judged."""

import math

import numpy
import pytest

from labbook.errors import InputError, LabError
from labbook.lab.link import shaping
from labbook.lab.link.pings import PINGS, Pings, ping_plan, rtt_tolerance_ms
from labbook.lab.link.shaping import Shape


@pytest.mark.parametrize("key, value", [
    ("rtt_ms", -1), ("rtt_ms", 20_000), ("rtt_ms", "100"), ("rtt_ms", None), ("rtt_ms", True),
    ("rtt_ms", math.nan), ("rtt_ms", math.inf), ("jitter_ms", -5), ("jitter_ms", 101),
    ("loss", 1), ("loss", -0.1), ("loss", 5), ("rate_mbit", 0), ("rate_mbit", -1),
    ("rate_mbit", 1e6),
])
def test_values_out_of_range_name_the_key_and_what_is_allowed(key, value):
    with pytest.raises(InputError) as error:
        Shape(**{"rtt_ms": 100, key: value})
    assert error.value.key == key and error.value.allowed == shaping.RANGES[key][2]


def test_numbers_of_a_data_frame_will_do():
    assert Shape(rtt_ms=numpy.int64(100), loss=numpy.float32(0)) == Shape(rtt_ms=100.0)


def test_nothing_asked_is_no_rule_at_all():
    for netem in (True, False):
        commands = shaping.set_up("w-b", Shape(), netem, 7)
        assert not [c for c in commands if " add " in c or " -A " in c or " -I " in c]


def test_delay_with_netem_is_half_at_either_end():
    commands = shaping.set_up("w-b", Shape(rtt_ms=101), True, 7)
    assert commands[-1] == "tc qdisc add dev w-b root handle 1: netem limit 500000 delay 50.5ms"
    assert not any("NFQUEUE" in c and " -A " in c for c in commands)


def test_everything_with_netem():
    shape = Shape(rtt_ms=100, jitter_ms=10, loss=0.01, rate_mbit=100)
    assert shaping.set_up("w-b", shape, True, 7)[-2:] == [
        "tc qdisc add dev w-b root handle 1: netem limit 500000 delay 50ms 5ms rate 100gbit loss 1%",
        "tc qdisc add dev w-b parent 1:1 handle 10: tbf rate 100000kbit burst 15000 latency 50ms"]


def test_delay_without_netem_goes_through_the_queue_and_fails_closed():
    rule, *qdiscs = shaping.set_up("w-b", Shape(rtt_ms=100), False, 7)
    assert rule.endswith("-A POSTROUTING -o w-b -j NFQUEUE --queue-num 7")
    assert "bypass" not in rule
    assert qdiscs == ["tc qdisc del dev w-b root 2> /dev/null || true"]


def test_rate_alone_needs_no_queue():
    commands = shaping.set_up("w-b", Shape(rate_mbit=1000), False, 7)
    assert commands[-1] == ("tc qdisc add dev w-b root handle 1: tbf rate 1000000kbit "
                            "burst 125000 latency 50ms")
    assert not any(" -A " in c for c in commands)


def test_the_delay_line_of_an_end():
    line = shaping.delay_line("/opt/my python", "/srv/d.py", 7, Shape(100, 10, 0.01), 42)
    assert line == ("'/opt/my python' -I -S /srv/d.py --queue=7 --delay-ms=50 --jitter-ms=5 "
                    "--loss=0.01 --seed=42")


def test_cut_and_heal_speak_of_the_same_packets_and_of_this_wire_only():
    made = [c.split(" -I ")[1] for c in shaping.cut("w-b")]
    unmade = [c.split(" -D ")[1].split(" 2>")[0] for c in shaping.heal("w-b")]
    assert made == unmade == ["PREROUTING -i w-b -j DROP", "POSTROUTING -o w-b -j DROP"]


SUMMARY = """PING 198.18.2.2 (198.18.2.2) 56(84) bytes of data.

--- 198.18.2.2 ping statistics ---
5 packets transmitted, {back} received, {lost}% packet loss, time 964ms
"""


def summary(back, *times):
    text = SUMMARY.format(back=back, lost=100 - 20 * back)
    return text + ("rtt min/avg/max/mdev = {}/{}/{}/0.041 ms\n".format(*times) if times else "")


def test_pings_that_busy_hosts_held_up_do_not_count():
    pings = Pings.parse(summary(5, 100.4, 108.4, 140.4))
    assert pings.rtt_ms(Shape(100)) == 100.4 and pings.jitter_ms == 20
    assert pings.deviation(Shape(rtt_ms=100)) is None
    assert pings.rtt_ms(Shape(100, jitter_ms=20)) == 108.4


@pytest.mark.parametrize("requested, mean, fine", [
    (5, 6.9, True), (5, 7.1, False), (5, 2.9, False), (100, 102, True), (100, 102.1, False),
    (500, 509, True), (500, 511, False), (0, 0.1, True),
])
def test_two_percent_or_two_ms_the_larger(requested, mean, fine):
    pings = Pings.parse(summary(5, mean, mean, mean))
    assert (pings.deviation(Shape(rtt_ms=requested)) is None) is fine


def test_lost_pings():
    assert Pings.parse(summary(4, 9, 10, 11)).deviation(Shape(10)) is None     # chance
    assert "lost 2 of 5" in Pings.parse(summary(3, 9, 10, 11)).deviation(Shape(10))
    assert "none of 5" in Pings.parse(summary(0)).deviation(Shape(10))
    assert Pings(200, 196, 10, 10, 10).deviation(Shape(10, loss=0.01)) is None
    assert "loss of 0.1" in Pings(200, 200, 10, 10, 10).deviation(Shape(10, loss=0.1))
    assert Pings(200, 128, 10, 10, 10).loss == pytest.approx(0.2)


def test_missing_jitter_is_noticed():
    assert "jitter" in Pings(40, 40, 100, 100.2, 100.5).deviation(Shape(100, jitter_ms=20))
    assert Pings(40, 40, 83, 100, 117).deviation(Shape(100, jitter_ms=20)) is None


def test_a_ping_that_cannot_run_is_the_place_s_fault():
    with pytest.raises(LabError, match="Operation not permitted"):
        Pings.parse("", "ping: socket: Operation not permitted")


def test_pings_are_further_apart_than_jitter_is_wide():
    assert ping_plan(Shape(100))[0] == PINGS
    for shape in (Shape(100, 50), Shape(1000, 800), Shape(100, 50, 0.1)):
        count, interval_s = ping_plan(shape)
        assert interval_s >= shape.jitter_ms / 1e3 and PINGS <= count
        assert count * interval_s <= max(3.0, PINGS * interval_s)
    assert rtt_tolerance_ms(Shape(100, 50), 40) > rtt_tolerance_ms(Shape(100), 40) == 2

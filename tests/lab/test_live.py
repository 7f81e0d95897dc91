"""A lab that is up, from the shell of another process: exec, capture, link, cut and heal."""

import os
import struct
import subprocess
import sys
import time

import pytest
from small_labs import best_of, describe, new_id

from labbook.lab import Environment, Lab
from labbook.lab.capture import Capture
from labbook.lab.link.pings import Pings

PCAP = (0xA1B2C3D4, 0xA1B23C4D)     # in µs or ns
ICMP, ETHERNET = 1, 14


@pytest.fixture(scope="module")
def lab():
    """Two sites, kept up; nobody owns it."""
    description = describe({"h1": ("a", {}), "h2": ("b", {}), "other": ("b", {})}, [{"between": ["a", "b"]}])
    made = Lab.up(description, Environment("local"), new_id(), keep=True)
    yield made
    made.down()


def labbook(lab, command, *words, code=0):
    done = subprocess.run([sys.executable, "-m", "labbook.cli", command, "--lab", lab.id, *words], text=True, timeout=60,
                          env=os.environ, capture_output=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stdout + done.stderr


def ping(lab, count=5) -> Pings:
    done = lab.host("h1").run(f"LC_ALL=C ping -q -n -c {count} -i 0.05 -W 0.3 {lab.host('h2').address}", check=False)
    return Pings.parse(done.stdout, done.stderr)


def protocols(file) -> list[int]:
    """Protocol numbers of the IPv4 packets in a pcap file."""
    data, found, at = file.read_bytes(), [], 24
    assert not data or struct.unpack("<I", data[:4])[0] in PCAP
    while at + 16 <= len(data):
        length = struct.unpack("<I", data[at + 8:at + 12])[0]
        frame = data[at + 16:at + 16 + length]
        if len(frame) < length:
            break   # not yet written as a whole
        found += [frame[ETHERNET + 9]] * (frame[12:14] == b"\x08\x00")
        at += 16 + length
    return found


def test_exec_runs_on_the_hosts_that_a_pattern_fits(lab):
    assert sorted(labbook(lab, "exec", "h*", "hostname; true").splitlines()) == ["h1  h1", "h2  h2"]
    assert labbook(lab, "exec", "*", "test $(hostname) != h2 || exit 7", code=7) == ""
    assert "allowed: h1, h2, other" in labbook(lab, "exec", "db*", "true", code=2)


def test_link_cut_and_heal_change_what_ping_sees(lab):
    assert "round trip 60 ms" in labbook(lab, "link", "a", "b", "--rtt", "60")
    assert ping(lab).least_ms >= 59
    labbook(lab, "cut", "b", "a")
    assert ping(lab).loss == 1
    assert "cut; round trip 60 ms" in labbook(lab, "link", "a", "b")
    assert labbook(lab, "heal") == "a-b: round trip 60 ms\n"
    assert best_of(5, lambda: ping(lab).loss, lambda loss: loss == 0) == 0


def test_a_lab_that_another_process_uses_is_not_changed(lab):
    lab._ownership.require()
    try:
        assert "in use by process" in labbook(lab, "cut", "a", "b", code=1)
    finally:
        lab._ownership.release()


def test_capture_takes_the_pings_that_the_filter_lets_through(lab, tmp_path):
    with Capture(lab, "h1", tmp_path / "pings.pcap", link="b", expression="icmp") as taken:
        ping(lab, 3)
        lab.host("h1").run(f"ping -c 1 {lab.host('h1').address}")
        until = time.monotonic() + 20
        while len(protocols(taken.file)) < 6 and time.monotonic() < until:
            time.sleep(0.02)
    assert taken.packets == 6 and protocols(tmp_path / "pings.pcap") == [ICMP] * 6


def test_capture_from_the_shell_ends_after_its_seconds(lab, tmp_path):
    pings = lab.host("h1").start("pings", f"ping -q -n -i 0.05 {lab.host('h2').address}")
    try:
        output = labbook(lab, "capture", "h2", "--seconds", "0.5", "-o", str(tmp_path / "x.pcap"))
    finally:
        pings.stop()
    assert "packets in" in output and ICMP in protocols(tmp_path / "x.pcap")
    assert "filter" in labbook(lab, "capture", "h2", "--filter", "nonsense here", "-o", str(tmp_path / "y"), code=2)

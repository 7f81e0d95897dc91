"""The delay line's schedule, and that its program needs Python alone."""

import struct
import subprocess
import sys
from types import SimpleNamespace

import pytest

from labbook.lab.link.on_host import delayline
from labbook.lab.link.on_host.delayline import ACCEPT, DROP, Schedule


def arrivals(schedule, times):
    for packet, at in enumerate(times, start=1):
        schedule.arrive(packet, at)


def fate(schedule, packets, step=0.001, until=2.0):
    """When each packet was let go; None for a lost one. Packets have ids from 1 up."""
    at, gone, upto = 0.0, {}, 0
    while at < until:
        for packet, verdict in schedule.release(at):
            if verdict == DROP:
                gone[packet], upto = None, packet
                continue
            gone |= {p: at for p in range(upto + 1, packet + 1)}
            upto = packet
        at += step
    return [gone[p] for p in range(1, packets + 1)]


def test_a_packet_goes_when_its_delay_is_over_and_not_before():
    schedule = Schedule(0.050)
    schedule.arrive(1, 10.0)
    assert schedule.next_due() == pytest.approx(10.050)
    assert schedule.release(10.0499) == []
    assert schedule.release(10.0501) == [(1, ACCEPT)]
    assert schedule.next_due() is None


def test_one_verdict_speaks_for_all_packets_that_are_due():
    schedule = Schedule(0.050)
    arrivals(schedule, [1.0, 1.001, 1.002])
    assert schedule.release(1.0515) == [(2, ACCEPT)]
    assert schedule.release(1.0525) == [(3, ACCEPT)]


def test_packets_that_come_together_go_together():
    schedule = Schedule(0.050)
    arrivals(schedule, [1.0, 1.0 + delayline.TOGETHER_S / 2])
    assert schedule.release(1.0501) == [(2, ACCEPT)]


def test_the_time_that_packets_share_does_not_creep_on():
    schedule = Schedule(0.050)
    arrivals(schedule, [1.0 + i * delayline.TOGETHER_S / 2 for i in range(1000)])
    (packet, _), = schedule.release(1.0501)
    assert packet == pytest.approx(10, abs=3)      # 0.1 ms of them, ten microseconds apart


def test_jitter_stays_within_its_bounds_and_uses_them():
    schedule = Schedule(0.100, jitter_s=0.020, seed=1)
    times = [i * 0.05 for i in range(400)]     # further apart than the jitter is wide
    arrivals(schedule, times)
    delays = [out - at for out, at in zip(fate(schedule, 400, until=21), times)]
    assert 0.079 <= min(delays) < 0.083 and 0.117 < max(delays) <= 0.122
    assert sum(delays) / 400 == pytest.approx(0.100, abs=0.003)


@pytest.mark.parametrize("gap_s", [0.0002, 0.002, 0.01, 0.1])
def test_jitter_leaves_the_mean_as_it_is_however_dense_the_packets(gap_s):
    """With a value for each packet, kept in order, 25 ± 5 ms had a mean of 28.4 ms at 5000 packets/s."""
    schedule, dues, times = Schedule(0.025, jitter_s=0.005, seed=4), [], [i * gap_s for i in range(20_000)]
    for packet, at in enumerate(times, start=1):
        schedule.arrive(packet, at)
        dues.append(schedule._held[-1][0])
    delays = [due - at for due, at in zip(dues, times)]
    assert dues == sorted(dues)
    assert 0.020 <= min(delays) < 0.0215 and 0.0285 < max(delays) <= 0.030 + 1e-9
    assert sum(delays) / len(delays) == pytest.approx(0.025, abs=0.0003)


def test_jitter_keeps_the_order():
    schedule = Schedule(0.100, jitter_s=0.050, seed=2)
    arrivals(schedule, [i * 0.001 for i in range(500)])
    out = fate(schedule, 500)
    assert out == sorted(out)


def test_loss_is_the_share_asked_for_and_the_seed_repeats_it():
    def lost(seed):
        schedule = Schedule(0.010, loss=0.05, seed=seed)
        arrivals(schedule, [i * 0.0001 for i in range(10_000)])
        return [i for i, out in enumerate(fate(schedule, 10_000)) if out is None]

    assert 400 < len(lost(7)) < 600
    assert lost(7) == lost(7) != lost(8)


def test_let_go_releases_everything_but_what_is_lost():
    schedule = Schedule(5.0, loss=0.5, seed=3)
    arrivals(schedule, [0.0] * 50)
    verdicts = schedule.release(float("inf"))
    assert {verdict for _, verdict in verdicts} == {ACCEPT, DROP} and schedule.next_due() is None


def test_the_program_runs_on_bare_python():
    program = [sys.executable, "-I", "-S", delayline.__file__]
    done = subprocess.run([*program, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--queue" in done.stdout


def test_a_verdict_on_the_wire():
    """struct nlmsghdr, struct nfgenmsg (queue in network order), NFQA_VERDICT_HDR."""
    header = delayline._attribute(2, bytes(8))
    message = delayline._message(delayline._VERDICT, 258, header)
    assert len(message) == 16 + 4 + 4 + 8
    assert int.from_bytes(message[:4], sys.byteorder) == len(message)
    assert int.from_bytes(message[4:6], sys.byteorder) == 0x0301
    assert message[18:20] == b"\x01\x02"


def test_a_packet_that_comes_before_the_kernels_answer_is_no_answer():
    def message(kind, code=0):
        return struct.pack("=IHHIIi", 20, kind, 0, 0, 0, code)

    queue, sent = delayline.Queue.__new__(delayline.Queue), []
    queue.number, answers = 5, [message(delayline._PACKET, 77), message(delayline._ERROR)]
    queue.socket = SimpleNamespace(send=sent.append, recv=lambda size: answers.pop(0))
    queue._config(b"")
    assert len(sent) == 1 and not answers
    answers.append(message(delayline._ERROR, -1))
    with pytest.raises(OSError, match="queue 5: Operation not permitted"):
        queue._config(b"")

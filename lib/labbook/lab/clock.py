"""Offsets between the clocks of hosts and this machine's clock."""

import time
from collections.abc import Callable
from typing import NamedTuple

ROUNDS = 3


class Offset(NamedTuple):
    """Seconds that a clock is ahead of this machine's, and the largest error of that either way."""

    offset_s: float
    uncertainty_s: float


def measure(ask: Callable[[], float], rounds: int = ROUNDS) -> Offset:
    """The offset of the clock that `ask()` reads, in seconds since the epoch.

    Of a few round trips the shortest counts; its middle is uncertain by half its length.
    """
    return min((_one_round(ask) for _ in range(rounds)), key=lambda offset: offset.uncertainty_s)


def host_offset(host, rounds: int = ROUNDS) -> Offset:
    """The offset of a host's clock. Hosts that a lab made have this machine's."""
    if not host.is_remote:
        return Offset(0.0, 0.0)
    return measure(lambda: float(host.run("date +%s.%N").stdout), rounds)


def ahead_s(host) -> float:
    """Seconds that a host's clock is ahead of this machine's."""
    return host_offset(host).offset_s


def _one_round(ask) -> Offset:
    before = time.time()
    there = ask()
    half = (time.time() - before) / 2
    return Offset(there - before - half, half)

"""This machine's clock for moments whose differences are measured, and offsets of hosts' clocks."""

import time
from collections.abc import Callable
from typing import NamedTuple

ROUNDS = 3
SET_SECONDS = 1e-3  # between this machine's two clocks: less is the time to read both
DRIFT = 50e-6       # seconds in a second by which another machine's clock may leave this one's
starts = []     # when loads began since `anchor`, seconds since the epoch: for drawing, no result has them
_ahead = time.time() - time.monotonic()     # of the clock over the monotonic one, when last anchored


def now() -> float:
    """Seconds since the epoch. Differences of two moments are lengths also if the machine's clock was
    set in between, since the clock is read only in `anchor`."""
    return time.monotonic() + _ahead


def anchor() -> None:
    """Let `now` follow the machine's clock again; called as a point begins."""
    global _ahead
    starts.clear()
    _ahead = time.time() - time.monotonic()


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
    """The offset of a host's clock over `now`. Hosts that a lab made have this machine's."""
    if not host.is_remote:
        was_set = time.time() - now()       # since `anchor`; their programs read the clock as it is
        return Offset(was_set if abs(was_set) > SET_SECONDS else 0.0, 0.0)
    return measure(lambda: float(host.run("date +%s.%N").stdout), rounds)


def ahead_s(host) -> float:
    """Seconds that a host's clock is ahead of `now`."""
    return host_offset(host).offset_s


def _one_round(ask) -> Offset:
    before = now()
    there = ask()
    half = (now() - before) / 2
    return Offset(there - before - half, half)

"""Whether servers' clocks go right. A server's programs time themselves by its clock, and an emulated processor's
clock may go several times too fast: its kernel measures the rate of a counter once, while it boots."""

import time
from dataclasses import dataclass

from labbook.errors import SystemFailure

TOLERANCE = 0.02
READ = "cat /proc/uptime"


@dataclass(frozen=True)
class Reading:
    """A server's clock at a time of ours, both in seconds; `within`: how exact the time is."""

    theirs: float
    ours: float
    within: float


class Clocks:
    """Of machines inside servers, from now on; the bare node's is ours."""

    def __init__(self, machines):
        self._begun = [(machine, _read(machine)) for machine in machines if not machine.here]

    def check(self) -> None:
        """SystemFailure if one went faster or slower than ours since then, beyond what the readings leave open."""
        for machine, begun in self._begun:
            now = _read(machine)
            passed = now.ours - begun.ours
            rate = (now.theirs - begun.theirs) / passed
            if abs(rate - 1) > TOLERANCE + (begun.within + now.within) / passed:
                raise SystemFailure(f"{machine.name}'s clock goes {rate:.3g} times as fast as this machine's, so that "
                                    "its programs' times mean nothing")


def _read(machine) -> Reading:
    before = time.monotonic()
    theirs = float(machine.run(READ).stdout.split()[0])
    after = time.monotonic()
    return Reading(theirs, (before + after) / 2, (after - before) / 2)

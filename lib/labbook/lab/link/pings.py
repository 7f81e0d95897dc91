"""Pings through a link, compared with its settings."""

import re
from dataclasses import dataclass

from labbook.errors import LabError
from labbook.lab.link.shaping import Shape

# Tolerance of the round trip: 2 % or 2 ms, whichever is larger.
RTT_TOLERANCE, RTT_TOLERANCE_MS = 0.02, 2.0
# Standard errors that a mean or a share of lost pings may deviate by chance.
STANDARD_ERRORS = 4
# This many pings almost certainly show at least this share of the jitter.
ENOUGH_FOR_JITTER, LEAST_JITTER = 20, 0.25
LOST_BY_CHANCE = 1     # pings of a check that may get lost on any link

PINGS, PINGS_FOR_JITTER, PINGS_FOR_LOSS = 10, 40, 200
PING_INTERVAL_S = 0.01
PING_MOST_SECONDS = 3  # of sending, however wide the intervals


@dataclass(frozen=True)
class Pings:
    """A series of pings: how many were sent and came back, their round trips in ms."""

    sent: int
    back: int
    least_ms: float | None = None
    mean_ms: float | None = None
    most_ms: float | None = None

    @classmethod
    def parse(cls, output: str, complaint: str = "") -> "Pings":
        """Parse ping's summary. LabError when ping could not send."""
        counts = re.search(r"(\d+) packets transmitted, (\d+) received", output)
        if not counts:
            raise LabError(f"ping did not run: {(complaint or output).strip()[-300:]}")
        times = re.search(r"min/avg/max/mdev = ([\d.]+)/([\d.]+)/([\d.]+)", output)
        return cls(*map(int, counts.groups()), *map(float, times.groups() if times else ()))

    def rtt_ms(self, shape: Shape) -> float | None:
        """The shortest round trip: busy hosts delay pings, but only the link can make one too fast.
        The mean when jitter is asked for."""
        return self.mean_ms if shape.jitter_ms else self.least_ms

    @property
    def jitter_ms(self) -> float | None:
        """Half of the range of round trips."""
        return round((self.most_ms - self.least_ms) / 2, 3) if self.back else None

    @property
    def loss(self) -> float:
        """Share lost each way, assuming both ways lose the same."""
        return round(1 - (self.back / self.sent) ** 0.5, 4)

    def strays(self, shape: Shape) -> float:
        """Deviation of the round trip in ms, to compare pairs; infinite when no ping came back."""
        return abs(self.rtt_ms(shape) - shape.rtt_ms) if self.back else float("inf")

    def deviation(self, shape: Shape, any_delay: bool = False) -> str | None:
        """A sentence about what is not as asked; None when everything is. any_delay: the round trip may be any."""
        if not self.back:
            return f"none of {self.sent} pings came back"
        rtt_ms = self.rtt_ms(shape)
        if not any_delay and abs(rtt_ms - shape.rtt_ms) > rtt_tolerance_ms(shape, self.back):
            return f"asked for a round trip of {shape.rtt_ms:g} ms, measured {rtt_ms:g} ms"
        if self.back >= ENOUGH_FOR_JITTER and self.jitter_ms < LEAST_JITTER * shape.jitter_ms:
            return f"asked for a jitter of {shape.jitter_ms:g} ms, measured {self.jitter_ms:g} ms"
        lost, back_share = self.sent - self.back, (1 - shape.loss) ** 2
        spread = STANDARD_ERRORS * (self.sent * back_share * (1 - back_share)) ** 0.5
        if abs(lost - self.sent * (1 - back_share)) > spread + LOST_BY_CHANCE:
            return f"asked for a loss of {shape.loss:g} each way, lost {lost} of {self.sent} pings"
        return None


def rtt_tolerance_ms(shape: Shape, pings: int) -> float:
    """How far the mean of this many pings may lie from the round trip asked for."""
    # Jitter is the sum of two halves. By netem each is uniform and pings are independent: the standard
    # deviation is jitter/sqrt(6). By the delay line it is jitter/3, and at ping_plan's interval one
    # ping's depends on the last one's, which together gives the mean the same standard error.
    chance = STANDARD_ERRORS * shape.jitter_ms / (6 * pings) ** 0.5
    return max(RTT_TOLERANCE_MS, RTT_TOLERANCE * shape.rtt_ms) + chance


def ping_plan(shape: Shape) -> tuple[int, float]:
    """(number of pings, seconds between them): more pings where loss or jitter is random."""
    if shape.loss:
        count = PINGS_FOR_LOSS
    else:
        count = PINGS_FOR_JITTER if shape.jitter_ms else PINGS
    # At shorter intervals than the jitter, pings would depend on each other, and by netem delay each
    # other to keep their order.
    interval_s = max(PING_INTERVAL_S, shape.jitter_ms / 1e3)
    return max(PINGS, min(count, int(PING_MOST_SECONDS / interval_s))), interval_s

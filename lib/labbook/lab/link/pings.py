"""Pings through a link, and whether they met what was asked of it."""

import re
from dataclasses import dataclass

from labbook.errors import LabError
from labbook.lab.link.shaping import Shape

# A link is what was asked when its round trip lies this near: 2 % or 2 ms, the larger.
RTT_TOLERANCE, RTT_TOLERANCE_MS = 0.02, 2.0
# Chance adds to it: standard errors that a mean or a share of lost pings may be off by.
STANDARD_ERRORS = 4
# So many pings with jitter stray, by all but certain chance, by this share of it at least.
ENOUGH_FOR_JITTER, LEAST_JITTER = 20, 0.25
LOST_BY_CHANCE = 1     # pings of a check that may go missing without being asked to

PINGS, PINGS_FOR_JITTER, PINGS_FOR_LOSS = 10, 40, 200
PING_INTERVAL_S = 0.01
PING_MOST_SECONDS = 3  # of sending, also where jitter asks for wide intervals


@dataclass(frozen=True)
class Pings:
    """A series of pings: how many were sent and came back, their round trips in ms."""

    sent: int
    back: int
    least_ms: float | None = None
    mean_ms: float | None = None
    most_ms: float | None = None

    @classmethod
    def read(cls, output: str, complaint: str = "") -> "Pings":
        """From ping's summary. LabError when it could not send."""
        counts = re.search(r"(\d+) packets transmitted, (\d+) received", output)
        if not counts:
            raise LabError(f"ping did not run: {(complaint or output).strip()[-300:]}")
        times = re.search(r"min/avg/max/mdev = ([\d.]+)/([\d.]+)/([\d.]+)", output)
        return cls(*map(int, counts.groups()), *map(float, times.groups() if times else ()))

    def rtt_ms(self, asked: Shape) -> float | None:
        """The shortest round trip: busy hosts hold pings up, which is not the link's doing, and
        nothing lets one through too early but the link. The mean where jitter is asked for."""
        return self.mean_ms if asked.jitter_ms else self.least_ms

    @property
    def jitter_ms(self) -> float | None:
        """How far the round trip strays to either side."""
        return round((self.most_ms - self.least_ms) / 2, 3) if self.back else None

    @property
    def loss(self) -> float:
        """Share lost each way, when both ways lose alike."""
        return round(1 - (self.back / self.sent) ** 0.5, 4)

    def strays(self, asked: Shape) -> float:
        """How far from what was asked, to compare pairs by: beyond all others with no ping back."""
        return abs(self.rtt_ms(asked) - asked.rtt_ms) if self.back else float("inf")

    def deviation(self, asked: Shape) -> str | None:
        """What is not as asked, in words; None when all is."""
        if not self.back:
            return f"none of {self.sent} pings came back"
        rtt_ms = self.rtt_ms(asked)
        if abs(rtt_ms - asked.rtt_ms) > rtt_tolerance_ms(asked, self.back):
            return f"asked for a round trip of {asked.rtt_ms:g} ms, measured {rtt_ms:g} ms"
        if self.back >= ENOUGH_FOR_JITTER and self.jitter_ms < LEAST_JITTER * asked.jitter_ms:
            return f"asked for a jitter of {asked.jitter_ms:g} ms, measured {self.jitter_ms:g} ms"
        lost, kept = self.sent - self.back, (1 - asked.loss) ** 2
        spread = STANDARD_ERRORS * (self.sent * kept * (1 - kept)) ** 0.5
        if abs(lost - self.sent * (1 - kept)) > spread + LOST_BY_CHANCE:
            return f"asked for a loss of {asked.loss:g} each way, lost {lost} of {self.sent} pings"
        return None


def rtt_tolerance_ms(asked: Shape, pings: int) -> float:
    """How far the mean of so many pings may lie from the round trip asked for."""
    # Jitter is the sum of two uniform halves: its standard deviation is jitter/sqrt(6).
    chance = STANDARD_ERRORS * asked.jitter_ms / (6 * pings) ** 0.5
    return max(RTT_TOLERANCE_MS, RTT_TOLERANCE * asked.rtt_ms) + chance


def ping_plan(asked: Shape) -> tuple[int, float]:
    """How many pings and seconds between them: more for what is left to chance."""
    if asked.loss:
        count = PINGS_FOR_LOSS
    else:
        count = PINGS_FOR_JITTER if asked.jitter_ms else PINGS
    # Nearer together than the jitter is wide, pings would push each other back to keep the order.
    interval_s = max(PING_INTERVAL_S, asked.jitter_ms / 1e3)
    return max(PINGS, min(count, int(PING_MOST_SECONDS / interval_s))), interval_s

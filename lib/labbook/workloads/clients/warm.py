"""Warm a system until a measure is stable."""

import time
from dataclasses import dataclass

WITHIN = 0.05       # change from round to round below which a measure is stable
IN_A_ROW = 2        # such changes, since a single one may be chance
MOST_ROUNDS, MOST_SECONDS = 20, 60.0


@dataclass(frozen=True)
class Warmth:
    """What warming took, and whether the measure was stable in the end. `last`: its last values."""

    rounds: int
    seconds: float
    stable: bool
    last: dict

    @property
    def metrics(self) -> dict:
        """For the point's record."""
        return {"warm_rounds": self.rounds, "warm_seconds": self.seconds, "warm_stable": self.stable}


def until_stable(round_of_load, *, within: float = WITHIN, most_rounds: int = MOST_ROUNDS,
                 most_seconds: float = MOST_SECONDS) -> Warmth:
    """Repeat a round until its measures are stable: until each changed by less than `within` from round
    to round, IN_A_ROW times in a row. Ends after `most_rounds`, or with the round in which
    `most_seconds` have passed.

    round_of_load: function without arguments that makes a load and returns a measure of it, such as the
    server's CPU of a request, or a dict of several. With no rounds nothing is warmed, nor stable.
    """
    began, before, steady, rounds = time.monotonic(), {}, 0, 0
    while rounds < most_rounds and steady < IN_A_ROW and time.monotonic() - began < most_seconds:
        found = round_of_load()
        now = found if isinstance(found, dict) else {"measure": found}
        steady = steady + 1 if _near(before, now, within) else 0
        before, rounds = now, rounds + 1
    return Warmth(rounds, time.monotonic() - began, steady >= IN_A_ROW, before)


def _near(before: dict, now: dict, within: float) -> bool:
    """Whether all measures changed by less than `within` of the greater value."""
    return before.keys() == now.keys() and all(
        abs(now[name] - before[name]) < within * max(abs(now[name]), abs(before[name])) or now[name] == before[name]
        for name in now)

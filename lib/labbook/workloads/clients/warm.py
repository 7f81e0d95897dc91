"""Warm a system until what its requests cost no longer falls."""

import time
from dataclasses import dataclass

WITHIN = 0.05       # fall from round to round below which a cost is stable
MOST_ROUNDS, MOST_SECONDS = 20, 60.0


@dataclass(frozen=True)
class Warmth:
    """What warming took, and whether the costs were stable in the end. `costs`: those of each round."""

    rounds: int
    seconds: float
    stable: bool
    costs: list[dict]

    @property
    def metrics(self) -> dict:
        """For the point's record."""
        return {"warmed_rounds": self.rounds, "warmed_seconds": self.seconds, "warmed_stable": float(self.stable)}

    def __add__(self, other: "Warmth") -> "Warmth":
        """One warming after another, as one; stable if both are."""
        return Warmth(self.rounds + other.rounds, self.seconds + other.seconds, self.stable and other.stable,
                      self.costs + other.costs)


def until_stable(round_of_load, *, within: float = WITHIN, in_a_row: int = 1, most_rounds: int = MOST_ROUNDS,
                 most_seconds: float = MOST_SECONDS) -> Warmth:
    """Repeat a round until no cost falls by `within` or more from round to round, `in_a_row` times in a row.

    A cost that rises is noise: no server is the colder for being called. Ends after `most_rounds`, or with
    the round in which `most_seconds` have passed.

    round_of_load: function without arguments that makes a load and returns its costs by name, such as the
    servers' CPU of a read and of a write. With no rounds nothing is warmed, nor stable.
    """
    began, costs, steady = time.monotonic(), [], 0
    while len(costs) < most_rounds and steady < in_a_row and time.monotonic() - began < most_seconds:
        costs.append(round_of_load())
        steady = steady + 1 if len(costs) > 1 and _no_longer_falls(*costs[-2:], within) else 0
    return Warmth(len(costs), time.monotonic() - began, steady >= in_a_row, costs)


def _no_longer_falls(before: dict, now: dict, within: float) -> bool:
    return all(now[name] == before[name] or now[name] > (1 - within) * before[name] for name in now)

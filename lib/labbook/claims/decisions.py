"""Decide by numbers: where the interval of their median lies, or how often something was seen.

No verdict has a level below 95 % over all looks. Of what is open, the *tendency* says where the
repeats so far point, with the level of that: the highest at which an interval between two of them,
without regard to looks, would decide.
"""

import math
from dataclasses import dataclass, replace

from labbook.claims.bounds import highest, lowest
from labbook.claims.looks import LOOKS, OUTLYING, interval, look_needed, spent
from labbook.claims.statistics import LEVEL, Interval, coverage, lies_within, median_interval, middle, share_interval

REPLICATED, NOT_REPLICATED, OPEN = "replicated", "not replicated", "open"
DECIDED = (REPLICATED, NOT_REPLICATED)
NOT_TESTABLE, NOT_RUN = "not testable here", "not run"
BY_SIGHT = ("always", "sometimes")     # rules that use every point, also of incomplete settings
JUDGED = (REPLICATED, NOT_REPLICATED, OPEN)
LEAST_TENDENCY = 0.75   # three repeats on one side of a bound
CHOOSING = 2            # repeats that choose what `differs_over` compares
RATE = 0.1              # of repeats: what is seen in fewer counts as never, see seldom()
NEAR_1 = 0.8, 1.25      # ratios between these have three decimals


@dataclass(frozen=True)
class Outcome:
    """`interval`, in `unit`, is None where no number could be computed. Of an open claim, `tendency` is
    None or {"verdict": ..., "level": ...}, and `repeats_needed` the number of repeats at which a verdict
    is expected, None where none is up to the last look. A claim that is not testable by one or two repeats has
    `repeats_needed`, too: further repeats may test it."""

    verdict: str
    reason: str
    interval: Interval | None = None
    unit: str = ""
    tendency: dict | None = None
    repeats_needed: int | None = None


def by_median(numbers, low, high, unit, symmetric=False, bounds=(), outlying=OUTLYING) -> Outcome:
    """Where the median of the numbers, one a repeat in their order, lies: between low and high or not.

    bounds: see labbook.claims.bounds, one a number; empty: all are exact. outlying: the looks' table.
    """
    found = interval(numbers, symmetric, outlying, bounds)
    estimate = found or _between(numbers, bounds, median_interval(numbers).level)
    within = None if found is None else lies_within(estimate.low, estimate.high, low, high)
    if within is not None:
        text = (f"the whole interval lies {where(low, high, unit)}" if within else
                f"the claim needs a value {where(low, high, unit)}; the whole interval lies "
                f"{_beyond(estimate, low, high)}")
        by_ranks = ", by signed ranks: log ratios are taken to be symmetric" if symmetric else ""
        return Outcome(REPLICATED if within else NOT_REPLICATED, f"{text}{by_ranks}", estimate, unit)
    reason = too_few(len(numbers)) if found is None else f"only a part of the interval lies {where(low, high, unit)}"
    return Outcome(OPEN, reason, estimate, unit, tendency(numbers, low, high, bounds),
                   look_needed(numbers, low, high, symmetric, bounds, outlying))


def _beyond(estimate, low, high) -> str:
    """On which side of the bounds an interval lies of which no part is between them."""
    return "above it" if low == -math.inf else "below it" if high == math.inf else (
        "below these" if estimate.high <= low else "above these")


def _between(numbers, bounds, level, inward=0) -> Interval:
    """The median and the interval between the numbers so many inward from the ends."""
    return Interval(middle(sorted(numbers)), sorted(lowest(numbers, bounds))[inward],
                    sorted(highest(numbers, bounds))[-1 - inward], level, len(numbers))


def by_equality(numbers, low, high, unit, symmetric=False, bounds=()) -> Outcome:
    """Whether a ratio is equal within a margin. The reason says the difference where there is one."""
    found = by_median(numbers, low, high, unit, symmetric, bounds)
    if len(numbers) < LOOKS[0] or found.interval.low <= 1 <= found.interval.high or any(bounds):
        return found
    ends = f"{ratio_text(found.interval.low)} to {ratio_text(found.interval.high)} times"
    reasons = {REPLICATED: f"a difference, {ends}, and equal within the margin: {found.reason}",
               NOT_REPLICATED: f"different by {ends}: {found.reason}",
               OPEN: f"different by {ends}, which may be within the margin or beyond: {found.reason}"}
    return replace(found, reason=reasons[found.verdict])


def drift(found: Interval | None) -> str:
    """For the end of a reason: that repeats seem to drift, so that an interval does not hold their median.
    May be empty."""
    if found and found.apart:
        return (f"; the repeats drift, or the first differ by chance: the interval at {found.apart} repeats has "
                "nothing in common with those before, and is left out")
    if found and (found.value < found.low or found.value > found.high):
        return (f"; the repeats drift, or the first differ by chance: the median of all {found.n} lies outside the "
                "interval that all looks share")
    return ""


def ratio_text(value: float) -> str:
    """A ratio with three significant digits; near 1 with three decimals, which show on which side it lies."""
    return f"{value:.3f}" if NEAR_1[0] < value < NEAR_1[1] else f"{value:.3g}"


def tendency(numbers, low, high, bounds=()) -> dict | None:
    """The verdict to which the numbers point, and the highest level at which the interval between two of
    them decides, 95 % at most; None below 75 %, which three of three repeats have."""
    n = len(numbers)
    for inward in range((n + 1) // 2):
        level = coverage(n, inward)
        at = _between(numbers, bounds, level, inward)
        within = lies_within(at.low, at.high, low, high)
        if level >= LEAST_TENDENCY and within is not None:
            return {"verdict": REPLICATED if within else NOT_REPLICATED, "level": min(level, LEVEL)}
    return None


def by_sight(seen, claimed, rate, reason, tries="repeats", in_repeat=1) -> Outcome:
    """Whether something occurs, by the tries in which it was seen, a truth value a try.

    claimed: whether the claim says that it occurs in some tries, or in none. What was seen once occurs:
    that is no matter of chance. Without it, the claim is decided once so many tries would have
    shown with 95 % what occurs in a share `rate` of them. All tries before were without it as well, so
    looking after each costs no error. tries: what they are, "repeats" or points; in_repeat: how many
    of them a repeat has.
    """
    n, k, unit = len(seen), sum(seen), f"of all {tries}"
    if k:
        return Outcome(REPLICATED if claimed else NOT_REPLICATED, reason, share_interval(k, n), unit)
    verdict = NOT_REPLICATED if claimed else REPLICATED
    share = Interval(0.0, 0.0, 1 - (1 - LEVEL)**(1 / n), LEVEL, n)
    if share.high <= rate:
        return Outcome(verdict, f"{reason}; what occurs in a share {rate:g} {unit} or more would have been "
                       "seen", share, unit)
    needed, level = tries_needed(rate), 1 - (1 - rate)**n
    most = {"verdict": verdict, "level": min(LEVEL, level)} if level >= LEAST_TENDENCY else None
    return Outcome(OPEN, f"{reason}, which may occur in a share of up to {share.high:.2g} {unit}; a verdict "
                   f"needs {needed} {tries} for a share of {rate:g}", share, unit, most,
                   next((look for look in LOOKS if look * in_repeat >= needed), None))


def tries_needed(rate: float) -> int:
    """Of what occurs in a share `rate` of all tries, so many show one with 95 %."""
    return math.ceil(math.log(1 - LEVEL) / math.log(1 - rate))


def least_repeats(rule: dict, points: int) -> int:
    """The look before which no repeats decide for a rule by sight of which nothing is seen, of so many points a
    repeat; the first look for other rules."""
    if rule["name"] == "differs_over":
        return LOOKS[0] + CHOOSING
    if rule["name"] not in BY_SIGHT:
        return LOOKS[0]
    in_repeat = max(1, points) if rule.get("per") == "point" else 1
    return next((look for look in LOOKS if look * in_repeat >= tries_needed(rule.get("rate", RATE))), LOOKS[-1])


def expected_wrong(verdicts) -> float:
    """How many of these verdicts are expected to be wrong, at most: dicts with `verdict`, `n` and the claim's `rule`.

    Each claim that was judged at a look may have been decided wrongly with the probability that the looks
    up to it spend by its rule, whether it was decided or is open. What was seen once is certain; what was
    never seen is decided once, with what its level leaves.
    """
    return sum(_error(one) for one in verdicts if one["verdict"] in JUDGED)


def _error(one) -> float:
    name = one["rule"]["name"]
    if name in BY_SIGHT:
        absent = NOT_REPLICATED if name == "sometimes" else REPLICATED
        return 1 - LEVEL if one["verdict"] == absent else 0.0
    return spent(one["n"], one["rule"].get("symmetric", False), leaning=name == "proportional")


def too_few(n, beside="") -> str:
    return f"only {repeats(n)}{beside}; a verdict needs {LOOKS[0]} or more"


def repeats(n) -> str:
    return "one repeat" if n == 1 else f"{n} repeats"


def where(low, high, unit) -> str:
    """The place between two bounds in words: `above 1.05 times`."""
    if high == math.inf:
        return f"above {amount(low, unit)}"
    if low == -math.inf:
        return f"below {amount(high, unit)}"
    return f"between {number(low, unit)} and {amount(high, unit)}"


def amount(value: float, unit: str, digits: int = 4) -> str:
    """`1.05 times`; of a share, `97 % of all repeats`."""
    return f"{number(value, unit, digits)} {unit}".rstrip()


def number(value: float, unit: str, digits: int = 4) -> str:
    """`1.05`, or the percentage where the unit is that of a share."""
    return f"{100 * value:.{digits}g} %" if is_share(unit) else f"{value:.{digits}g}"


def is_share(unit: str) -> bool:
    """Whether this is the unit of a share, such as `of all repeats`: the whole is 1."""
    return unit.startswith("of ")

"""Confidence intervals over repeats. The unit is the repeat (a block), never a row within one.

One number a repeat goes in. The interval runs between two of them in order, and is exact for the
median of any distribution: the median misses it only when at least n - k + 1 of n repeats fall on
its same side, which is tossing coins; that they do not depend on each other is all that is supposed.
Resampling few repeats instead promises more than it keeps: of five, no interval for the median
holds it in 95 % of cases without a guess at the distribution.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist, stdev

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """`value` is the median of n repeats; [low, high] holds the true one at `level`."""

    value: float
    low: float
    high: float
    level: float
    n: int


def median_interval(values, level: float = LEVEL) -> Interval:
    """Median and interval, at `level` or the highest that so few values allow: 1 - 2^(1-n)."""
    ordered = sorted(values)
    n = len(ordered)
    if n == 0:
        raise ValueError("no values")
    inward = _inward(n, level)
    return Interval(_median(ordered), ordered[inward], ordered[n - 1 - inward],
                    min(level, coverage(n, inward)), n)


def _inward(n, level) -> int:
    """How far in from the lowest and the highest of n values the ends of the interval may lie."""
    inward = 0
    while 2 * (inward + 1) < n and coverage(n, inward + 1) >= level:
        inward += 1
    return inward


def repeats_needed(numbers, half_width: float, level: float = LEVEL) -> int:
    """How many repeats it takes until the interval of their median reaches, on average, no farther
    than `half_width` to either side, going by the spread of the numbers of two or more repeats.

    The ends of the interval are two of the values in order; how far out those lie is taken from
    values that spread normally with the standard deviation of the numbers (Blom's approximation,
    beyond 200 the limit for many values). From few repeats that deviation is a guess: of three, it
    is often half or twice the true one.
    """
    spread = stdev(numbers)
    for n in range(2, 200):
        if coverage(n, 0) >= level and spread * _reach(n, level) <= half_width:
            return n
    z = NormalDist().inv_cdf((1 + level) / 2)
    return max(200, math.ceil(math.pi / 2 * (z * spread / half_width) ** 2))


def _reach(n, level) -> float:
    """How many standard deviations from the middle the interval of n normal values ends."""
    return NormalDist().inv_cdf((n - _inward(n, level) - 0.375) / (n + 0.25))


def coverage(n: int, inward: int) -> float:
    """Chance that the median lies between the (inward+1)th lowest and highest of n values."""
    return 1 - 2 * sum(math.comb(n, i) for i in range(inward + 1)) / 2**n if n > 1 else 0.0


def share_interval(k: int, n: int, level: float = LEVEL) -> Interval:
    """Of k of n repeats in which something was seen: their share, and the interval that holds the
    chance of it at `level` or more, whatever it is (Clopper and Pearson)."""
    tail = (1 - level) / 2
    return Interval(k / n, _chance(lambda p: 1 - _at_most(k - 1, n, p) < tail) if k else 0.0,
                    _chance(lambda p: _at_most(k, n, p) > tail) if k < n else 1.0, level, n)


def _chance(still) -> float:
    """How far from 0 up `still(chance)` is true."""
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if still(middle) else (low, middle)
    return low


def _at_most(k: int, n: int, chance: float) -> float:
    """Chance to see something k times or less often, of n."""
    return sum(math.comb(n, i) * chance**i * (1 - chance)**(n - i) for i in range(k + 1))


def _median(ordered) -> float:
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else (low + high) / 2


def ratio(of: dict, than: dict, level: float = LEVEL) -> Interval:
    """Ratio of two arms {block: positive number}, paired by block: what a block does to both
    arms alike falls out."""
    return median_interval([of[b] / than[b] for b in of.keys() & than.keys()], level)


def geometric_mean(values) -> float:
    values = list(values)
    return math.exp(sum(math.log(v) for v in values) / len(values))


def slope(xs, ys) -> float:
    """Median of the slopes between all pairs of points (Theil and Sen): one wild point of many
    does not turn it."""
    pairs = sorted((y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(zip(xs, ys))
                   for x2, y2 in list(zip(xs, ys))[i + 1:] if x1 != x2)
    return _median(pairs)

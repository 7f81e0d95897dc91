"""Confidence intervals over repeats. The unit is the repeat (a block), never a row within one.

Each repeat contributes one number. The bounds of the interval are two of these numbers, the k-th
smallest and the k-th largest. Its level is exact for the median of any distribution: the median is
outside only when at least n - k + 1 of n independent repeats lie on the same side of it, and the
binomial distribution gives the probability of that. Bootstrapping so few repeats would overstate
the level: with five repeats, no interval covers the median in 95 % of cases without an assumption
on the distribution.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from labbook.errors import InputError

LEVEL = 0.95
EXPONENTS = (0.05, 8.0)   # those that exponent_between looks at


@dataclass(frozen=True)
class Interval:
    """`value` is the median of n repeats; [low, high] covers the true median with probability `level`.
    `apart`: the first look (see labbook.claims.looks) that has nothing in common with those before; 0 if none."""

    value: float
    low: float
    high: float
    level: float
    n: int
    apart: int = 0


def median_interval(values, level: float = LEVEL) -> Interval:
    """Median and its interval, at `level`, or at the highest level that n values allow, 1 - 2^(1-n).

    ValueError without values.
    """
    ordered = sorted(values)
    n = len(ordered)
    if n == 0:
        raise ValueError("no values")
    inward = _inward(n, level)
    return Interval(middle(ordered), ordered[inward], ordered[n - 1 - inward],
                    min(level, coverage(n, inward)), n)


def lies_within(low: float, high: float, least: float, most: float) -> bool | None:
    """Whether the interval [low, high] lies between two bounds: True if all of it does, False if no part
    of it does, None if a part. Either bound may be infinite."""
    if (least == -math.inf or least < low) and (most == math.inf or high < most):
        return True
    return False if high <= least or low >= most else None


def _inward(n, level) -> int:
    """How many of n values may lie outside the interval on either side."""
    inward = 0
    while 2 * (inward + 1) < n and coverage(n, inward + 1) >= level:
        inward += 1
    return inward


def coverage(n: int, inward: int) -> float:
    """Probability that the median lies between the (inward+1)th lowest and highest of n values."""
    return 1 - 2 * sum(math.comb(n, i) for i in range(inward + 1)) / 2**n if n > 1 else 0.0


def share_interval(k: int, n: int, level: float = LEVEL) -> Interval:
    """Share k/n of repeats with an event, and the exact binomial interval of the event's probability
    (Clopper and Pearson), which covers it with probability `level` or more."""
    tail = (1 - level) / 2
    return Interval(k / n, _chance(lambda p: 1 - _at_most(k - 1, n, p) < tail) if k else 0.0,
                    _chance(lambda p: _at_most(k, n, p) > tail) if k < n else 1.0, level, n)


def _chance(still) -> float:
    """The largest probability up to which `still(probability)` is true, by bisection."""
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if still(middle) else (low, middle)
    return low


def _at_most(k: int, n: int, chance: float) -> float:
    """Probability of k events or fewer in n trials, of a chance above 0 and below 1."""
    yes, no = math.log(chance), math.log1p(-chance)     # by logarithms, since the factors of many trials overflow
    return sum(math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * yes + (n - i) * no)
               for i in range(k + 1))


def middle(ordered) -> float:
    """Median of numbers in rising order."""
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else (low + high) / 2


def ratio(of: dict, than: dict, level: float = LEVEL) -> Interval:
    """Median ratio of two arms {block: positive number}, paired by block: effects that a block has on
    both arms cancel."""
    return median_interval([of[b] / than[b] for b in of.keys() & than.keys()], level)


def geometric_mean(values) -> float:
    values = list(values)
    return math.exp(sum(math.log(v) for v in values) / len(values))


def slope(xs, ys) -> float:
    """Median of the slopes between all pairs of points (Theil and Sen), which single outliers do not
    change. InputError without two different xs."""
    pairs = sorted((y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(zip(xs, ys))
                   for x2, y2 in list(zip(xs, ys))[i + 1:] if x1 != x2)
    if not pairs:
        raise InputError("a slope needs two different values of x", key="xs", allowed="two different numbers or more")
    return middle(pairs)


def bend(xs, usual) -> Callable[[float], list[float]]:
    """A function of an exponent: factors of ys over these xs whose sum with ys is 0 for each curve a + b x^exponent,
    above 0 where a rising curve has a larger exponent, and below 0 where it has a smaller one.

    usual: usual values of the ys, which vary by a share of them. The sum of factor times usual value is 1 without
    signs. InputError for fewer than three different xs, and for xs or usual values that are not above 0.
    """
    if len(set(xs)) < 3:
        raise InputError("a constant and an exponent need three different values of x", key="xs",
                         allowed="three different numbers or more")
    if min(*xs, *usual) <= 0:
        raise InputError("an exponent needs values above 0", key="xs, usual", allowed="numbers above 0")
    weights = [1 / y**2 for y in usual]
    whole, shares, logs = sum(weights), [x / max(xs) for x in xs], [math.log(x) for x in xs]

    def centred(values):
        mean = sum([w * value for w, value in zip(weights, values)]) / whole
        return [value - mean for value in values]

    def factors(exponent):
        powers = [share**exponent for share in shares]
        changes = centred([power * log for power, log in zip(powers, logs)])    # for a larger exponent
        powers = centred(powers)
        weighted = [w * power for w, power in zip(weights, powers)]
        along = (sum([power * change for power, change in zip(weighted, changes)])
                 / sum([one * power for one, power in zip(weighted, powers)]))
        found = [w * change - along * power for w, change, power in zip(weights, changes, weighted)]
        size = sum([abs(factor) * y for factor, y in zip(found, usual)])
        return [factor / size for factor in found]

    return factors


def exponent_between(bent, low, high) -> float:
    """The exponent at which `bent`, a function of it, falls through 0: that of a curve beside a constant.

    It lies on the side of `low`, and of `high`, that the sign there says. Either may be infinite. 0 or the largest
    of EXPONENTS where the curve is bent less or more than by any exponent. A curve for which `low` is too
    large and `high` too small does not rise: it counts as beyond both, on the side of its bend.
    """
    ends = [one for one in (low, high) if EXPONENTS[0] < one < EXPONENTS[1]] or [1.0]
    above = [bent(one) > 0 for one in ends]
    if above == [False, True]:
        return EXPONENTS[1] if bent(geometric_mean(ends)) > 0 else 0.0
    part = sum(above)
    left, right = [EXPONENTS[0], *ends, EXPONENTS[1]][part:part + 2]
    if part == 0 and bent(left) <= 0:
        return 0.0
    if part == len(ends) and bent(right) > 0:
        return right
    while right - left > 1e-4 * right:
        middle = (left + right) / 2
        left, right = (middle, right) if bent(middle) > 0 else (left, middle)
    return (left + right) / 2

"""Looks: the numbers of repeats after which a claim is judged, and intervals that hold over all of them.

Whoever looks after each repeat and stops when a claim is decided is wrong more often than each look's
interval says. Here the looks are fixed beforehand, and the error of 5 % is spent over them: the
probability that the true median ever lies outside the interval is at most 5 %, whenever one stops.
The interval is the intersection of those of the looks reached, so a claim that one look decided stays
decided. Repeats between two looks change no interval.

The sign statistic counts the repeats above a value. At the true median it is a random walk, whatever
the distribution, so its error over the looks is enumerated exactly. Where the numbers are symmetric
about their median, the signed ranks use more of them: the bounds are then two of the means of all
pairs (Walsh averages). Their error is exact at each look, and the sum over the looks bounds the whole.
"""

import math
from functools import lru_cache
from itertools import combinations_with_replacement
from statistics import NormalDist, stdev

from labbook.claims.bounds import AT_LEAST, AT_MOST, NO_NUMBER, UNKNOWN, highest, lowest, with_number
from labbook.claims.statistics import LEVEL, Interval, lies_within, middle

LOOKS = (6, 9, 12, 20, 30, 60)
# How many values, or Walsh averages, lie beyond the interval on either side at each look; None: this look
# decides nothing. Of all tables of signs that spend at most 5 %, this one needs the fewest repeats on
# average where 65, 75, 85, 95 and 99.9 % of repeats lie on one side of a bound (tests/unit/claims).
OUTLYING = (0, 0, 1, 3, 8, 18)
OUTLYING_WALSH = (0, None, 4, 30, 98, 545)
# For numbers of which a share between 1/2 - LEAN and 1/2 + LEAN lies above the true value: the best of those
# tables that decide at the first look.
OUTLYING_LEANING = (0, 0, 0, 2, 5, 15)
LEAN = 0.08


def spent(n: int, symmetric: bool = False, leaning: bool = False) -> float:
    """The error spent by the looks that n repeats reach: the probability, at most, that the interval
    does not hold the median. leaning: of the table for numbers that lean. 0 below the first look."""
    errors = walsh_errors(OUTLYING_WALSH) if symmetric else (
        sign_errors(OUTLYING_LEANING, 0.5 + LEAN) if leaning else sign_errors(OUTLYING))
    return sum(error for look, error in zip(LOOKS, errors) if look <= n)


def interval(numbers, symmetric: bool = False, outlying=OUTLYING, bounds=()) -> Interval | None:
    """Median of the numbers, in the order of their repeats, and the interval of the looks reached. With
    `symmetric` the logarithms of numbers, which are then above 0, are taken to be symmetric.

    None below the first look. With `symmetric` the interval is that of the signed ranks and the value
    their estimate of the median (Hodges and Lehmann). outlying: the table of signs. bounds: see
    labbook.claims.bounds. Where the intervals of two looks have nothing in common the later one is left
    out: the repeats drift, and the interval's `apart` is that look.
    """
    if len(numbers) < LOOKS[0]:
        return None
    least, most = lowest(numbers, bounds), highest(numbers, bounds)
    if symmetric:
        numbers, least, most = (list(map(_log, each)) for each in (numbers, least, most))
    low, high, apart = -math.inf, math.inf, 0
    for look, beyond in zip(LOOKS, OUTLYING_WALSH if symmetric else outlying):
        if look > len(numbers) or beyond is None:
            continue
        lower, upper = _ordered(least[:look], symmetric)[beyond], _ordered(most[:look], symmetric)[-1 - beyond]
        if lower <= high and upper >= low:
            low, high = max(low, lower), min(high, upper)
        else:
            apart = apart or look
    ends = middle(_ordered(numbers, symmetric)), low, high
    return Interval(*(map(_exp, ends) if symmetric else ends), LEVEL, len(numbers), apart)


def _ordered(numbers, symmetric) -> list[float]:
    """The numbers, or the means of all pairs of them and of each with itself, by rising value."""
    if not symmetric:
        return sorted(numbers)
    return sorted((a + b) / 2 for a, b in combinations_with_replacement(numbers, 2))


def look_needed(numbers, low: float, high: float, symmetric: bool = False, bounds=(),
                outlying=OUTLYING) -> int | None:
    """The look at which the numbers' interval is expected to lie within (low, high) or outside, if further
    repeats vary as these do; None where no look is, and for fewer than two repeats with a number.

    Numbers above 0 are taken by their logarithms. The expected places of the interval's bounds are those
    of normally distributed values. From few repeats it is a guess: their deviation is uncertain. A look with as many
    values beyond its interval as an earlier one is none, since its interval holds the earlier one's. bounds: see
    labbook.claims.bounds; further repeats are taken to be bounds as often as these.
    """
    measured = with_number(numbers, bounds)
    if len(measured) < 2 or not all(map(math.isfinite, measured)):
        return None
    found = interval(numbers, symmetric, outlying, bounds)
    least, most = (-math.inf, math.inf) if found is None else (found.low, found.high)
    if min(measured) > 0 and (low > 0 or low == -math.inf) and high > 0:
        measured = list(map(math.log, measured))
        low, high, least, most = map(_log, (low, high, least, most))
    at, spread = middle(sorted(measured)), stdev(measured)
    below, above = (sum(bound in kinds for bound in bounds) / len(numbers)
                    for kinds in ((AT_MOST, UNKNOWN, NO_NUMBER), (AT_LEAST, UNKNOWN, NO_NUMBER)))
    reached = -1
    for look, beyond in zip(LOOKS, OUTLYING_WALSH if symmetric else outlying):
        if beyond is None or beyond <= reached:
            continue
        reached = beyond
        if look <= len(numbers):
            continue
        reach = spread * _reach(look, symmetric, outlying)
        least = max(least, at - reach) if _allows(look, below, symmetric, outlying) else least
        most = min(most, at + reach) if _allows(look, above, symmetric, outlying) else most
        if lies_within(least, most, low, high) is not None:
            return look
    return None


def _allows(look, share, symmetric, outlying) -> bool:
    """Whether the interval of a look has an end on a side where such a share of repeats is endless."""
    beyond = (OUTLYING_WALSH if symmetric else outlying)[LOOKS.index(look)]
    endless = math.ceil(share * look)
    if symmetric:       # of the means of pairs, those with one of them
        endless = endless * look - endless * (endless - 1) // 2
    return beyond is not None and endless <= beyond


def _exp(value) -> float:
    return value if math.isinf(value) else math.exp(value)


def _log(value) -> float:
    return value if math.isinf(value) else math.log(value)


def _reach(look, symmetric, outlying) -> float:
    """Expected distance, in standard deviations, from the median to a bound of the interval at a look."""
    index = LOOKS.index(look)
    if not symmetric:   # Blom's approximation of the places of ordered normal values
        return NormalDist().inv_cdf((look - outlying[index] - 0.375) / (look + 0.25))
    if OUTLYING_WALSH[index] is None:
        return math.inf
    return NormalDist().inv_cdf(1 - walsh_errors(OUTLYING_WALSH)[index] / 2) * math.sqrt(math.pi / 3 / look)


@lru_cache
def sign_errors(outlying: tuple, chance: float = 0.5) -> list[float]:
    """For each look, the probability that it is the first whose interval does not hold a value.

    chance: the probability that a repeat lies above the value; 1/2 for the median.
    """
    return [below + above for below, above in sign_stops(outlying, chance)]


def sign_stops(outlying, chance: float = 0.5) -> list[tuple[float, float]]:
    """For each look, the probabilities that it is the first whose interval lies below, or above, a value
    that a repeat exceeds with this chance."""
    walk, repeats, stops = {0: 1.0}, 0, []      # repeats above the value: probability, still held
    for look, k in zip(LOOKS, outlying):
        walk, repeats = _walked(walk, look - repeats, chance), look
        k = -1 if k is None else k
        stops.append((sum(p for above, p in walk.items() if above <= k),
                      sum(p for above, p in walk.items() if above >= look - k)))
        walk = {above: p for above, p in walk.items() if k < above < look - k}
    return stops


def _walked(walk: dict, steps: int, chance: float) -> dict:
    for _ in range(steps):
        after = {}
        for above, p in walk.items():
            after[above] = after.get(above, 0.0) + p * (1 - chance)
            after[above + 1] = after.get(above + 1, 0.0) + p * chance
        walk = after
    return walk


@lru_cache
def walsh_errors(outlying: tuple) -> list[float]:
    """For each look, the probability that its interval of Walsh averages does not hold the median."""
    return [0.0 if k is None else 2 * sum(_signed_rank_chances(look)[:k + 1])
            for look, k in zip(LOOKS, outlying)]


def _signed_rank_chances(n: int) -> list[float]:
    """The probability of each value of the signed rank statistic of n symmetric numbers."""
    chances = [1.0]
    for rank in range(1, n + 1):
        chances = [(without + with_it) / 2 for without, with_it in
                   zip(chances + [0.0] * rank, [0.0] * rank + chances)]
    return chances

"""Repeats whose number is only a bound of the true one, since the clients were the limit.

The clients make the time of their calls (in ms or µs) too long, and the rate of these too low. What a system does
in seconds, or in bytes a second, while they load it may be off either way. Where the rule's number rises or falls
with each limited value alike, the true number is at most, or at least, the measured one; otherwise it is unknown.
An interval takes such a repeat on the side where it is certain: the lower end counts it as
endlessly low unless it is "at least", the upper end as endlessly high unless it is "at most". If more
repeats than the look allows are so, the interval has no end on that side. So the interval still holds
the true median as often as stated, whatever the limited values would have been.
"""

import math

EXACT, AT_MOST, AT_LEAST, UNKNOWN = "", "at most", "at least", "unknown"
NO_NUMBER = "no number"     # of a repeat that lacks a value, or whose values have no ratio or logarithm
BYTES = ("mb_per_s", "kib_per_s", "bytes_per_s")    # rates of a system, not of calls

# Rules whose number rises with the values of the first arm and falls with those of the second; and rules
# whose number does so at the largest `along` of a curve, and the other way round at the smallest.
OF_VALUES = ("greater", "equal_within", "ratio_between", "above", "below", "between")
OF_GROWTH = ("grows_with", "rises_by", "scales_with", "grows_alike", "grows_less")


def direction(metric: str, moves: set) -> str:
    """What a rule's number is of the true one. moves: how it moves with each value that the clients limited:
    1 the same way, -1 the other way, 0 unknown; empty without any."""
    name = str(metric)
    rate, time = name.endswith("_per_s") and not name.endswith(BYTES), name.endswith(("_ms", "_us"))
    if not moves:
        return EXACT
    if moves not in ({1}, {-1}) or not (rate or time):
        return UNKNOWN
    return AT_LEAST if rate == (moves == {1}) else AT_MOST


def lowest(numbers, bounds) -> list[float]:
    """The least that the true number of each repeat may be. bounds: what each is, or empty: all exact."""
    return [-math.inf if bound in (AT_MOST, UNKNOWN, NO_NUMBER) else number
            for number, bound in paired(numbers, bounds)]


def highest(numbers, bounds) -> list[float]:
    """The most that the true number of each repeat may be."""
    return [math.inf if bound in (AT_LEAST, UNKNOWN, NO_NUMBER) else number
            for number, bound in paired(numbers, bounds)]


def paired(numbers, bounds):
    return zip(numbers, bounds or [EXACT] * len(numbers), strict=True)


def with_number(numbers, bounds) -> list[float]:
    """The numbers of the repeats that have one."""
    return [number for number, bound in paired(numbers, bounds) if bound != NO_NUMBER]


def words(bounds, number: str) -> str:
    """How many repeats are bounds, for the begin of a reason; empty without any."""
    lost = sum(bound == NO_NUMBER for bound in bounds)
    without = f"{lost} of {len(bounds)} repeats lack a value, or have one that is not above 0, and count on either side"
    return "; ".join(filter(None, (without if lost else "", _limited(bounds, number))))


def _limited(bounds, number) -> str:
    """How many repeats are bounds since the clients were the limit."""
    count = sum(bound not in (EXACT, NO_NUMBER) for bound in bounds)
    if not count:
        return ""
    if count == len(bounds) and len(set(bounds)) == 1 and bounds[0] != UNKNOWN:
        return f"the clients were the limit, so the true value is {bounds[0]} the measured {number}"
    each = {bound: bounds.count(bound) for bound in (AT_MOST, AT_LEAST, UNKNOWN)}
    kinds = " and ".join(f"{n} {bound}" for bound, n in each.items() if n)
    return f"{count} of {len(bounds)} repeats are bounds, since the clients were the limit ({kinds})"

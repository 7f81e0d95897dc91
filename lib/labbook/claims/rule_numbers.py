"""Each rule as a number for one repeat, the bounds it is claimed to lie within, and its unit.

A rule is a function of the claim's `rule` and its Comparison that returns
(number(repeat), (low, high), unit). The number is None for a repeat that only chooses what the
others compare.
"""

import math
from statistics import fmean

from labbook.claims.comparison import NotRun, NotTestable
from labbook.claims.statistics import geometric_mean


def _greater(rule, compared):
    return (lambda repeat: geometric_mean(compared.ratios(repeat, compared.settings)),
            (rule.get("margin", 1), math.inf), "times")


def _equal_within(rule, compared):
    number, _, unit = _greater(rule, compared)
    return number, (1 / rule["margin"], rule["margin"]), unit


def _ratio_between(rule, compared):
    number, _, unit = _greater(rule, compared)
    return number, bounds(rule), unit


def _differs_over(rule, compared):
    """Some repeats choose the two values of `along`, the others compare them."""
    choosing, testing = compared.split()
    means = compared.means_over(rule["along"], choosing)
    of, than = max(means, key=means.get), min(means, key=means.get)

    def number(repeat):
        if repeat not in testing:
            return None
        means = compared.means_over(rule["along"], [repeat])
        return means[of] / means[than]

    return number, (rule["margin"], math.inf), f"times, {of} over {than}"


def largest_difference(along, compared):
    """The function of a repeat that gives the largest mean over `along` over the smallest, whichever they are."""
    def number(repeat):
        means = compared.means_over(along, [repeat])
        return max(means.values()) / min(means.values())

    return number


def _grows_with(rule, compared):
    return (lambda repeat: compared.growth(0, repeat, rule["along"]),
            (rule.get("margin", 1), math.inf), "times")


def _rises_by(rule, compared):
    return lambda repeat: compared.slope(0, repeat, rule["along"]), bounds(rule), rule.get("unit", "")


def _scales_with(rule, compared):
    return (lambda repeat: compared.exponent(repeat, rule["along"]), bounds(rule), "as the exponent")


def _proportional(rule, compared):
    limits = bounds(rule)
    return lambda repeat: compared.exponent_beside_constant(repeat, rule["along"], *limits), limits, "as the exponent"


def _grows_alike(rule, compared):
    along, margin = rule["along"], rule.get("margin", 1)
    return (lambda repeat: compared.growth(0, repeat, along) / compared.growth(1, repeat, along),
            (1 / margin, margin), "times")


def _grows_less(rule, compared):
    number, _, unit = _grows_alike(rule, compared)
    return number, (-math.inf, 1 / rule.get("margin", 1)), unit


def _grows_slower(rule, compared):
    def number(repeat):
        of, than = (compared.slope(arm, repeat, rule["along"]) for arm in (0, 1))
        if than <= 0:   # no ratio: below it, or above
            return 1.0 if of == than else math.inf if of > than else 0.0
        return of / than

    return number, (-math.inf, 1 / rule.get("margin", 1)), "times"


def _above(rule, compared):
    return (lambda repeat: fmean(compared.values(repeat)), (rule["value"], math.inf),
            rule.get("unit", ""))


def _below(rule, compared):
    number, _, unit = _above(rule, compared)
    return number, (-math.inf, rule["value"]), unit


def _between(rule, compared):
    return lambda repeat: fmean(compared.values(repeat)), bounds(rule), rule.get("unit", "")


def _always(rule, compared):
    """A repeat's number is that of its worst point: the one farthest outside the bounds. A repeat with a part
    of the settings counts if it has one outside, or where each point is a try of its own."""
    low, high = bounds(rule)

    def number(repeat):
        worst = max(compared.all(repeat), key=lambda one: max(low - one, one - high))
        return worst if is_try(rule, compared, repeat) or not low <= worst <= high else None

    return number, (low, high), rule.get("unit", "")


def _sometimes(rule, compared):
    """1 for a repeat with a point within the bounds, otherwise 0. A repeat with a part of the settings counts if
    it has one, or where each point is a try of its own."""
    low, high = bounds(rule)

    def number(repeat):
        seen = any(low <= one <= high for one in compared.all(repeat))
        return float(seen) if seen or is_try(rule, compared, repeat) else None

    return number, (low, high), "of all repeats"


def is_try(rule, compared, repeat) -> bool:
    """Whether a repeat in which nothing was seen counts for a rule by sight: one with a part of the settings only
    where each point is a try of its own."""
    return by_point(rule) or repeat not in compared.partial


def by_point(rule) -> bool:
    """Whether each point is a try of its own."""
    return rule.get("per") == "point"


def bounds(rule, low="low", high="high") -> tuple[float, float]:
    """The bounds that a rule names; infinite where it names none."""
    return rule.get(low, -math.inf), rule.get(high, math.inf)


def _crosses_near(rule, compared):
    along, at, within = rule["along"], rule["at"], rule["within"]
    curves = compared.curves(along)
    if len(curves) > 1:
        raise NotTestable(f"the rule leaves parameters open, so there is more than one curve over {along}")
    xs = [x for x, _ in curves[0]]
    if not xs[0] <= at - within < at + within <= xs[-1]:     # beyond the ends it may cross anywhere
        raise NotRun(f"{along} was measured only from {xs[0]:g} to {xs[-1]:g}, but the claim "
                     f"is about {at - within:g} to {at + within:g}")
    return (lambda repeat: crossing(xs, compared.ratios(repeat, [setting for _, setting in curves[0]])),
            (at - within, at + within), along)


def crossing(xs, ratios) -> float:
    """The x at which ratios over xs fall from above 1 to below 1.

    It is interpolated within the interval of xs for which most ratios lie on the right side of 1.
    Infinite when the ratios stay above 1, minus infinite when they stay below.
    """
    logs = [math.log(r) for r in ratios]
    fits = [sum(v > 0 for v in logs[:k]) + sum(v <= 0 for v in logs[k:])
            for k in range(len(xs) + 1)]
    best = [k for k, fit in enumerate(fits) if fit == max(fits)]
    k = best[len(best) // 2]
    if k == 0 or k == len(xs):
        return math.inf if k else -math.inf
    before, after = logs[k - 1], logs[k]
    share = before / (before - after) if before > 0 >= after else 0.5
    return xs[k - 1] + share * (xs[k] - xs[k - 1])


RULES = {"greater": _greater, "equal_within": _equal_within, "ratio_between": _ratio_between,
         "differs_over": _differs_over, "grows_with": _grows_with, "rises_by": _rises_by, "scales_with": _scales_with,
         "proportional": _proportional,
         "grows_alike": _grows_alike, "grows_less": _grows_less, "grows_slower": _grows_slower,
         "crosses_near": _crosses_near, "above": _above, "below": _below, "between": _between,
         "always": _always, "sometimes": _sometimes}

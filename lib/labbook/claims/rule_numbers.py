"""What each rule makes of one repeat: a number, the bounds that it shall lie within, its unit.

A rule here is a function of the claim's rule and of what was chosen for it (labbook.claims.comparison),
which gives (number(repeat), (low, high), unit).
"""

import math
from statistics import fmean

from labbook.claims.comparison import NotTestable
from labbook.claims.statistics import geometric_mean


def _greater(rule, chosen):
    return (lambda repeat: geometric_mean(chosen.ratios(repeat, chosen.rests)),
            (rule.get("margin", 1), math.inf), "times")


def _equal_within(rule, chosen):
    number, _, unit = _greater(rule, chosen)
    return number, (1 / rule["margin"], rule["margin"]), unit


def _ratio_between(rule, chosen):
    number, _, unit = _greater(rule, chosen)
    return number, (rule["low"], rule["high"]), unit


def _differs_over(rule, chosen):
    """The two values are chosen once, by all repeats: were they chosen in each repeat, its noise
    would be taken for a difference."""
    of, than = chosen.extremes(rule["along"])
    return (lambda repeat: geometric_mean(chosen.within(repeat, rule["along"], of, than)),
            (rule.get("margin", 1), math.inf), f"times, {of} over {than}")


def _grows_with(rule, chosen):
    return (lambda repeat: chosen.growth(0, repeat, rule["along"]),
            (rule.get("margin", 1), math.inf), "times")


def _scales_with(rule, chosen):
    return (lambda repeat: chosen.exponent(repeat, rule["along"]), ends(rule), "as the exponent")


def _grows_alike(rule, chosen):
    along, margin = rule["along"], rule.get("margin", 1)
    return (lambda repeat: chosen.growth(0, repeat, along) / chosen.growth(1, repeat, along),
            (1 / margin, margin), "times")


def _grows_less(rule, chosen):
    number, _, unit = _grows_alike(rule, chosen)
    return number, (-math.inf, 1 / rule.get("margin", 1)), unit


def _grows_slower(rule, chosen):
    def number(repeat):
        of, than = (chosen.slope(arm, repeat, rule["along"]) for arm in (0, 1))
        if than <= 0:   # no growth to stay below
            return math.inf if of > than else 1.0
        return of / than

    return number, (-math.inf, 1 / rule.get("margin", 1)), "times"


def _above(rule, chosen):
    return (lambda repeat: fmean(chosen.values(repeat)), (rule["value"], math.inf),
            rule.get("unit", ""))


def _below(rule, chosen):
    number, _, unit = _above(rule, chosen)
    return number, (-math.inf, rule["value"]), unit


def _between(rule, chosen):
    return lambda repeat: fmean(chosen.values(repeat)), ends(rule), rule.get("unit", "")


def _always(rule, chosen):
    """Each repeat stands with its worst point: the one that lies farthest out."""
    low, high = ends(rule)
    return (lambda repeat: max(chosen.all(repeat), key=lambda one: max(low - one, one - high)),
            (low, high), rule.get("unit", ""))


def _sometimes(rule, chosen):
    """1 of a repeat with a point that lies there, else 0."""
    low, high = ends(rule)
    return (lambda repeat: float(any(low <= one <= high for one in chosen.all(repeat))),
            (low, high), "of all repeats")


def ends(rule, low="low", high="high") -> tuple[float, float]:
    """The ends that a rule names; infinite where it names none."""
    return rule.get(low, -math.inf), rule.get(high, math.inf)


def _crosses_near(rule, chosen):
    along, at, within = rule["along"], rule["at"], rule["within"]
    curves = chosen.curves(along)
    if len(curves) > 1:
        raise NotTestable(f"more than one curve over {along}: the rule leaves parameters open")
    xs = [x for x, _ in curves[0]]
    if not xs[0] <= at <= xs[-1]:
        raise NotTestable(f"{along} was measured from {xs[0]:g} to {xs[-1]:g} only, and the claim "
                          f"is about {at:g}")
    return (lambda repeat: crossing(xs, chosen.ratios(repeat, [rest for _, rest in curves[0]])),
            (at - within, at + within), along)


def crossing(xs, ratios) -> float:
    """Where ratios over xs go from above 1 to below: between the x before and after the change that
    fits most of them. Infinite when they stay above, minus infinite when below."""
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
         "differs_over": _differs_over, "grows_with": _grows_with, "scales_with": _scales_with,
         "grows_alike": _grows_alike, "grows_less": _grows_less, "grows_slower": _grows_slower,
         "crosses_near": _crosses_near, "above": _above, "below": _below, "between": _between,
         "always": _always, "sometimes": _sometimes}

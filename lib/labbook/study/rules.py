"""The rules that decide claims. Each makes one number of every repeat, its two arms paired within
the repeat, and asks whether the interval of their median lies where the claim says.

greater        `of` is greater than `than`: their ratio is above `margin`
equal_within   their ratio lies between 1/`margin` and `margin`
ratio_between  their ratio lies between `low` and `high`
grows_with     from the smallest to the largest `along` the measure grows more than `margin` times
grows_alike    the growths of the two arms so measured differ by less than `margin` times
grows_less     the growth of `of` is less than 1/`margin` of that of `than`
grows_slower   the slope of `of` over `along` is below 1/`margin` of that of `than`
crosses_near   `of` is the greater at first and the smaller later; from about `at` on, give or take
               `within`, in the unit of `along`
above          the measure itself lies above `value`, in `unit`
below          it lies below `value`
always         it lies from `low` to `high` (or on the side of the one given) in every single
               point: where a claim says "none" or "all", one that does not refutes it
Over what a rule leaves open (parameters in neither arm nor `where`) ratios are averaged
geometrically, measures themselves plainly. A setting at which the clients were the limit in any
repeat is left out of all: to drop only the repeats in which the server was fast would favour the
slow ones.
"""

import math
from dataclasses import dataclass
from statistics import fmean

from labbook.checks import did_you_mean
from labbook.errors import InputError
from labbook.study.arms import Chosen, NotTestable
from labbook.study.statistics import Interval, geometric_mean, median_interval

REPLICATED, NOT_REPLICATED = "replicated", "not replicated"
TOO_NOISY, NOT_TESTABLE = "too noisy", "not testable here"
# Below this level nothing is called (not) replicated: it takes three repeats, all of one mind.
LEAST_LEVEL, LEAST_REPEATS = 0.75, 3


@dataclass(frozen=True)
class Outcome:
    verdict: str
    reason: str
    interval: Interval | None = None
    unit: str = ""


def decide(claim: dict, rows: list[dict], parameters, *, file="claims.yml", profile="quick"):
    """Outcome of a claim's rule. rows: a dict a point, with the parameters, `repeat`, the measure
    and perhaps `client_limited`. InputError for parameters or values that do not exist."""
    rule, measure = claim["rule"], claim.get("measure")
    if rule["name"] == "not_testable":
        return Outcome(NOT_TESTABLE, rule["reason"])
    _check_parameters(rule, parameters, file, claim["id"])
    try:
        chosen = Chosen(rule, measure, rows, parameters, f"{file}: {claim['id']}", profile)
        found, (low, high), unit = _compare(rule, chosen)
        interval = median_interval(found)
        if rule["name"] == "always":
            verdict, reason = _place_all(found, low, high, unit)
        else:
            verdict, reason = _place(interval, low, high, unit)
    except NotTestable as why:
        return Outcome(NOT_TESTABLE, str(why))
    return Outcome(verdict, reason + chosen.left_out(), interval, unit)


def numbers(claim: dict, rows: list[dict], parameters) -> list[float]:
    """What the claim's rule makes of each repeat, as in `decide`; none where that cannot be."""
    _check_parameters(claim["rule"], parameters, "claims.yml", claim["id"])
    try:
        chosen = Chosen(claim["rule"], claim["measure"], rows, parameters, claim["id"], "")
        return _compare(claim["rule"], chosen)[0]
    except NotTestable:
        return []


def _compare(rule, chosen):
    number, bounds, unit = _RULES[rule["name"]](rule, chosen)
    return [number(repeat) for repeat in chosen.repeats], bounds, unit


def _place(interval, low, high, unit):
    if interval.level < LEAST_LEVEL:
        return _too_few(interval.n)
    bounds = _bounds(low, high, unit)
    if low < interval.low and interval.high < high:
        return REPLICATED, f"the whole interval lies {bounds}"
    if interval.high <= low or interval.low >= high:
        return NOT_REPLICATED, f"no part of the interval lies {bounds}"
    return TOO_NOISY, f"only a part of the interval lies {bounds}"


def _place_all(worst, low, high, unit):
    """By the worst point of each repeat; the ends belong to what is claimed."""
    wanted = " and ".join(f"{word} {end:.4g} {unit}".rstrip() for word, end in
                          (("at least", low), ("at most", high)) if math.isfinite(end))
    against = sum(not low <= one <= high for one in worst)
    if against:
        return NOT_REPLICATED, f"{against} of {len(worst)} repeats had a point that is not {wanted}"
    if len(worst) < LEAST_REPEATS:
        return _too_few(len(worst))
    return REPLICATED, f"every point of {len(worst)} repeats is {wanted}"


def _too_few(n):
    repeats = "one repeat" if n == 1 else f"{n} repeats"
    return TOO_NOISY, f"{repeats} only; a verdict takes {LEAST_REPEATS} or more"


def _bounds(low, high, unit):
    if high == math.inf:
        return f"above {low:.4g} {unit}"
    if low == -math.inf:
        return f"below {high:.4g} {unit}"
    return f"between {low:.4g} and {high:.4g} {unit}"


def _greater(rule, chosen):
    return (lambda repeat: geometric_mean(chosen.ratios(repeat, chosen.rests)),
            (rule.get("margin", 1), math.inf), "times")


def _equal_within(rule, chosen):
    number, _, unit = _greater(rule, chosen)
    return number, (1 / rule["margin"], rule["margin"]), unit


def _ratio_between(rule, chosen):
    number, _, unit = _greater(rule, chosen)
    return number, (rule["low"], rule["high"]), unit


def _grows_with(rule, chosen):
    return (lambda repeat: chosen.growth(0, repeat, rule["along"]),
            (rule.get("margin", 1), math.inf), "times")


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


def _always(rule, chosen):
    """Each repeat stands with its worst point: the one that lies farthest out."""
    low, high = rule.get("low", -math.inf), rule.get("high", math.inf)
    return (lambda repeat: max(chosen.all(repeat), key=lambda one: max(low - one, one - high)),
            (low, high), rule.get("unit", ""))


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


_RULES = {"greater": _greater, "equal_within": _equal_within, "grows_with": _grows_with,
          "grows_alike": _grows_alike, "grows_less": _grows_less, "grows_slower": _grows_slower,
          "crosses_near": _crosses_near, "above": _above, "below": _below,
          "always": _always, "ratio_between": _ratio_between}


def _check_parameters(rule, parameters, file, claim_id):
    named = [(f"{part}.{name}", name) for part in ("of", "than", "where")
             for name in rule.get(part, {})]
    named += [("along", rule["along"])] if "along" in rule else []
    for key, name in named:
        if name not in parameters:
            raise InputError(f"no parameter {name!r}{did_you_mean(name, parameters)}", file=file,
                             key=f"{claim_id}.rule.{key}", allowed=list(parameters))

"""The rules that decide claims. Each makes one number of every repeat, its two arms paired within
the repeat, and asks whether the interval of their median lies where the claim says.

greater        `of` is greater than `than`: their ratio is above `margin`
equal_within   their ratio lies between 1/`margin` and `margin`
ratio_between  their ratio lies between `low` and `high`
differs_over   of the values of `along`, the metric at the one where it is largest over all repeats
               is more than `margin` times that at the one where it is smallest
grows_with     from the smallest to the largest `along` the metric grows more than `margin` times
scales_with    it goes with `along` to a power from `low` to `high` (or on the side of the one
               given); a power of 1 is proportion
grows_alike    the growths of the two arms so measured differ by less than `margin` times
grows_less     the growth of `of` is less than 1/`margin` of that of `than`
grows_slower   the slope of `of` over `along` is below 1/`margin` of that of `than`
crosses_near   `of` is the greater at first and the smaller later; from about `at` on, give or take
               `within`, in the unit of `along`
above          the metric itself lies above `value`, in `unit`
below          it lies below `value`
between        it lies between `low` and `high`
always         it lies from `low` to `high` (or on the side of the one given) in every single
               point: where a claim says "none" or "all", one that does not refutes it
sometimes      it lies from `low` to `high` in some point: where a claim says "there are runs in
               which", one that does confirms it, and it takes repeats to say that there is none.
               The interval is that of the share of repeats with such a point. For what is counted
               or is 0 or 1: of what only scatters there is such a point as soon as there are many
Over what a rule leaves open (parameters in neither arm nor `where`) ratios are averaged
geometrically, measures themselves plainly. A setting at which the clients were the limit in any
repeat is left out of all: to drop only the repeats in which the server was fast would favour the
slow ones.

A claim may need something of the place, such as a disk that seeks. Where the median of a metric
says that this place lacks it, the claim is not testable here; what was measured is told all the same.
"""

import math
from dataclasses import dataclass
from statistics import median

from labbook.checks import did_you_mean
from labbook.claims.comparison import Comparison, NotTestable, check_value, is_missing
from labbook.claims.rule_numbers import RULES, crossing, ends
from labbook.claims.statistics import Interval, median_interval, share_interval
from labbook.errors import InputError

__all__ = ["Outcome", "check_grid", "crossing", "decide", "numbers"]

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


def decide(claim: dict, rows: list[dict], parameters, *, file="claims.yml", profile="quick", known=()):
    """Outcome of a claim's rule. rows: a dict a point, with the parameters, `repeat`, the metric
    and perhaps `client_limited`. known: words that no rule has by a slip of the pen, measured or not.
    InputError for parameters or values that do not exist."""
    rule, metric = claim["rule"], claim.get("metric")
    if rule["name"] == "not_testable":
        return Outcome(NOT_TESTABLE, rule["reason"])
    check_parameters(rule, parameters, file, claim["id"])
    try:
        compared = Comparison(rule, metric, rows, parameters, f"{file}: {claim['id']}", profile, known)
        found, (low, high), unit = _compare(rule, compared)
        interval = median_interval(found)
        if rule["name"] == "always":
            verdict, reason = _place_all(found, low, high, unit)
        elif rule["name"] == "sometimes":
            interval = share_interval(int(sum(found)), len(found))
            verdict, reason = _place_some(compared, low, high, rule.get("unit", ""))
        else:
            verdict, reason = _place(interval, low, high, unit)
    except NotTestable as why:
        return Outcome(NOT_TESTABLE, _lacking(claim, rows) or str(why))
    lacking = _lacking(claim, rows)
    if lacking:
        verdict, reason = NOT_TESTABLE, lacking
    return Outcome(verdict, reason + compared.left_out(), interval, unit)


def _lacking(claim, rows) -> str:
    """What the claim needs of the place and the place, as measured, has not; else nothing."""
    for need in claim.get("needs", ()):
        metric = need["metric"]
        found = [row[metric] for row in rows if not is_missing(row.get(metric))]
        if not found:
            return f"{metric} was not measured, and the claim needs it"
        value, low, high = median(found), *ends(need, "at_least", "at_most")
        if not low <= value <= high:
            return f"{need['otherwise']} ({metric} {value:.3g}, {_wanted(low, high)} needed)"
    return ""


def _wanted(low, high, unit="") -> str:
    """`at least 1 and at most 2`, without the ends that are not there."""
    return " and ".join(f"{word} {end:.4g}{unit}" for word, end in
                        (("at least", low), ("at most", high)) if math.isfinite(end))


def numbers(claim: dict, rows: list[dict], parameters) -> list[float]:
    """What the claim's rule makes of each repeat, as in `decide`; none where that cannot be."""
    check_parameters(claim["rule"], parameters, "claims.yml", claim["id"])
    try:
        compared = Comparison(claim["rule"], claim["metric"], rows, parameters, claim["id"], "")
        return _compare(claim["rule"], compared)[0]
    except NotTestable:
        return []


def _compare(rule, compared):
    number, bounds, unit = RULES[rule["name"]](rule, compared)
    return [number(repeat) for repeat in compared.repeats], bounds, unit


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
    wanted = _wanted(low, high, f" {unit}".rstrip())
    against = sum(not low <= one <= high for one in worst)
    if against:
        return NOT_REPLICATED, f"{against} of {len(worst)} repeats had a point that is not {wanted}"
    if len(worst) < LEAST_REPEATS:
        return _too_few(len(worst))
    return REPLICATED, f"every point of {len(worst)} repeats is {wanted}"


def _place_some(compared, low, high, unit):
    """By any point; the ends belong to what is claimed."""
    wanted = _wanted(low, high, f" {unit}".rstrip())
    points = [compared.all(repeat) for repeat in compared.repeats]
    there = [sum(low <= one <= high for one in of_repeat) for of_repeat in points]
    n, every = len(points), sum(map(len, points))
    if any(there):
        return REPLICATED, (f"{sum(map(bool, there))} of {_repeats(n)} had a point that is {wanted} "
                            f"({sum(there)} of {every} points)")
    if n < LEAST_REPEATS:
        return _too_few(n)
    return NOT_REPLICATED, f"none of {every} points of {n} repeats is {wanted}"


def _too_few(n):
    return TOO_NOISY, f"{_repeats(n)} only; a verdict takes {LEAST_REPEATS} or more"


def _repeats(n):
    return "one repeat" if n == 1 else f"{n} repeats"


def _bounds(low, high, unit):
    if high == math.inf:
        return f"above {low:.4g} {unit}"
    if low == -math.inf:
        return f"below {high:.4g} {unit}"
    return f"between {low:.4g} and {high:.4g} {unit}"


def check_grid(claim: dict, points: list[dict], parameters, *, file, known=()) -> None:
    """Check a claim against the grid of its experiment, before anything is measured.

    points: the parameters of each point; parameters: their names. InputError for a parameter that
    the experiment has not, and for a value that is of another kind than the grid's or looks like a
    misspelt one. A value that this profile leaves out is no error.
    """
    rule = claim["rule"]
    check_parameters(rule, parameters, file, claim["id"])
    for part in ("of", "than", "where"):
        for name, want in rule.get(part, {}).items():
            check_value(name, want, points, known, file, f"{claim['id']}.rule.{part}.{name}")


def check_parameters(rule, parameters, file, claim_id):
    named = [(f"{part}.{name}", name) for part in ("of", "than", "where")
             for name in rule.get(part, {})]
    named += [("along", rule["along"])] if "along" in rule else []
    for key, name in named:
        if name not in parameters:
            raise InputError(f"no parameter {name!r}{did_you_mean(name, parameters)}", file=file,
                             key=f"{claim_id}.rule.{key}", allowed=list(parameters))

"""The rules that decide claims.

A rule computes a number for each repeat and the confidence interval of the numbers' median. The
verdict depends on whether that interval lies within the bounds that the claim states. `of` and
`than` select two arms, paired within each repeat; "ratio" is `of` over `than`; `along` names a
parameter.

greater        the ratio is above `margin`
equal_within   the ratio is between 1/`margin` and `margin`
ratio_between  the ratio is between `low` and `high`
differs_over   the metric at one value of `along` is more than `margin` times that at another: the
               values where it is largest and smallest. The first third of the repeats chooses
               them, the others test them. The claim is refuted where in the other repeats no two
               values differ by so much
grows_with     the metric grows more than `margin` times from the smallest `along` to the largest. The
               growth is that of the line through all points in logarithms, so that every value of
               `along` counts
scales_with    the metric follows a power law of `along`, with an exponent from `low` to `high`
               (either may be omitted), without a constant beside it
proportional   beside a constant, such as the time to start, the metric follows a power law of `along`
               with an exponent from `low` to `high`: 1 is a line. It takes three values of `along`
grows_alike    the growth of `of`, as in grows_with, over that of `than` is between 1/`margin` and
               `margin`
grows_less     the growth of `of` is below 1/`margin` of the growth of `than`
grows_slower   the slope of `of` over `along` is below 1/`margin` of the slope of `than`
crosses_near   with rising `along` the ratio falls from above 1 to below 1, at a value of `along`
               that differs from `at` by less than `within` (in the unit of `along`)
above          the metric is above `value`, in `unit`
below          the metric is below `value`
between        the metric is between `low` and `high`
always         the metric of every point is from `low` to `high` (either may be omitted). For claims
               of "none" or "all": one point outside refutes the claim
sometimes      the metric of some point is from `low` to `high`. For claims that "there are runs in
               which ...": one such point confirms the claim; refuting it takes several repeats
               without one. The interval is that of the share of repeats with such a point. Use it
               for counts and for metrics that are 0 or 1: with enough points, noise alone puts some
               point of a continuous metric anywhere

Where a rule leaves parameters open (in neither arm nor `where`), ratios are averaged
geometrically and metrics arithmetically over their settings. A setting at which the clients were
the limit in any repeat is excluded from all repeats: excluding only the repeats in which the server
was fast would favour slow servers.

A claim may have `needs`: properties of the place, such as a disk with seek times. Where the median
of a metric shows that the place lacks one, the claim is not testable here; the measured value is
shown all the same.
"""

import math
from dataclasses import dataclass
from statistics import median

from labbook.checks import did_you_mean
from labbook.claims.comparison import Comparison, NotTestable, check_value, is_missing
from labbook.claims.rule_numbers import RULES, bounds, crossing, largest_differences
from labbook.claims.statistics import Interval, median_interval, share_interval
from labbook.errors import InputError

__all__ = ["Outcome", "check_grid", "crossing", "decide", "numbers"]

REPLICATED, NOT_REPLICATED = "replicated", "not replicated"
TOO_NOISY, NOT_TESTABLE = "too noisy", "not testable here"
# A verdict other than "too noisy" needs an interval of this level, which takes three repeats.
LEAST_LEVEL, LEAST_REPEATS = 0.75, 3


@dataclass(frozen=True)
class Outcome:
    """`interval`, in `unit`, is None where no number could be computed."""

    verdict: str
    reason: str
    interval: Interval | None = None
    unit: str = ""


def decide(claim: dict, rows: list[dict], parameters, *, file="claims.yml", profile="quick", known=()):
    """Outcome of a claim's rule.

    rows: a dict for each point, with the parameters, `repeat`, the metric and optionally
    `client_limited`. known: words that are valid values of parameters, measured or not.
    InputError for parameters or values that do not exist.
    """
    rule, metric = claim["rule"], claim.get("metric")
    if rule["name"] == "not_testable":
        return Outcome(NOT_TESTABLE, rule["reason"])
    check_parameters(rule, parameters, file, claim["id"])
    try:
        compared = Comparison(rule, metric, rows, parameters, f"{file}: {claim['id']}", profile, known)
        of_repeats, (low, high), unit = _compare(rule, compared)
        interval = median_interval(of_repeats)
        if rule["name"] == "always":
            verdict, reason = _judge_all(of_repeats, low, high, unit)
        elif rule["name"] == "sometimes":
            interval = share_interval(int(sum(of_repeats)), len(of_repeats))
            verdict, reason = _judge_some(compared, low, high, rule.get("unit", ""))
        elif rule["name"] == "differs_over":
            verdict, reason = _judge_difference(interval, low, rule["along"], compared)
        else:
            verdict, reason = _judge(interval, low, high, unit)
    except NotTestable as why:
        return Outcome(NOT_TESTABLE, _unmet_need(claim, rows) or str(why))
    unmet = _unmet_need(claim, rows)
    if unmet:
        verdict, reason = NOT_TESTABLE, unmet
    return Outcome(verdict, reason + compared.exclusions(), interval, unit)


def _unmet_need(claim, rows) -> str:
    """The first of the claim's needs that the place does not meet, in words; empty if it meets all."""
    for need in claim.get("needs", ()):
        metric = need["metric"]
        measured = [row[metric] for row in rows if not is_missing(row.get(metric))]
        if not measured:
            return f"the claim needs {metric}, which was not measured"
        value, low, high = median(measured), *bounds(need, "at_least", "at_most")
        if not low <= value <= high:
            return f"{need['otherwise']} ({metric} is {value:.3g}; the claim needs {_wanted(low, high)})"
    return ""


def _wanted(low, high, unit="") -> str:
    """`at least 1 and at most 2`, without infinite ends."""
    return " and ".join(f"{word} {end:.4g}{unit}" for word, end in
                        (("at least", low), ("at most", high)) if math.isfinite(end))


def numbers(claim: dict, rows: list[dict], parameters) -> list[float]:
    """The rule's number for each repeat that `decide` uses; empty where it cannot be computed."""
    check_parameters(claim["rule"], parameters, "claims.yml", claim["id"])
    try:
        compared = Comparison(claim["rule"], claim["metric"], rows, parameters, claim["id"], "")
        return _compare(claim["rule"], compared)[0]
    except NotTestable:
        return []


def _compare(rule, compared):
    number, limits, unit = RULES[rule["name"]](rule, compared)
    each = [number(repeat) for repeat in compared.repeats]
    return [one for one in each if one is not None], limits, unit


def _judge(interval, low, high, unit):
    if interval.level < LEAST_LEVEL:
        return _too_few(interval.n)
    where = _where(low, high, unit)
    if low < interval.low and interval.high < high:
        return REPLICATED, f"the whole interval lies {where}"
    if interval.high <= low or interval.low >= high:
        return NOT_REPLICATED, f"no part of the interval lies {where}"
    return TOO_NOISY, f"only a part of the interval lies {where}"


def _judge_all(worst, low, high, unit):
    """Verdict by the worst point of each repeat; `low` and `high` themselves are within."""
    wanted = _wanted(low, high, f" {unit}".rstrip())
    against = sum(not low <= one <= high for one in worst)
    if against:
        return NOT_REPLICATED, f"{against} of {len(worst)} repeats had a point that is not {wanted}"
    if len(worst) < LEAST_REPEATS:
        return _too_few(len(worst))
    return REPLICATED, f"every point in {len(worst)} repeats is {wanted}"


def _judge_some(compared, low, high, unit):
    """Verdict by any point; `low` and `high` themselves are within."""
    wanted = _wanted(low, high, f" {unit}".rstrip())
    points = [compared.all(repeat) for repeat in compared.repeats]
    within = [sum(low <= one <= high for one in of_repeat) for of_repeat in points]
    n, every = len(points), sum(map(len, points))
    if any(within):
        return REPLICATED, (f"{sum(map(bool, within))} of {_repeats(n)} had a point that is {wanted} "
                            f"({sum(within)} of {every} points)")
    if n < LEAST_REPEATS:
        return _too_few(n)
    return NOT_REPLICATED, f"none of {every} points in {n} repeats is {wanted}"


def _judge_difference(interval, margin, along, compared):
    """Verdict on the two values that the first repeats chose. These may have chosen wrongly, so the
    claim is refuted only if no two values differ by more than the margin."""
    if interval.level < LEAST_LEVEL:
        first = len(compared.split()[0])
        return _too_few(interval.n, f", after {_repeats(first)} that chose the values")
    if interval.low > margin:
        return REPLICATED, f"the whole interval lies {_where(margin, math.inf, 'times')}"
    largest = median_interval(largest_differences(along, compared))
    if largest.high <= margin:
        return NOT_REPLICATED, f"no two values of {along} differ by more than {margin:.4g} times"
    return TOO_NOISY, (f"the interval does not lie {_where(margin, math.inf, 'times')}, and the largest "
                       f"difference between any two values of {along} may")


def _too_few(n, beside=""):
    return TOO_NOISY, f"only {_repeats(n)}{beside}; a verdict needs {LEAST_REPEATS} or more"


def _repeats(n):
    return "one repeat" if n == 1 else f"{n} repeats"


def _where(low, high, unit):
    if high == math.inf:
        return f"above {low:.4g} {unit}"
    if low == -math.inf:
        return f"below {high:.4g} {unit}"
    return f"between {low:.4g} and {high:.4g} {unit}"


def check_grid(claim: dict, points: list[dict], parameters, *, file, known=()) -> None:
    """Check a claim against the grid of its experiment, before anything is measured.

    points: the parameters of each point; parameters: their names. InputError for a parameter that
    the experiment does not have, and for a value of another type than the grid's or one that looks
    misspelt. A value that only another profile measures is no error.
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

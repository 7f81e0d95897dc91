"""The rules that decide claims.

A rule computes a number for each repeat and an interval of the numbers' median that holds over all
looks (claims/looks.py). The verdict depends on whether that interval lies within the bounds that the
claim states. `of` and `than` select two arms, paired within each repeat; "ratio" is `of` over `than`;
`along` names a parameter.

greater        the ratio is above `margin`
equal_within   the ratio is between 1/`margin` and `margin`
ratio_between  the ratio is between `low` and `high` (either may be omitted)
differs_over   the metric at one value of `along` is more than `margin` times that at another: the
               values where it is largest and smallest. The first two repeats choose them, the
               others test them. The claim is refuted where in the other repeats no two values
               differ by so much. `margin` is above 1: some two values always differ
grows_with     the metric grows more than `margin` times from the smallest `along` to the largest. The
               growth is that of the line through all points in logarithms, so that every value of
               `along` counts
rises_by       the slope of the metric over `along` is between `low` and `high` (either may be omitted), in
               `unit`. It can fail where growth as such cannot
scales_with    the metric follows a power law of `along`, with an exponent from `low` to `high`
               (either may be omitted), without a constant beside it
proportional   beside a constant, such as the time to start, the metric follows a power law of `along`
               with an exponent from `low` to `high`: 1 is a line. It takes three values of `along`.
               A repeat counts as above a bound if its curve is bent more than one with that
               exponent. A metric that does not rise refutes the claim
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
               of "none" or "all": one point outside refutes the claim, whenever it is seen. It is
               confirmed by so many repeats without one that, if such points came in a share `rate`
               of all repeats (0.1 if not said), one would have been seen with 95 %: 29 for 0.1. With
               `per: point` the share is of all points, each of which must then be a try of its own
sometimes      the metric of some point is from `low` to `high`. For claims that "there are runs in
               which ...": one such point confirms the claim, and as many repeats without one as
               `always` takes refute it. Use it for counts and for metrics that are 0 or 1: with
               enough points, noise alone puts some point of a continuous metric anywhere

A claim that one arm is greater, or grows more or less, should have a `margin` above 1, by how much it is, such as
half of the difference that the paper reports: without one, two arms that are equal leave it open with any number of
repeats, as no interval then lies on one side of 1.

A rule of ratios may say `symmetric: true`: that log ratios are symmetric about their median. Signed ranks
then decide, with fewer repeats.

`baseline` names what is subtracted from every value first, such as idle traffic or the time of a server
that does nothing: {metric: NAME} another metric of the same point, {arm: {parameter: value}} the same
metric at the point with these parameters.

Where a rule leaves parameters open (in neither arm nor `where`), ratios are averaged geometrically and metrics
arithmetically over their settings. A point at which the clients were the limit (`METRIC_limited`, or without it
`client_limited`, is 1) is a bound: the clients make a time (`_ms`, `_us`) too long and a rate (`_per_s`) too
low. So the number of its repeat is at most, or at least, the true one, or unknown, and counts against every end
of the interval that it does not make certain (claims/bounds.py). So does a repeat that lacks a value, or has
one of which there is no ratio. A setting that the clients limited in most of the first repeats is left out of
all, unless no setting is left. For `always` and `sometimes` such points are left out, and a repeat with one counts
only for what was seen in it: the share is of the repeats that the clients did not limit. There a setting is left out
only if the clients limited it in every repeat.

A claim may have `needs`: properties of the place, such as a disk with seek times. Where the median
of a metric, over the points of one of the claim's arms, shows that the place lacks one, the claim is
not testable here; the measured value is shown all the same.
"""

import math
from dataclasses import replace
from statistics import median

from labbook.checks import did_you_mean
from labbook.claims.bounds import NO_NUMBER
from labbook.claims.bounds import words as bounds_words
from labbook.claims.comparison import (
    FIRST,
    LIMITED_IN_PART,
    NO_WHOLE,
    Comparison,
    NotAbove0,
    NotRun,
    NotTestable,
)
from labbook.claims.decisions import (
    CHOOSING,
    JUDGED,
    NOT_REPLICATED,
    NOT_RUN,
    NOT_TESTABLE,
    OPEN,
    RATE,
    REPLICATED,
    Outcome,
    amount,
    by_equality,
    by_median,
    by_sight,
    drift,
    expected_wrong,
    repeats,
    too_few,
    tries_needed,
    where,
)
from labbook.claims.looks import LOOKS, OUTLYING_LEANING
from labbook.claims.rule_numbers import RULES, bounds, by_point, crossing, largest_difference
from labbook.claims.selection import check_value, has, is_missing, wanted_arms
from labbook.claims.statistics import median_interval
from labbook.errors import InputError

__all__ = ["JUDGED", "NOT_REPLICATED", "NOT_RUN", "NOT_TESTABLE", "OPEN", "REPLICATED", "Outcome", "check_grid",
           "crossing", "decide", "expected_wrong", "numbers", "repeats"]


def decide(claim: dict, rows: list[dict], parameters, *, file="claims.yml", profile="quick"):
    """Outcome of a claim's rule.

    rows: a dict for each point, with the parameters, `repeat`, the metric and optionally
    `client_limited`. InputError for parameters that do not exist.
    """
    rule, metric = claim["rule"], claim.get("metric")
    if rule["name"] == "not_testable":
        return Outcome(NOT_TESTABLE, rule["reason"])
    check_parameters(rule, parameters, file, claim["id"])
    try:
        compared = Comparison(rule, metric, rows, parameters, profile)
        outcome = DECIDED_BY.get(rule["name"], _decide_by_median)(rule, compared)
    except NotTestable as why:
        if unmet := _unmet_need(claim, rows):
            return Outcome(*unmet)
        if isinstance(why, NotRun):
            return Outcome(NOT_RUN, str(why))
        return Outcome(NOT_TESTABLE, str(why), repeats_needed=LOOKS[0] if _are_early(claim, rows) else None)
    judged = set(compared.with_points)
    unmet = _unmet_need(claim, [row for row in rows if row["repeat"] in judged])
    if unmet:
        outcome = replace(outcome, verdict=unmet[0], reason=unmet[1], tendency=None, repeats_needed=None)
    return replace(outcome, reason=outcome.reason + drift(outcome.interval) + compared.exclusions())


def _are_early(claim, rows) -> bool:
    """Whether fewer repeats than tell which settings a claim is about have points of each of its arms."""
    of_arms = ({row["repeat"] for row in rows if has(row, arm)} for arm in wanted_arms(claim))
    return len(set.intersection(*of_arms)) < FIRST


def _unmet_need(claim, rows) -> tuple[str, str] | None:
    """The verdict and the reason of the first of the claim's needs that the place does not meet; None
    if it meets all."""
    for need in claim.get("needs", ()):
        metric = need["metric"]
        low, high = bounds(need, "at_least", "at_most")
        if not (everywhere := _values(rows, metric)):
            return NOT_RUN, f"the claim needs {metric}, which was not measured"
        of_arms = (_values([row for row in rows if has(row, arm)], metric) for arm in wanted_arms(claim))
        for values in [found for found in of_arms if found] or [everywhere]:    # an arm without is as the others are
            value = median(values)
            if not low <= value <= high:
                return NOT_TESTABLE, (f"{need['otherwise']} ({metric} is {value:.3g}; the claim needs "
                                      f"{_wanted(low, high)})")
    return None


def _values(rows, metric) -> list:
    return [row[metric] for row in rows if not is_missing(row.get(metric))]


def _wanted(low, high, unit="") -> str:
    """`at least 1 and at most 2`, without infinite ends."""
    return " and ".join(f"{word} {amount(end, unit)}" for word, end in
                        (("at least", low), ("at most", high)) if math.isfinite(end))


def numbers(claim: dict, rows: list[dict], parameters) -> dict[int, float]:
    """{repeat: the rule's number}, of the repeats that `decide` uses and that have one; empty where it cannot be
    computed, as where no row has a value that the claim names."""
    check_parameters(claim["rule"], parameters, "claims.yml", claim["id"])
    try:
        compared = Comparison(claim["rule"], claim["metric"], rows, parameters, "")
        number, _, _ = RULES[claim["rule"]["name"]](claim["rule"], compared)
        each, _ = _by_repeat(compared, number, compared.with_points)
    except NotTestable:
        return {}
    return {repeat: one for repeat, one in each.items() if one != NO_NUMBER}


def _compare(rule, compared):
    """The rule's number of each repeat that it uses, its limits, its unit, and what each number is of the true one."""
    number, limits, unit = RULES[rule["name"]](rule, compared)
    each, bounds = _numbers(compared, number, compared.with_points)
    return each, limits, unit, [] if compared.by_point else bounds


def _numbers(compared, number, among, rule=None) -> tuple[list[float], list[str]]:
    """number(repeat) for those of `among` that have one, and what each is of the true one; that of a repeat which
    lacks a value, or has one that is not above 0, is the others' median, and counts on either side. rule: whose
    number it is, by default the comparison's. NotTestable where no repeat has a number."""
    used, lost = _by_repeat(compared, number, among)
    known = [one for one in used.values() if one != NO_NUMBER]
    if not known:
        raise lost or NotTestable(NO_WHOLE)
    usual = sorted(known)[len(known) // 2]      # one of them: there is no mean of two infinite ones
    return ([usual if one == NO_NUMBER else one for one in used.values()],
            [NO_NUMBER if one == NO_NUMBER else compared.bound(repeat, rule) for repeat, one in used.items()])


def _by_repeat(compared, number, among) -> tuple[dict, NotAbove0 | None]:
    """{repeat: number(repeat), or NO_NUMBER} of those of `among` that the rule uses, and why the last has none."""
    each, lost = {}, None
    for repeat in among:
        try:
            each[repeat] = NO_NUMBER if repeat in compared.incomplete else number(repeat)
        except NotAbove0 as why:
            each[repeat], lost = NO_NUMBER, why
    return {repeat: one for repeat, one in each.items() if one is not None}, lost


def _decide_by_median(rule, compared, by=by_median):
    each, (low, high), unit, bounds = _compare(rule, compared)
    return _with_bounds(by(each, low, high, unit, rule.get("symmetric", False), bounds), bounds)


def _decide_equality(rule, compared):
    return _decide_by_median(rule, compared, by_equality)


def _with_bounds(found, bounds):
    """The outcome, and in its reason how many repeats are bounds. NotTestable where all of several are, and
    neither they nor more of them would decide."""
    bounds_text = bounds_words(bounds, amount(found.interval.value, found.unit, 3))
    undecided = found.verdict == OPEN and not found.tendency and not found.repeats_needed
    if len(bounds) > 1 and all(bounds) and undecided:
        raise NotTestable(f"{bounds_text}, which does not decide")
    return replace(found, reason=f"{bounds_text}; {found.reason}") if bounds_text else found


def _decide_all(rule, compared):
    """By the worst point of each repeat; `low` and `high` themselves are within."""
    worst, (low, high), unit = _sights(rule, compared)
    wanted = _wanted(low, high, unit)
    if not worst:
        return _no_whole_repeat(rule, compared, "every one", wanted)
    outside, points = [not low <= one <= high for one in worst.values()], _points(compared, worst)
    tries = [not low <= one <= high for one in points] if by_point(rule) else outside
    subject = f"every one of {len(tries)} points" if by_point(rule) else "every point"
    reason = (f"{sum(outside)} of {len(worst)} repeats had a point that is not {wanted}" if any(outside)
              else f"{subject} in {repeats(len(worst))} is {wanted}")
    found = by_sight(tries, False, rule.get("rate", RATE), reason, *_tries(rule, tries, compared))
    middle = median_interval(worst.values())
    if any(tries) and low <= middle.value <= high:      # how often, since the median is of those within
        return replace(found, interval=replace(found.interval, n=len(worst)))
    return replace(found, interval=middle, unit=unit)


def _decide_some(rule, compared):
    """By any point; `low` and `high` themselves are within."""
    seen, (low, high), _ = _sights(rule, compared)
    wanted = _wanted(low, high, rule.get("unit", ""))
    if not seen:
        return _no_whole_repeat(rule, compared, "none", wanted)
    points = _points(compared, seen)
    within, n = sum(low <= one <= high for one in points), repeats(len(seen))
    reason = (f"{int(sum(seen.values()))} of {n} had a point that is {wanted} ({within} of {len(points)} points)"
              if within else f"none of {len(points)} points in {n} is {wanted}")
    tries = [low <= one <= high for one in points] if by_point(rule) else [bool(one) for one in seen.values()]
    found = by_sight(tries, True, rule.get("rate", RATE), reason, *_tries(rule, tries, compared))
    return replace(found, interval=replace(found.interval, n=len(seen)))    # of points, too, in so many repeats


def _sights(rule, compared):
    """{repeat: its number} of the repeats that count for a rule by sight, the rule's limits, and its unit."""
    number, limits, unit = RULES[rule["name"]](rule, compared)
    each = {repeat: number(repeat) for repeat in compared.with_points}
    return {repeat: one for repeat, one in each.items() if one is not None}, limits, unit


def _no_whole_repeat(rule, compared, how_many, wanted) -> Outcome:
    """Where each repeat lacks a point and nothing was seen in any: `how_many` of the points are what is `wanted`.
    NotTestable where the clients limited points."""
    if compared.limited:
        raise NotTestable(LIMITED_IN_PART)
    among, needed = compared.with_points, tries_needed(rule.get("rate", RATE))
    points = len(_points(compared, among))
    return Outcome(OPEN, f"{how_many} of {points} points in {repeats(len(among))} is {wanted}, but no repeat "
                   f"has all of its points; a verdict needs {needed} repeats that have")


def _points(compared, among) -> list[float]:
    """All points of these repeats."""
    return [one for repeat in among for one in compared.all(repeat)]


def _tries(rule, tries, compared) -> tuple[str, float]:
    """What is tried, in words, and how often in a repeat that was measured, of which some may say nothing."""
    return "points" if by_point(rule) else "repeats", len(tries) / len(compared.measured)


def _decide_difference(rule, compared):
    """On the two values that the first repeats chose. These may have chosen wrongly, so the claim is refuted
    only if no two values differ by more than the margin."""
    tested, (margin, _), unit, bounds = _compare(rule, compared)
    along, choosing = rule["along"], len(compared.split()[0])
    found = _with_bounds(by_median(tested, margin, math.inf, unit, bounds=bounds), bounds)
    if found.repeats_needed:
        found = replace(found, repeats_needed=found.repeats_needed + CHOOSING)
    if found.verdict == REPLICATED:
        return found
    largest, its_bounds = _numbers(compared, largest_difference(along, compared), compared.split()[1])
    largest = by_median(largest, -math.inf, margin, unit, bounds=its_bounds)
    if largest.verdict == REPLICATED:
        return replace(found, verdict=NOT_REPLICATED, tendency=None, repeats_needed=None,
                       reason=f"no two values of {along} differ by more than {margin:.4g} times")
    refuting = found.tendency and found.tendency["verdict"] == NOT_REPLICATED
    if refuting and not (largest.tendency and largest.tendency["verdict"] == REPLICATED):
        found = replace(found, tendency=None)       # another pair of values differs by more
    if len(tested) < LOOKS[0]:
        return replace(found, verdict=OPEN,
                       reason=too_few(len(tested), f", after {repeats(choosing)} that chose the values"))
    needed = [look + CHOOSING for look in [largest.repeats_needed] if look] + [found.repeats_needed or math.inf]
    return replace(found, verdict=OPEN, repeats_needed=min(needed) if min(needed) < math.inf else None,
                   reason=f"the interval does not lie {where(margin, math.inf, 'times')}, and the largest "
                   f"difference between any two values of {along} may")


def _decide_exponent(rule, compared):
    """Beside a constant. The repeats' signs lean a little at a bound, so more of them are needed. A curve that
    falls may be bent like one that rises, so a claim is met only where the metric rises."""
    each, (low, high), unit, bounds = _compare(rule, compared)
    along = rule["along"]
    found = _with_bounds(by_median(each, low, high, unit, bounds=bounds, outlying=OUTLYING_LEANING), bounds)
    rises, its_bounds = _numbers(compared, lambda repeat: compared.growth(0, repeat, along), compared.repeats,
                                 "grows_with")
    rise = by_median(rises, 1, math.inf, "times", bounds=its_bounds)
    if rise.verdict == NOT_REPLICATED:
        return replace(found, verdict=NOT_REPLICATED, tendency=None, repeats_needed=None,
                       reason=f"the metric does not rise with {along}")
    if (found.verdict, rise.verdict) == (REPLICATED, OPEN):
        return replace(found, verdict=OPEN, repeats_needed=rise.repeats_needed,
                       reason=f"{found.reason}, but whether the metric rises with {along} is open: {rise.reason}")
    return found


DECIDED_BY = {"always": _decide_all, "sometimes": _decide_some, "differs_over": _decide_difference,
              "equal_within": _decide_equality, "grows_alike": _decide_equality,
              "proportional": _decide_exponent}


def check_grid(claim: dict, points: list[dict], parameters, *, file, known=()) -> None:
    """Check a claim against the grid of its experiment, before anything is measured.

    points: the parameters of each point; parameters: their names. InputError for a parameter that
    the experiment does not have, and for a value of another type than the grid's or one that looks
    misspelt. A value that only another profile measures is no error.
    """
    rule = claim["rule"]
    check_parameters(rule, parameters, file, claim["id"])
    _check_arms(rule, file, claim["id"])
    _check_along(rule, points, file, claim["id"])
    _check_single_curve(claim, points, file)
    for part in ("of", "than", "where"):
        for name, want in rule.get(part, {}).items():
            check_value(name, want, points, known, file, f"{claim['id']}.rule.{part}.{name}")
    for name, want in rule.get("baseline", {}).get("arm", {}).items():
        check_value(name, want, points, known, file, f"{claim['id']}.rule.baseline.arm.{name}")


def _check_arms(rule, file, claim_id):
    if "than" in rule and rule["than"] == rule.get("of", {}):
        raise InputError("both arms are the same points", file=file, key=f"{claim_id}.rule.than",
                         allowed="another arm than `of`")


def _check_along(rule, points, file, claim_id):
    """InputError where the metric is to follow a parameter that is no number; `differs_over` takes any."""
    along = rule.get("along")
    if along is None or rule["name"] == "differs_over":
        return
    others = {str(point[along]) for point in points
              if along in point and (point[along] is None or isinstance(point[along], (str, bool)))}
    if others:
        raise InputError(f"{rule['name']} follows a number, and {along} has other values: {', '.join(sorted(others))}",
                         file=file, key=f"{claim_id}.rule.along", allowed="a parameter whose values are numbers")


def _check_single_curve(claim, points, file):
    """InputError where a rule that has a single curve leaves open which of several it is."""
    rule = claim["rule"]
    if rule["name"] != "crosses_near":
        return
    wanted = {**rule.get("where", {}), **rule["of"]}
    others = [{name: value for name, value in point.items() if name not in (rule["along"], *rule["of"])}
              for point in points if has(point, wanted)]
    for name in others[0] if others else ():
        if len(values := {str(one.get(name)) for one in others}) > 1:
            raise InputError(f"there is a curve for each {name}: {', '.join(sorted(values))}", file=file,
                             key=f"{claim['id']}.rule.where.{name}", allowed="one of these values")


def check_parameters(rule, parameters, file, claim_id):
    """InputError where a rule names a parameter that the claim's experiment does not have."""
    named = [(f"{part}.{name}", name) for part in ("of", "than", "where")
             for name in rule.get(part, {})]
    named += [(f"baseline.arm.{name}", name) for name in rule.get("baseline", {}).get("arm", {})]
    named += [("along", rule["along"])] if "along" in rule else []
    for key, name in named:
        if name not in parameters:
            raise InputError(f"no parameter {name!r}{did_you_mean(name, parameters)}", file=file,
                             key=f"{claim_id}.rule.{key}", allowed=list(parameters))

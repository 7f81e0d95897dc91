"""The rules that decide claims. Each makes one number of every repeat, its two arms paired within
the repeat, and asks whether the interval of their median lies where the claim says.

greater        `of` is greater than `than`: their ratio is above `margin`
equal_within   their ratio lies between 1/`margin` and `margin`
grows_with     from the smallest to the largest `along` the measure grows more than `margin` times
grows_alike    the growths of the two arms so measured differ by less than `margin` times
grows_less     the growth of `of` is less than 1/`margin` of that of `than`
grows_slower   the slope of `of` over `along` is below 1/`margin` of that of `than`
crosses_near   `of` is the greater at first and the smaller later; from about `at` on, give or take
               `within`, in the unit of `along`
above          the measure itself lies above `value`, in `unit`
Over what a rule leaves open (parameters in neither arm nor `where`) ratios are averaged
geometrically. A setting at which the clients were the limit in any repeat is left out of all:
to drop only the repeats in which the server was fast would favour the slow ones.
"""

import math
from dataclasses import dataclass

from labbook.checks import did_you_mean
from labbook.errors import InputError
from labbook.study.statistics import Interval, geometric_mean, median_interval, slope

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


class NotTestable(Exception):
    """This profile's points cannot decide the claim; the message says why."""


def decide(claim: dict, rows: list[dict], parameters, *, file="claims.yml", profile="quick"):
    """Outcome of a claim's rule. rows: a dict a point, with the parameters, `repeat`, the measure
    and perhaps `client_limited`. InputError for parameters or values that do not exist."""
    rule, measure = claim["rule"], claim.get("measure")
    if rule["name"] == "not_testable":
        return Outcome(NOT_TESTABLE, rule["reason"])
    _check_parameters(rule, parameters, file, claim["id"])
    try:
        chosen = _Chosen(rule, measure, rows, parameters, f"{file}: {claim['id']}", profile)
        number, (low, high), unit = _RULES[rule["name"]](rule, chosen)
        interval = median_interval([number(repeat) for repeat in chosen.repeats])
        verdict, reason = _place(interval, low, high, unit)
    except NotTestable as why:
        return Outcome(NOT_TESTABLE, str(why))
    return Outcome(verdict, reason + chosen.left_out(), interval, unit)


def _place(interval, low, high, unit):
    if interval.level < LEAST_LEVEL:
        return TOO_NOISY, (f"{_repeats(interval.n)}; a verdict takes {LEAST_REPEATS} or more")
    bounds = _bounds(low, high, unit)
    if low < interval.low and interval.high < high:
        return REPLICATED, f"the whole interval lies {bounds}"
    if interval.high <= low or interval.low >= high:
        return NOT_REPLICATED, f"no part of the interval lies {bounds}"
    return TOO_NOISY, f"only a part of the interval lies {bounds}"


def _repeats(n):
    return "one repeat only" if n == 1 else f"{n} repeats only"


def _bounds(low, high, unit):
    if high == math.inf:
        return f"above {low:.4g} {unit}"
    if low == -math.inf:
        return f"below {high:.4g} {unit}"
    return f"between {low:.4g} and {high:.4g} {unit}"


class _Chosen:
    """The measure's values in the arms of a rule: arm -> {(repeat, setting of the rest): value}."""

    def __init__(self, rule, measure, rows, parameters, place, profile):
        where = rule.get("where", {})
        self.arms, self.limited, self.parameters = [], 0, parameters
        self.operations, self.failed, spoilt = 0, 0, set()
        arms = [rule.get("of", {})] + ([rule["than"]] if "than" in rule else [])
        for arm in arms:
            found = _select(rows, {**where, **arm}, place, profile)
            limited = [row for row in found if row.get("client_limited") == 1]
            self.limited += len(limited)
            spoilt |= {self._rest(row, arm) for row in limited}
            self._count(row for row in found if row.get("client_limited") != 1)
            self.arms.append({(row["repeat"], self._rest(row, arm)): float(row[measure])
                              for row in found if not _missing(row.get(measure))})
        together = {(repeat, rest) for repeat, rest in set.intersection(*map(set, self.arms))
                    if rest not in spoilt}
        self.repeats = sorted({repeat for repeat, _ in together})
        rests = {rest for _, rest in together}
        self.rests = sorted((rest for rest in rests
                             if all((r, rest) in together for r in self.repeats)), key=str)
        if not self.rests:
            raise NotTestable("limited by the clients" if self.limited else
                              f"no repeat has {measure} of all that is compared")

    def _rest(self, row, arm):
        return tuple((p, row[p]) for p in self.parameters if p not in arm)

    def _count(self, rows):
        for row in rows:
            if not _missing(row.get("errors")):
                self.operations += int(row["n"])
                self.failed += int(row["errors"])

    def left_out(self) -> str:
        """What the numbers do not stand on: settings limited by the clients, failed operations."""
        words = ""
        if self.limited:
            points = "1 point" if self.limited == 1 else f"{self.limited} points"
            words += f"; settings limited by the clients ({points}) are left out of all repeats"
        if self.failed:
            words += f"; {self.failed} of {self.operations} operations failed and are not in the times"
        return words

    def curves(self, along) -> list[list]:
        """For every setting but `along`: [(x, rest)] in the order of x, of at least two x."""
        curves = {}
        for rest in self.rests:
            others = tuple((p, v) for p, v in rest if p != along)
            curves.setdefault(others, []).append((dict(rest)[along], rest))
        found = [sorted(c, key=lambda one: one[0]) for c in curves.values() if len(c) > 1]
        if not found:
            raise NotTestable(f"fewer than two values of {along} to compare" + self.left_out())
        return found

    def ratios(self, repeat, rests) -> list[float]:
        of, than = self.arms
        return [_ratio(of[repeat, rest], than[repeat, rest]) for rest in rests]

    def growth(self, arm, repeat, along) -> float:
        values = self.arms[arm]
        return geometric_mean(_ratio(values[repeat, curve[-1][1]], values[repeat, curve[0][1]])
                              for curve in self.curves(along))

    def slope(self, arm, repeat, along) -> float:
        slopes = [slope([x for x, _ in c], [self.arms[arm][repeat, rest] for _, rest in c])
                  for c in self.curves(along)]
        return sum(slopes) / len(slopes)


def _select(rows, wanted, place, profile):
    for name, want in wanted.items():
        if any(_matches(row[name], want) for row in rows):
            continue
        known = sorted({row[name] for row in rows}, key=str)
        near = did_you_mean(want, known) if isinstance(want, str) else ""
        if near:
            raise InputError(f"no point has {name} {want!r}{near}", file=place, allowed=known)
        raise NotTestable(f"the {profile} profile measures no {name} {_wanted(want)}")
    return [row for row in rows if all(_matches(row[n], want) for n, want in wanted.items())]


def _matches(value, want) -> bool:
    if isinstance(want, dict):
        return (not _missing(value) and want.get("at_least", -math.inf) <= value
                <= want.get("at_most", math.inf))
    return _missing(value) if want is None else value == want


def _wanted(want) -> str:
    if isinstance(want, dict):
        return " and ".join(f"{word.replace('_', ' ')} {v:g}" for word, v in want.items())
    return str(want)


def _missing(value) -> bool:
    return value is None or value != value


def _ratio(of, than) -> float:
    if of <= 0 or than <= 0:
        raise NotTestable(f"a ratio of {of:g} to {than:g} says nothing")
    return of / than


def _greater(rule, chosen):
    return (lambda repeat: geometric_mean(chosen.ratios(repeat, chosen.rests)),
            (rule.get("margin", 1), math.inf), "times")


def _equal_within(rule, chosen):
    number, _, unit = _greater(rule, chosen)
    return number, (1 / rule["margin"], rule["margin"]), unit


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
    values = chosen.arms[0]
    return (lambda repeat: geometric_mean(values[repeat, rest] for rest in chosen.rests),
            (rule["value"], math.inf), rule.get("unit", ""))


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
          "crosses_near": _crosses_near, "above": _above}


def _check_parameters(rule, parameters, file, claim_id):
    named = [(f"{part}.{name}", name) for part in ("of", "than", "where")
             for name in rule.get(part, {})]
    named += [("along", rule["along"])] if "along" in rule else []
    for key, name in named:
        if name not in parameters:
            raise InputError(f"no parameter {name!r}{did_you_mean(name, parameters)}", file=file,
                             key=f"{claim_id}.rule.{key}", allowed=list(parameters))

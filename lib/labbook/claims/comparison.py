"""A comparison: the points that a rule compares, and their values in each repeat."""

import math
from functools import cache
from statistics import median

from labbook.claims.bounds import OF_GROWTH, OF_VALUES, UNKNOWN, direction
from labbook.claims.compared import plain, with_value
from labbook.claims.decisions import BY_SIGHT, CHOOSING
from labbook.claims.looks import LOOKS
from labbook.claims.selection import is_missing, matches
from labbook.claims.statistics import bend, exponent_between, geometric_mean, slope
from labbook.errors import InputError

FIRST = 3       # repeats that tell which settings a claim is about
LIMITED = "the clients were the limit in every setting that could be compared"
LIMITED_IN_PART = "each repeat has a point at which the clients were the limit, or lacks one"
NO_WHOLE = "no repeat that could be compared has a value of every setting"


class NotTestable(Exception):
    """The measured points cannot decide the claim; the message says why."""


class NotRun(NotTestable):
    """The run measured no such point; the message says which."""


class NotAbove0(NotTestable):
    """A repeat has a value that is not above 0, where a ratio or a logarithm needs one, or none at all."""


class Comparison:
    """The metric's values in the arms of a rule, less their baseline where the rule names one.

    arms: for each arm {(repeat, setting): value}. A setting is a tuple of (parameter, value) of the parameters that do
    not select the arm. repeats, settings: those that were measured in every arm, repeat and setting; incomplete: of
    these repeats, those without a value at one of them (of an event that did not come, say), whose number is unknown.
    partial: further repeats that have a part of the settings, for rules by point only. excluded: settings that the
    clients limited in most of the first repeats, and for rules by sight in every repeat that measured them; empty where
    these are all, but for rules by sight. limited, without: numbers of points that are limited by the clients, or have
    no value. NotTestable, or NotRun, without any such setting, and where no repeat's number is known or bounded.
    """

    def __init__(self, rule, metric, rows, parameters, profile):
        self.arms, self.limited, self.parameters, self.rule = [], 0, parameters, rule
        self.metric, self.without, self.by_point = metric, 0, rule["name"] in BY_SIGHT
        self.of_successes = str(metric).endswith(("_ms", "_per_s"))
        self.operations, self.failed, self.excluded, self.partial, self.incomplete = 0, 0, set(), set(), set()
        self.baseline = rule.get("baseline", {})
        self._curves, self._bends = {}, {}      # along -> curves; (along, setting) -> bend
        # Of each arm (repeat, setting): measured, limited by the clients, and with a baseline that was.
        self._points, self._limited, self._by_baseline = [], [], []
        for arm in [rule.get("of", {})] + ([rule["than"]] if "than" in rule else []):
            wanted = {**rule.get("where", {}), **arm}
            self._take(_select(rows, wanted, profile), arm, self._subtract(rows, wanted),
                       self._limited_baselines(rows, wanted))
        self.excluded = self._always_limited() if self.by_point else self._usually_limited()
        self._keep()
        if not self.settings and self.excluded and not self.by_point:
            self.excluded = set()
            self._keep()
        if not self._is_usable():
            if self._share_no_repeat():
                raise NotRun("the arms were measured in no repeat together")
            if self.limited and set.intersection(*map(set, self.arms)):     # in each arm something has a value
                raise NotTestable(LIMITED)
            recorded = any(str(metric) in row for row in rows)
            raise (NotTestable if self.without and recorded else NotRun)(
                f"no setting has {metric} in every arm and every repeat")

    def _is_usable(self) -> bool:
        """Whether some repeat says something."""
        if self.by_point:
            return bool(self.with_points)
        return bool(self.settings) and any(self.bound(repeat) != UNKNOWN for repeat in self.whole)

    def _share_no_repeat(self) -> bool:
        """Whether all arms were measured, but no repeat measured each of them."""
        of_arms = [{repeat for repeat, _ in points} for points in self._points]
        return all(of_arms) and not set.intersection(*of_arms)

    @property
    def whole(self) -> list:
        """The repeats with a value everywhere."""
        return [repeat for repeat in self.repeats if repeat not in self.incomplete]

    @property
    def with_points(self) -> list:
        """The repeats with all or a part of the settings."""
        return sorted({*self.repeats, *self.partial})

    @property
    def measured(self) -> set:
        """The repeats with any point of an arm, with a value or without."""
        return {repeat for points in self._points for repeat, _ in points}

    def _take(self, points, arm, subtract, has_limited_baseline):
        """Add an arm with the values of these points."""
        by_baseline = {(row["repeat"], self._setting(row, arm)) for row in points if has_limited_baseline(row)}
        self._by_baseline.append(by_baseline)
        limited = by_baseline | {(row["repeat"], self._setting(row, arm)) for row in points
                                 if is_limited(row, self.metric)}
        self.limited += len(limited)
        self._limited.append(limited)
        self._count_operations(points)
        self._points.append({(row["repeat"], self._setting(row, arm)) for row in points})
        values = [(row, subtract(row)) for row in points]
        self.without += sum(value is None for _, value in values)
        self.arms.append({(row["repeat"], self._setting(row, arm)): value
                          for row, value in values if value is not None})

    def _subtract(self, rows, wanted):
        """The function of a row of an arm that gives its value, less the baseline; None without one."""
        cost = self._cost(rows, wanted)

        def value(row):
            measured, less = row.get(self.metric), cost(row)
            return None if is_missing(measured) or is_missing(less) else float(measured) - float(less)

        return value

    def _cost(self, rows, wanted):
        """The function of a row that gives its baseline: another metric of the same point, or this metric at
        the point with the same parameters but for those of the baseline's arm."""
        if "arm" not in self.baseline:
            return (lambda row: row.get(self.baseline["metric"])) if self.baseline else lambda row: 0.0
        costs = {self._place(row): row.get(self.metric) for row in self._baselines(rows, wanted)}
        return lambda row: costs.get(self._place(row))

    def _limited_baselines(self, rows, wanted):
        """The function of a row that says whether the clients were the limit of its baseline, so that the difference
        may be off either way."""
        if "arm" not in self.baseline:
            return lambda row: bool(self.baseline) and is_limited(row, self.baseline["metric"])
        limited = {self._place(row) for row in self._baselines(rows, wanted) if is_limited(row, self.metric)}
        return lambda row: self._place(row) in limited

    def _baselines(self, rows, wanted) -> list:
        """The points of the baseline's arm."""
        other = {**wanted, **self.baseline["arm"]}
        return [row for row in rows if all(matches(row[name], want) for name, want in other.items())]

    def _place(self, row) -> tuple:
        """Where a row has its baseline: (repeat, its other parameters)."""
        return row["repeat"], self._setting(row, self.baseline["arm"])

    def _usually_limited(self) -> set:
        """Settings that the clients limited in most of the first repeats. Later repeats change nothing: else
        those in which the server was fast would choose what the claim is about."""
        at = set.intersection(*self._points)
        first = sorted({repeat for repeat, _ in at})[:FIRST]
        among = [one for one in at if one[0] in first]
        limited = [setting for repeat, setting in among if self._is_limited(repeat, setting)]
        return {s for s in set(limited) if 2 * limited.count(s) > sum(setting == s for _, setting in among)}

    def _always_limited(self) -> set:
        """Settings that the clients limited in every repeat that measured them. One point that they did not limit
        may show what a rule by sight is about, in whichever repeat it is."""
        at = set.intersection(*self._points)
        free = {setting for repeat, setting in at if not self._is_limited(repeat, setting)}
        return {setting for _, setting in at} - free

    def _is_limited(self, repeat, setting) -> bool:
        return any((repeat, setting) in limited for limited in self._limited)

    def _keep(self):
        """Choose repeats and settings. Settings are those of most of the first repeats, with a value in most of
        them; for rules by point, in any. A later repeat that has only some of them was measured for another
        claim and would change what this one is about: it is left out. One that lacks a value counts, as incomplete."""
        at = {one for one in set.intersection(*self._points) if one[1] not in self.excluded}
        repeats = sorted({repeat for repeat, _ in at})
        first = repeats[:FIRST]
        usual = {s for s in {s for _, s in at} if 2 * sum((r, s) in at for r in first) > len(first)}
        complete = [r for r in repeats if all((r, s) in at for s in usual)] or repeats
        paired = {one for one in set.intersection(*map(set, self.arms)) if one[1] not in self.excluded}
        valued = {repeat for repeat, _ in paired}
        among = [r for r in complete if r in valued][:FIRST]
        least = 1 if self.by_point else len(among) // 2 + 1
        self.settings = sorted((s for s in {s for _, s in paired} if sum((r, s) in paired for r in among) >= least),
                               key=str)
        self.repeats = [r for r in complete if self.settings and all((r, s) in at for s in self.settings)]
        self.incomplete = {r for r in self.repeats if not all((r, s) in paired for s in self.settings)}
        if self.by_point:
            self.repeats = [r for r in self.whole if not any(self._is_limited(r, s) for s in self.settings)]
            self.incomplete = set()
            self.partial = {repeat for repeat, _ in paired if self.all(repeat)} - set(self.repeats)

    def bound(self, repeat, rule: str | None = None) -> str:
        """What the number of a repeat is of the true one, since the clients limited points of it; see
        labbook.claims.bounds. rule: whose number, by default the comparison's."""
        name = rule or self.rule["name"]
        moves = {0 if (repeat, setting) in self._by_baseline[arm] else self._moves(name, arm, setting)
                 for arm, limited in enumerate(self._limited)
                 for setting in self.settings if (repeat, setting) in limited}
        return direction(self.metric, moves)

    def _moves(self, rule, arm, setting) -> int:
        """How the rule's number moves where a value rises: 1 with it, -1 the other way, 0 unknown."""
        way = -1 if arm else 1
        if rule in OF_VALUES:
            return way
        if rule in OF_GROWTH:
            curve = next((c for c in self.curves(self.rule["along"]) if setting in (s for _, s in c)), None)
            return way * ((setting == curve[-1][1]) - (setting == curve[0][1])) if curve else 0
        return 0

    def _setting(self, row, arm):
        """A row's setting. A missing value becomes None, since NaN is not equal to itself."""
        return tuple([(p, None if is_missing(row[p]) else row[p])
                      for p in self.parameters if p not in arm])

    def _count_operations(self, rows):
        for row in rows:
            if not is_missing(row.get("errors")):
                self.operations += int(row["n"])
                self.failed += int(row["errors"])

    def exclusions(self) -> str:
        """What the numbers exclude, in words for the end of a reason: points without a value, settings
        limited by the clients, failed operations."""
        text = ""
        if self.without:
            points = "1 point has" if self.without == 1 else f"{self.without} points have"
            text += f"; {points} no {self.metric}"
            text += "" if self.by_point else ": settings without it in most of the first repeats are left out"
        if self.baseline:
            text += f"; less {_baseline_text(self.baseline)}"
        left_out = self._left_out()
        if left_out and self.by_point:
            text += f"; points limited by the clients are left out ({left_out})"
        elif left_out:
            points = "1 point" if left_out == 1 else f"{left_out} points"
            text += f"; settings that the clients limited in most of the first repeats are left out ({points} limited)"
        if self.failed and self.of_successes:
            text += f"; {self.failed} of {self.operations} operations failed and are excluded"
        return text

    def _left_out(self) -> int:
        """How many points that the clients limited enter no number, not even as a bound."""
        return sum(self.by_point or setting in self.excluded for limited in self._limited for _, setting in limited)

    def _lacks(self, text) -> NotTestable:
        """That points are too few: not testable where some are excluded, otherwise not run."""
        return (NotTestable if self.limited or self.without else NotRun)(text + self.exclusions())

    def curves(self, along) -> list[list]:
        """Curves over `along`, one for each combination of the other parameters: [(x, setting)] by rising x,
        with two or more x. NotTestable without any."""
        if along in self._curves:
            return self._curves[along]
        curves = {}
        for setting in self.settings:
            others = tuple((p, v) for p, v in setting if p != along)
            curves.setdefault(others, []).append((dict(setting)[along], setting))
        ordered = [sorted(c, key=lambda one: one[0]) for c in curves.values() if len(c) > 1]
        if not ordered:
            raise self._lacks(f"fewer than two values of {plain(along)} can be compared")
        self._curves[along] = ordered
        return ordered

    def values(self, repeat) -> list[float]:
        """The first arm's values, in the order of `settings`."""
        return [self.arms[0][repeat, setting] for setting in self.settings]

    def all(self, repeat) -> list[float]:
        """All values of the first arm in this repeat, but for those that the clients limited."""
        return [value for (one, setting), value in self.arms[0].items()
                if one == repeat and setting not in self.excluded and (one, setting) not in self._limited[0]]

    def ratios(self, repeat, settings) -> list[float]:
        of, than = self.arms
        return [_ratio(of[repeat, setting], than[repeat, setting]) for setting in settings]

    def growth(self, arm, repeat, along) -> float:
        """The factor from the smallest `along` to the largest, averaged over curves: that of the line
        (Theil and Sen) through all logarithms of the values over the logarithms of `along`, or over
        `along` itself where one is not above 0."""
        factors = []
        for curve in self.curves(along):
            xs, values = [x for x, _ in curve], self._above_0(arm, repeat, curve, along)
            places = [math.log(x) for x in xs] if xs[0] > 0 else xs
            factors.append(slope(places, list(map(math.log, values))) * (places[-1] - places[0]))
        return math.exp(sum(factors) / len(factors))

    def exponent(self, repeat, along) -> float:
        """The exponent of a power law of the first arm's values over `along`, averaged over curves."""
        exponents = []
        for curve in self.curves(along):
            xs, values = self._places(curve, along), self._above_0(0, repeat, curve, along)
            exponents.append(slope(list(map(math.log, xs)), list(map(math.log, values))))
        return sum(exponents) / len(exponents)

    def exponent_beside_constant(self, repeat, along, low, high) -> float:
        """The exponent of the first arm's values over `along` beside a constant, on the side of `low` and of
        `high` that the values' bend says, summed over curves.

        At the true exponent the bend is above 0 in about half of all repeats. The exponent with least squares is
        not: large values weigh less there. The first look's repeats weigh the points for all.
        """
        curves = []
        for curve in self.curves(along):
            if len(curve) < 3:
                raise self._lacks(f"fewer than three values of {along} can be compared")
            curves.append((self._bend(curve, along), self._above_0(0, repeat, curve, along)))
        return exponent_between(lambda exponent: sum(
            [factor * value for factors, values in curves for factor, value in zip(factors(exponent), values)]),
            low, high)

    def _bend(self, curve, along):
        """`bend` of a curve: the function of an exponent, the same for all repeats."""
        key = along, curve[0][1]
        if key not in self._bends:
            usual = zip(*self._usual(curve, along))
            self._bends[key] = cache(bend(self._places(curve, along), list(map(median, usual))))
        return self._bends[key]

    def _usual(self, curve, along) -> list[list[float]]:
        """The first arm's values on a curve in the first look's repeats, of which all values are above 0 there."""
        found = [[self.arms[0][repeat, setting] for _, setting in curve] for repeat in self.whole]
        above_0 = [values for values in found if min(values) > 0]
        if not above_0:
            raise NotAbove0(f"growth over {along} needs values above 0")
        return above_0[:LOOKS[0]]

    def _places(self, curve, along) -> list:
        """The values of `along` of a curve; NotTestable unless they are above 0."""
        if curve[0][0] <= 0:
            raise NotTestable(f"a power law of {along} needs values above 0")
        return [x for x, _ in curve]

    def _above_0(self, arm, repeat, curve, along) -> list[float]:
        """An arm's values on a curve; NotTestable unless they are above 0."""
        values = [self.arms[arm][repeat, setting] for _, setting in curve]
        if min(values) <= 0:
            raise NotAbove0(f"growth over {along} needs values above 0, not {min(values):g}")
        return values

    def split(self) -> tuple[list, list]:
        """The repeats that choose what to compare, the first two with values above 0, and those that then test it.

        A choice tested by the repeats that made it would turn their noise into a difference, and a choice
        that later repeats changed would test another thing at each look. Of fewer than six repeats,
        which decide nothing, the first chooses; a single one is in both parts.
        """
        above_0 = [repeat for repeat in self.whole if min(self.values(repeat)) > 0]
        choosing = (above_0 or self.whole)[:max(1, min(CHOOSING, len(self.repeats) // 3))]
        return choosing, [repeat for repeat in self.repeats if repeat not in choosing] or self.repeats

    def means_over(self, along, repeats) -> dict:
        """{value of `along`: geometric mean of the first arm's values}, over these repeats and all
        complete settings. NotTestable for fewer than two values, NotAbove0 for values that are not above 0."""
        values = {}
        for of_value in self._complete_settings(along):
            for value, setting in of_value.items():
                values.setdefault(value, []).extend(self.arms[0][r, setting] for r in repeats)
        if len(values) < 2:
            raise self._lacks(f"fewer than two values of {plain(along)} can be compared")
        if min(map(min, values.values())) <= 0:
            raise NotAbove0("ratios need values above 0")
        return {value: geometric_mean(each) for value, each in values.items()}

    def _complete_settings(self, along) -> list[dict]:
        """For each combination of the other parameters that has all values of `along`: {value: setting}."""
        found = {}
        for setting in self.settings:
            others = tuple((p, v) for p, v in setting if p != along)
            found.setdefault(others, {})[dict(setting)[along]] = setting
        most = max(map(len, found.values()))
        return [one for one in found.values() if len(one) == most]

    def slope(self, arm, repeat, along) -> float:
        """The slope of an arm's values over `along`, averaged over curves."""
        slopes = [slope([x for x, _ in c], [self.arms[arm][repeat, setting] for _, setting in c])
                  for c in self.curves(along)]
        return sum(slopes) / len(slopes)


def _select(rows, wanted, profile):
    """The rows with the wanted values. NotRun for a value that none has; rules.check_grid finds misspelt ones before
    anything is measured, and published points may be older than the claim."""
    for name, want in wanted.items():
        if any(matches(row[name], want) for row in rows):
            continue
        raise NotRun(f"this run of the {profile} profile measured no point with {with_value(name, _wanted(want))}")
    for name, want in wanted.items():
        rows = [row for row in rows if matches(row[name], want)]
    return rows


def _baseline_text(baseline) -> str:
    """A rule's baseline in words."""
    if "metric" in baseline:
        return baseline["metric"]
    return "that with " + " and ".join(f"{name} {value}" for name, value in baseline["arm"].items())


def _wanted(want) -> str:
    if isinstance(want, dict):
        return " and ".join(f"{word.replace('_', ' ')} {v:g}" for word, v in want.items())
    return str(want).replace("_", " ")


def is_limited(row: dict, metric: str) -> bool:
    """Whether the clients were the limit of this metric of a point: by its own `METRIC_limited`, which a point
    of several phases has, otherwise by the point's `client_limited`."""
    of_metric = row.get(f"{metric}_limited")
    return (row.get("client_limited") if is_missing(of_metric) else of_metric) == 1


def _ratio(of, than) -> float:
    if of <= 0 or than <= 0:
        raise NotAbove0(f"ratios need values above 0, not {of:g} over {than:g}")
    return of / than

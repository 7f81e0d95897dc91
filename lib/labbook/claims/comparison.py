"""A comparison: the points that a rule compares, and their values in each repeat."""

import math

from labbook.checks import did_you_mean
from labbook.claims.statistics import geometric_mean, slope
from labbook.errors import InputError

BY_POINT = ("always", "sometimes")  # rules that use every point, paired or not


class NotTestable(Exception):
    """The measured points cannot decide the claim; the message says why."""


class Comparison:
    """The metric's values in the arms of a rule: arm -> {(repeat, setting of the rest): value}."""

    def __init__(self, rule, metric, rows, parameters, place, profile, known=()):
        where = rule.get("where", {})
        self.arms, self.limited, self.parameters = [], 0, parameters
        self.metric, self.without, self.by_point = metric, 0, rule["name"] in BY_POINT
        self.of_successes = str(metric).endswith(("_ms", "_per_s"))
        self.operations, self.failed, spoilt = 0, 0, set()
        arms = [rule.get("of", {})] + ([rule["than"]] if "than" in rule else [])
        for arm in arms:
            found = _select(rows, {**where, **arm}, place, profile, known)
            limited = [row for row in found if row.get("client_limited") == 1]
            self.limited += len(limited)
            spoilt |= {self._rest(row, arm) for row in limited}
            self.without += sum(is_missing(row.get(metric)) for row in found)
            self._count(row for row in found if row.get("client_limited") != 1)
            self.arms.append({(row["repeat"], self._rest(row, arm)): float(row[metric])
                              for row in found if not is_missing(row.get(metric))})
        together = {(repeat, rest) for repeat, rest in set.intersection(*map(set, self.arms))
                    if rest not in spoilt}
        self.repeats = sorted({repeat for repeat, _ in together})
        rests = {rest for _, rest in together}
        self.rests = sorted((rest for rest in rests
                             if all((r, rest) in together for r in self.repeats)), key=str)
        if not self.rests:
            raise NotTestable("limited by the clients" if self.limited else
                              f"no repeat has {metric} of all that is compared")

    def _rest(self, row, arm):
        """A missing value is None here, since NaN is not equal to itself."""
        return tuple((p, None if is_missing(row[p]) else row[p])
                     for p in self.parameters if p not in arm)

    def _count(self, rows):
        for row in rows:
            if not is_missing(row.get("errors")):
                self.operations += int(row["n"])
                self.failed += int(row["errors"])

    def left_out(self) -> str:
        """What is excluded, in words: points without a value, settings limited by the clients,
        failed operations."""
        words = ""
        if self.without:
            points = "1 point has" if self.without == 1 else f"{self.without} points have"
            words += f"; {points} no {self.metric}"
            words += "" if self.by_point else ", and their settings are left out of all repeats"
        if self.limited:
            points = "1 point" if self.limited == 1 else f"{self.limited} points"
            words += f"; settings limited by the clients ({points}) are left out of all repeats"
        if self.failed and self.of_successes:
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

    def values(self, repeat) -> list[float]:
        """The first arm's values, of settings that every repeat has."""
        return [self.arms[0][repeat, rest] for rest in self.rests]

    def all(self, repeat) -> list[float]:
        """All values of the first arm in this repeat."""
        return [value for (one, _), value in self.arms[0].items() if one == repeat]

    def ratios(self, repeat, rests) -> list[float]:
        of, than = self.arms
        return [_ratio(of[repeat, rest], than[repeat, rest]) for rest in rests]

    def growth(self, arm, repeat, along) -> float:
        values = self.arms[arm]
        return geometric_mean(_ratio(values[repeat, curve[-1][1]], values[repeat, curve[0][1]])
                              for curve in self.curves(along))

    def exponent(self, repeat, along) -> float:
        """The exponent of a power law of the first arm's values over `along`, averaged over curves."""
        found = []
        for curve in self.curves(along):
            values = [self.arms[0][repeat, rest] for _, rest in curve]
            if curve[0][0] <= 0 or min(values) <= 0:
                raise NotTestable(f"a power law of {along} is undefined where a value is 0")
            found.append(slope([math.log(x) for x, _ in curve], list(map(math.log, values))))
        return sum(found) / len(found)

    def extremes(self, along) -> tuple:
        """The values of `along` at which the first arm's values are largest and smallest, by all
        repeats and all settings of the rest that have every value of it."""
        means = {}
        for of_value in self._alike(along):
            for value, rest in of_value.items():
                means.setdefault(value, []).extend(self.arms[0][r, rest] for r in self.repeats)
        if len(means) < 2:
            raise NotTestable(f"fewer than two values of {along} to compare" + self.left_out())
        if min(map(min, means.values())) <= 0:
            raise NotTestable("a ratio to zero is undefined")
        ordered = sorted(means, key=lambda value: geometric_mean(means[value]))
        return ordered[-1], ordered[0]

    def within(self, repeat, along, of, than) -> list[float]:
        """The first arm's values at `of` over those at `than`, two values of `along`."""
        return [_ratio(self.arms[0][repeat, one[of]], self.arms[0][repeat, one[than]])
                for one in self._alike(along)]

    def _alike(self, along) -> list[dict]:
        """For every setting but `along` that has all of its values: {value: rest}."""
        found = {}
        for rest in self.rests:
            others = tuple((p, v) for p, v in rest if p != along)
            found.setdefault(others, {})[dict(rest)[along]] = rest
        most = max(map(len, found.values()))
        return [one for one in found.values() if len(one) == most]

    def slope(self, arm, repeat, along) -> float:
        slopes = [slope([x for x, _ in c], [self.arms[arm][repeat, rest] for _, rest in c])
                  for c in self.curves(along)]
        return sum(slopes) / len(slopes)


def _select(rows, wanted, place, profile, known_words):
    for name, want in wanted.items():
        if any(matches(row[name], want) for row in rows):
            continue
        check_value(name, want, rows, known_words, place)
        raise NotTestable(f"this run of the {profile} profile measured no {name} {_wanted(want)}")
    return [row for row in rows if all(matches(row[n], want) for n, want in wanted.items())]


def check_value(name, want, rows, known_words, file, key=None) -> None:
    """InputError where no row has this value of a parameter and it is a mistake: a word that looks
    like one of the rows' and is none of `known_words`, or text among numbers and the reverse."""
    known = sorted({row[name] for row in rows if not is_missing(row[name])}, key=str)
    if not known or any(matches(row[name], want) for row in rows):
        return
    near = ""
    if _is_word(want) and want not in known_words:
        near = did_you_mean(want, [one for one in known if not _extends(want, one)])
    kinds = {_kind(one) for one in known}
    if near or (_kind(want) not in kinds | {""} and "" not in kinds):
        raise InputError(f"no point has {name} {want!r}{near}", file=file, key=key, allowed=known)


def _kind(value) -> str:
    """"text" or "number"; nothing for what may stand beside either."""
    if isinstance(value, str):
        return "text"
    is_number = isinstance(value, (int, float, dict)) and not isinstance(value, bool)
    return "number" if is_number else ""


def _is_word(want) -> bool:
    """Whether a value is a plain word: similar names with digits often mean different things."""
    return isinstance(want, str) and want.islower() and want.replace("_", "").isalpha()


def _extends(want, other) -> bool:
    """Whether one extends the other by a word (standby, standby_replay), so that neither is a typo."""
    short, long = sorted((str(want), str(other)), key=len)
    return long.startswith(f"{short}_")


def matches(value, want) -> bool:
    if isinstance(want, dict):
        return (not is_missing(value) and want.get("at_least", -math.inf) <= value
                <= want.get("at_most", math.inf))
    return is_missing(value) if want is None else value == want


def _wanted(want) -> str:
    if isinstance(want, dict):
        return " and ".join(f"{word.replace('_', ' ')} {v:g}" for word, v in want.items())
    return str(want)


def is_missing(value) -> bool:
    return value is None or value != value


def _ratio(of, than) -> float:
    if of <= 0 or than <= 0:
        raise NotTestable(f"a ratio of {of:g} to {than:g} is undefined")
    return of / than

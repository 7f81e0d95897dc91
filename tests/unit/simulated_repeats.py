"""Simulated repeats without an effect, or with one on a rule's bound, where either verdict is a mistake half
of the time. The noise of a point is normal, skewed to either side or heavy-tailed. A repeat shifts all
its points alike, as a slow machine does.
"""

import math
import random
import zlib

from labbook.claims import rules

NOISE = {
    "normal": lambda draw: draw.gauss(0, 0.3),
    "skewed": lambda draw: draw.expovariate(3) - math.log(2) / 3,
    "skewed down": lambda draw: math.log(2) / 3 - draw.expovariate(3),
    "heavy-tailed": lambda draw: max(-9.0, min(9.0, 0.1 * draw.gauss(0, 1) / math.sqrt(draw.gammavariate(0.75, 1 / 0.75)))),
}   # of the logarithm; each has the median 0, and no value is 0 or endless
XS = (1, 2, 4, 8)
LAST_THREE = {"x": {"at_least": 2}}
AB = {"of": {"system": "a"}, "than": {"system": "b"}}
ALONE = {"of": {"system": "a"}}


def of_a(factor):
    """System a needs `factor` times what b needs."""
    return lambda system, x: factor if system == "a" else 1.0


def power(exponent):
    return lambda system, x: x ** exponent


def beside(constant, exponent):
    return lambda system, x: constant + x ** exponent


def trend(factor):
    """Over all x, a growth of `factor`."""
    return power(math.log(factor) / math.log(XS[-1] / XS[0]))


def growing(factor):
    """Over all x, system a grows `factor` times as much as b."""
    return lambda system, x: 2.0 * x * (1.0 if system == "b" else trend(factor)(system, x))


def step(factor):
    return lambda system, x: factor if x == XS[-1] else 1.0


def crossing_at(where, power):
    """System a over b is (where / x) ** power."""
    return lambda system, x: (where / x) ** power if system == "a" else 1.0


def rule(name, **more):
    return {"name": name, **more}


def seldom(share):
    """In such a share of all repeats the metric is 2, otherwise 1."""
    return share


BOTH = {rules.REPLICATED, rules.NOT_REPLICATED}     # on a bound, either is wrong
CASES = [   # rule, true values, the wrong verdicts
    (rule("greater", **AB), of_a(1), BOTH),
    (rule("greater", **AB, symmetric=True), of_a(1), BOTH),     # log ratios of arms with the same noise are so
    (rule("greater", **AB, symmetric=True, margin=1.3), of_a(1.3), BOTH),
    (rule("greater", **AB, margin=1.3), of_a(1), {rules.REPLICATED}),
    (rule("greater", **AB, margin=1.3), of_a(1.3), BOTH),
    (rule("equal_within", **AB, margin=1.5), of_a(1), {rules.NOT_REPLICATED}),
    (rule("equal_within", **AB, margin=1.5), of_a(1.5), BOTH),
    (rule("equal_within", **AB, margin=1.5), of_a(1 / 1.5), BOTH),
    (rule("ratio_between", **AB, low=1.2, high=1.9), of_a(1), {rules.REPLICATED}),
    (rule("ratio_between", **AB, low=1.2, high=1.9), of_a(1.9), BOTH),
    (rule("differs_over", along="x", **ALONE, margin=1), of_a(1), {rules.REPLICATED}),
    (rule("differs_over", along="x", **ALONE, margin=1.3), of_a(1), {rules.REPLICATED}),
    (rule("differs_over", along="x", **ALONE, margin=1.3), step(1.3), BOTH),
    (rule("differs_over", along="x", **ALONE, margin=1.3), step(1.5), {rules.NOT_REPLICATED}),
    (rule("grows_with", along="x", **ALONE), of_a(1), BOTH),
    (rule("grows_with", along="x", **ALONE, margin=1.5), trend(1.5), BOTH),
    (rule("rises_by", along="x", **ALONE, low=0), of_a(1), BOTH),
    (rule("scales_with", along="x", **ALONE, low=0.8, high=1.2), power(0), {rules.REPLICATED}),
    (rule("scales_with", along="x", **ALONE, low=0.8, high=1.2), power(0.8), BOTH),
    (rule("scales_with", along="x", **ALONE, high=1.0), power(1), BOTH),
    (rule("proportional", along="x", **ALONE, low=0.8, high=1.2), beside(3, 0.8), BOTH),
    (rule("proportional", along="x", **ALONE, low=0.8, high=1.2), beside(3, 1.2), BOTH),
    (rule("proportional", along="x", **ALONE, low=0.8, high=1.2), beside(0, 0.8), BOTH),
    (rule("proportional", along="x", **ALONE, low=0.8, high=1.2), beside(30, 1.2), BOTH),     # the rise is lost in noise
    (rule("proportional", along="x", **ALONE, low=0.8, high=1.2, where=LAST_THREE), beside(3, 0.8), BOTH),
    (rule("proportional", along="x", **ALONE, low=0.8, high=1.2, where=LAST_THREE), beside(3, 1.2), BOTH),
    (rule("proportional", along="x", **ALONE, low=1), beside(3, 1), BOTH),
    (rule("proportional", along="x", **ALONE, low=0.8, high=1.2), of_a(1), {rules.REPLICATED}),
    (rule("grows_alike", along="x", **AB, margin=1.5), growing(1), {rules.NOT_REPLICATED}),
    (rule("grows_alike", along="x", **AB, margin=1.5), growing(1.5), BOTH),
    (rule("grows_less", along="x", **AB), growing(1), BOTH),
    (rule("grows_less", along="x", **AB, margin=1.25), growing(0.8), BOTH),
    (rule("grows_slower", along="x", **AB), power(1), BOTH),
    (rule("grows_slower", along="x", **AB), of_a(1), {rules.REPLICATED}),     # nothing grows
    (rule("crosses_near", along="x", **AB, at=3, within=1), of_a(1), {rules.REPLICATED}),
    (rule("crosses_near", along="x", **AB, at=2.5, within=1.5), crossing_at(4, 3), BOTH),
    (rule("above", **ALONE, value=1, where={"x": 1}), of_a(1), BOTH),
    (rule("above", **ALONE, value=1.2, where={"x": 1}), of_a(1), {rules.REPLICATED}),
    (rule("below", **ALONE, value=1, where={"x": 1}), of_a(1), BOTH),
    (rule("between", **ALONE, low=1, high=2, where={"x": 1}), of_a(1), BOTH),
    (rule("between", **ALONE, low=0.5, high=2, where={"x": 1}), of_a(1), {rules.NOT_REPLICATED}),
    # half of all repeats have a point beyond the bound
    (rule("always", **ALONE, low=1, where={"x": 1}), of_a(1), {rules.REPLICATED}),
    (rule("always", **ALONE, high=1, where={"x": 1}, rate=0.1), seldom(0.1), {rules.REPLICATED}),
    (rule("always", **ALONE, high=1, where={"x": 1}, rate=0.4), seldom(0.4), {rules.REPLICATED}),
    (rule("sometimes", **ALONE, low=2, where={"x": 1}, rate=0.1), seldom(0.1), {rules.NOT_REPLICATED}),
    (rule("sometimes", **ALONE, low=2, where={"x": 1}), seldom(0), {rules.REPLICATED}),
]


def limits(systems, level, xs=XS):
    """The clients cannot measure less than `level` of the usual time, of these systems at these x."""
    return lambda system, x: level if system in systems and x in xs else 0.0


LEVELS = (("a", 0.9), ("a", 1.1), ("b", 1.0), ("ab", 0.9))
AT_AN_END = (("a", 1.0, XS[-1:]), ("a", 1.0, XS[:1]), ("b", 1.0, XS[-1:]))
LIMITED_CASES = [   # also, the least that the clients can measure. Without one end, the true values are the same
    (*case, limits(*limit)) for case, levels in (
        ((rule("greater", **AB), of_a(1), BOTH), LEVELS + AT_AN_END),
        ((rule("greater", **AB, symmetric=True), of_a(1), BOTH), LEVELS + AT_AN_END),
        ((rule("equal_within", **AB, margin=1.5), of_a(1.5), BOTH), LEVELS),
        ((rule("grows_with", along="x", **ALONE), of_a(1), BOTH), LEVELS[:2] + AT_AN_END[:2]),
        ((rule("scales_with", along="x", **ALONE, low=0.8, high=1.2), power(0.8), BOTH), LEVELS[:1] + AT_AN_END[:2]),
        ((rule("proportional", along="x", **ALONE, low=0.8, high=1.2), beside(3, 1.2), BOTH), AT_AN_END[:2]),
        ((rule("grows_less", along="x", **AB), growing(1), BOTH), LEVELS[:1] + AT_AN_END),
        ((rule("crosses_near", along="x", **AB, at=2.5, within=1.5), crossing_at(4, 3), BOTH), LEVELS[:1]),
        ((rule("differs_over", along="x", **ALONE, margin=1.3), of_a(1), {rules.REPLICATED}), LEVELS[:1] + AT_AN_END[:1]),
        ((rule("above", **ALONE, value=1, where={"x": 1}), of_a(1), BOTH), LEVELS[:2]),
        ((rule("below", **ALONE, value=1, where={"x": 1}), of_a(1), BOTH), LEVELS[:2]))
    for limit in levels
]
ABSOLUTE = ("above", "below", "between", "always", "sometimes")      # of the metric itself: no shift of a repeat cancels


def simulated(draw, noise, true, repeats, shifts, size=1.0, least=limits("", 0.0)):
    """Rows of so many repeats, with noise of so many times its size. least: of the usual time, what the
    clients can measure; a shorter one is measured as this, and the clients were the limit."""
    for repeat in range(1, repeats + 1):
        if isinstance(true, (int, float)):
            yield {"system": "a", "x": 1, "repeat": repeat, "time_ms": 1.0 + (draw.random() < true)}
            continue
        shift = size * noise(draw) if shifts else 0.0
        for system in "ab":
            for x in XS:
                value, limit = true(system, x) * math.exp(shift + size * noise(draw)), true(system, x) * least(system, x)
                yield {"system": system, "x": x, "repeat": repeat, "time_ms": max(value, limit),
                       "client_limited": int(value < limit)}


def wrong(case, noise: str, repeats: int, runs: int, size: float = 1.0) -> float:
    """In which share of so many runs the verdict was wrong at any number of repeats up to this one.

    What a look decided stays decided, so the last verdict counts. But for claims of all and of some, of which a
    point that is seen later turns the verdict round.
    """
    tested, true, verdicts, *least = case
    claim = {"id": "c", "metric": "time_ms", "rule": tested}
    draw = random.Random(zlib.crc32(repr((tested, noise, repeats, size)).encode()))
    looked = range(1, repeats + 1) if tested["name"] in ("always", "sometimes") else (repeats,)
    count = 0
    for _ in range(runs):
        rows = list(simulated(draw, NOISE[noise], true, repeats, tested["name"] not in ABSOLUTE, size, *least))
        count += any(rules.decide(claim, [row for row in rows if row["repeat"] <= n], ("system", "x")).verdict in verdicts
                     for n in looked)
    return count / runs


def most(stated: float, runs: int) -> float:
    """The share that so many runs exceed by chance in one of a thousand cases."""
    return stated + 3.1 * math.sqrt(stated * (1 - stated) / runs)

"""Which repeats to measure next, so that most of the asked claims are decided in the time there is.

Pure: from a survey of the kernel (labbook.study.ask.survey), the looks and the seconds left to the next
round's repeats, and an estimate for each open claim and for all of them.
"""

import math
from dataclasses import dataclass

from labbook.claims.decisions import DECIDED, NOT_RUN, NOT_TESTABLE

# The share of claims that take more than the looks before, of 217 claims of the published records whose
# repeats were simulated: 65 % are decided after 6, 74 % after 12, 78 % after 20, 82 % after 30.
GOES_ON = {6: 1.0, 9: 0.35, 12: 0.32, 20: 0.26, 30: 0.22, 60: 0.18}
AT_ONCE = 2     # times as many repeats as there are, in one round


@dataclass(frozen=True)
class Claim:
    """An asked claim. places: those points of a repeat that it needs. repeats: whole ones there are.
    needed: the look at which it is expected to be decided; None where no look is. by_sight: whether the first
    repeat may decide it, since it takes one sight of something. least: the look before which it cannot be, else."""

    id: str
    experiment: str
    places: frozenset
    repeats: int
    needed: int | None
    verdict: str
    by_sight: bool = False
    least: int = 0

    def expected(self, looks) -> int:
        """The look at which it is expected to be decided; the first one before it was judged at all, and the
        first repeat of one by sight."""
        if self.by_sight and not self.repeats:
            return 1
        if self.repeats < looks[0]:
            return max(looks[0], self.least)
        return self.needed if self.needed and self.needed > self.repeats else (
            looks[-1] if self.needed is None else _next(looks, self.repeats) or looks[-1])


@dataclass(frozen=True)
class Round:
    """`repeats`: {experiment: its repeats in this round}, of `claims` (ids); both empty: there is no
    further round. seconds: {id: when an open claim is expected to be decided, s from now}. late: ids of those
    that take longer than the time left. total_s: until the end. experiments: {name: s that its points are expected
    to take until each of its claims is decided or beyond the last look}."""

    claims: tuple
    repeats: dict
    seconds: dict
    late: tuple
    total_s: float
    experiments: dict


class Lab:
    """What points of the experiments cost, and how many repeats of them there are; it can be changed.

    default_s: seconds of a point of which nothing is known. known: the experiments of which something is.
    """

    def __init__(self, experiments: dict, default_s: float):
        self.done = {name: list(one["done"]) for name, one in experiments.items()}
        self._setups = {name: one["setups"] for name, one in experiments.items()}
        self._setup_s = _setups(experiments)
        self.known = {name for name, one in experiments.items() if one["point_s"]}
        self._point_s = {name: one["point_s"] or [default_s] * len(one["done"])
                         for name, one in experiments.items()}

    def seconds(self, experiment: str, places, repeats: int) -> float:
        """Of raising these places to so many repeats."""
        return self.expected(experiment, {frozenset(places): 1.0}, repeats)

    def expected(self, experiment: str, chances: dict, repeats: int) -> float:
        """Of raising places to so many repeats; chances: {places: probability that they are needed}."""
        idle, missing = {}, {}      # of each place and set-up: probability that nobody needs it; repeats
        for places, chance in chances.items():
            setups = {self._setups[experiment][place] for place in places}
            for part in [("point", place) for place in places] + [("setup", setup) for setup in setups]:
                idle[part] = idle.get(part, 1.0) * (1 - chance)
        for place in frozenset().union(*chances):
            count, setup = max(repeats - self.done[experiment][place], 0), self._setups[experiment][place]
            missing["point", place] = count
            missing["setup", setup] = max(missing.get(("setup", setup), 0), count)
        return sum((1 - idle[part]) * count * self._part_s(experiment, *part) for part, count in missing.items())

    def _part_s(self, experiment, kind, number) -> float:
        return self._setup_s[experiment] if kind == "setup" else self._point_s[experiment][number]

    def reach(self, experiment: str, places, repeats: int) -> None:
        """Take the places as measured so many times."""
        for place in places:
            self.done[experiment][place] = max(self.done[experiment][place], repeats)


def _setups(experiments: dict) -> dict:
    """{name: seconds of a set-up}. One that is guessed takes no longer than the longest that was seen here: where
    experiments share what is up, each of theirs takes next to nothing."""
    seen = [one["setup_s"] for one in experiments.values() if any(one["done"])]
    return {name: min([one["setup_s"], max(seen)] if seen and one.get("guessed") else [one["setup_s"]])
            for name, one in experiments.items()}


def claims_of(survey: dict) -> list[Claim]:
    """The asked claims of a kernel's survey."""
    found = []
    for one in survey["claims"]:
        done = survey["experiments"].get(one["experiment"], {}).get("done", [])
        repeats = min((done[place] for place in one["points"]), default=0)
        found.append(Claim(one["id"], one["experiment"], frozenset(one["points"]), repeats, one["needed"],
                           one["verdict"], one.get("by_sight", False), one.get("least", 0)))
    return found


def next_look(survey: dict, looks, default_s: float = 5.0) -> tuple[int, float]:
    """How many points the next look of each open claim takes, with those of experiments that no claim reads, and
    their seconds. default_s: see Lab."""
    lab, unread = Lab(survey["experiments"], default_s), survey.get("unread", {}).values()
    points = sum(one["left"] for one in unread)
    seconds = sum(one["left"] * default_s if one["seconds"] is None else one["seconds"] for one in unread)
    for claim in claims_of(survey):
        if not is_decided(claim) and can_be_asked(claim, looks):
            look = claim.expected(looks)
            points += sum(max(look - lab.done[claim.experiment][place], 0) for place in claim.places)
            seconds += lab.seconds(claim.experiment, claim.places, look)
            lab.reach(claim.experiment, claim.places, look)
    return points, seconds


def is_decided(claim: Claim) -> bool:
    return claim.verdict in DECIDED


def can_be_asked(claim: Claim, looks) -> bool:
    """Whether further repeats may decide a claim: not where this place cannot show it, where the run
    has no such point, or not enough of them, or after the last look. One or two repeats do not tell that this place
    cannot show it; see Outcome.repeats_needed."""
    if claim.repeats and claim.verdict == NOT_TESTABLE and (claim.needed or 0) <= claim.repeats:
        return False
    if claim.verdict == NOT_RUN and claim.repeats >= looks[0]:
        return False
    return bool(claim.places) and claim.repeats < looks[-1]


def plan(survey: dict, looks, left_s: float = math.inf, *, round_s: float = 10.0, default_s: float = 5.0) -> Round:
    """The next round. round_s: what a round takes beside its points. default_s: see Lab.

    First each experiment gets the first look of its claims, as far as the time left allows, the cheapest
    for a claim first; one of which nothing is known in a round of its own, since the guess may be far off.
    Then come claims that are decided within the time left, cheapest first. Where there is none, the time
    left goes to the next look of the others, and else to a claim that was never judged: what its points
    take may be a guess, and what is measured until the time is up counts in the next run. A guess alone
    stops nothing.
    """
    claims = [c for c in claims_of(survey) if not is_decided(c) and can_be_asked(c, looks)]
    unread = survey.get("unread", {}).values()
    known = sum(one["seconds"] or 0.0 for one in unread)
    before = known + sum(one["left"] * default_s for one in unread if one["seconds"] is None)
    order = _order(claims, Lab(survey["experiments"], default_s), looks, round_s, before, left_s)
    costs, rounds = _expected(claims, Lab(survey["experiments"], default_s), looks)
    total = sum(costs.values()) + rounds * round_s + before
    in_time = [claim for claim, at in order if at <= left_s]
    late = [claim for claim, at in order if at > left_s]
    lab = Lab(survey["experiments"], default_s)
    repeats, chosen = _next_steps(_first_looks(in_time, lab, looks) or in_time, lab, looks, left_s - before, round_s)
    if not repeats:
        repeats, chosen = _next_steps(late, lab, looks, left_s - before, round_s)
    if not repeats and left_s > known + round_s:
        new = [claim for claim in late if claim.repeats < looks[0]]
        first = [claim for claim in new if claim.experiment == new[0].experiment]
        repeats, chosen = _next_steps(first, lab, looks, math.inf, round_s)
    return Round(tuple(claim.id for claim in chosen), repeats, {claim.id: at for claim, at in order},
                 tuple(claim.id for claim in late), min(total, left_s) if repeats else 0.0, costs)


def _first_looks(claims, lab, looks) -> list[Claim]:
    """Those of the claims, in their order, whose first look is in this round."""
    new = [claim for claim in claims if claim.repeats < looks[0]]
    known = [claim for claim in new if claim.experiment in lab.known]
    return known or [claim for claim in new if claim.experiment == new[0].experiment]


def _order(claims, lab, looks, round_s, before, left_s) -> list[tuple[Claim, float]]:
    """Claims in the order in which they will be decided, each with its time from now, s: first looks as
    far as the time left allows, then always the look of an experiment that costs least for each claim that
    it is expected to decide."""
    waiting, order, at = list(claims), [], before
    while waiting:
        new = [claim for claim in waiting if claim.repeats < looks[0]]
        seconds, look, served, places = (_cheapest(new, lab, looks, left_s - at - round_s)
                                         or _cheapest(waiting, lab, looks))
        at += seconds
        lab.reach(served[0].experiment, places, look)
        rounds = len({c.expected(looks) for c in claims if c.expected(looks) <= look})
        order += [(claim, at + rounds * round_s) for claim in served]
        waiting = [claim for claim in waiting if claim not in served]
    return order


def _cheapest(claims, lab, looks, most=math.inf) -> tuple | None:
    """(seconds, look, claims that it is expected to decide, their places) of the step that costs least for a
    claim, of those that take `most` seconds; None without any."""
    steps = []
    for name, look in dict.fromkeys((claim.experiment, claim.expected(looks)) for claim in claims):
        served = [c for c in claims if c.experiment == name and c.expected(looks) <= look]
        places = frozenset().union(*(c.places for c in served))
        steps.append((lab.seconds(name, places, look), look, served, places))
    return min((step for step in steps if step[0] <= most), key=lambda step: step[0] / len(step[2]), default=None)


def _expected(claims, lab, looks) -> tuple[dict, float]:
    """Expected seconds of each experiment's points until every claim is decided or beyond the last look,
    and expected rounds."""
    costs, rounds = {claim.experiment: 0.0 for claim in claims}, 0.0
    for look in looks:
        open_now = [c for c in claims if c.repeats < look]
        chances = {c: _goes_on(c, look, looks) for c in open_now}
        for name in sorted({c.experiment for c in open_now}):
            own = [c for c in open_now if c.experiment == name]
            needing = {}
            for claim in own:
                needing[claim.places] = 1 - (1 - needing.get(claim.places, 0.0)) * (1 - chances[claim])
            costs[name] += lab.expected(name, needing, look)
            lab.reach(name, frozenset().union(*needing), look)
        rounds += 1 - math.prod(1 - p for p in chances.values())
    return costs, rounds


def _goes_on(claim, look, looks) -> float:
    """The probability that a claim is still open before this look."""
    if claim.repeats < looks[0]:
        return 1.0 if look <= claim.least else GOES_ON.get(look, 1.0)
    return float(look <= claim.expected(looks))


def _next_steps(claims, lab, looks, left_s, round_s):
    """({experiment: repeats}, claims) of a round that raises the claims' experiments to their next looks, in the
    claims' order, as far as the time allows."""
    repeats, chosen, cost = {}, [], round_s
    for name in dict.fromkeys(claim.experiment for claim in claims):
        own = [claim for claim in claims if claim.experiment == name]
        first = min(_next(looks, min(claim.repeats for claim in own)), min(claim.expected(looks) for claim in own))
        own = [claim for claim in own if claim.repeats < first]
        places = frozenset().union(*(claim.places for claim in own))
        for look in reversed(list(_together(own, first, looks, lambda n: lab.seconds(name, places, n) < round_s))):
            seconds = lab.seconds(name, places, look)
            if cost + seconds <= left_s:
                cost += seconds
                repeats[name] = look
                chosen += own
                break
    return repeats, chosen


def _together(claims, first, looks, is_cheap):
    """The looks of an experiment's claims that one round may go to: the next one, and those up to the expected one that
    are cheap, or of at most AT_ONCE times as many repeats as there are. Few claims are decided at a look before the
    expected one, and each round brings the systems up again."""
    there, soonest = min(claim.repeats for claim in claims), min(claim.expected(looks) for claim in claims)
    yield first
    look = first
    while (look := _next(looks, look)) and look <= soonest and (look <= AT_ONCE * there or is_cheap(look)):
        yield look


def _next(looks, n) -> int | None:
    return next((look for look in looks if look > n), None)

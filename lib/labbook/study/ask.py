"""An ask: claims that repeats are added for until they are decided, a round at a time.

The driver names a round's claims and the number of repeats that each experiment gets (LABBOOK_ASK);
the kernel measures what these claims lack of them, judges the claims, and reports where each stands.
"""

import json
import os
from dataclasses import asdict, dataclass, field

from labbook.claims.decisions import least_repeats
from labbook.claims.selection import can_be_compared, is_tested, needs_point
from labbook.errors import InputError
from labbook.lab.cache import build
from labbook.study import costs, fleet
from labbook.study.costs import MOST_REPEATS

SHAPE = 'JSON such as {"claims": ["id"], "repeats": {"experiment": 6}, "page": false}'


@dataclass(frozen=True)
class Ask:
    """`claims`: ids. `repeats`: {experiment: its repeats in this round}. `page`: nothing is measured any
    more, the page is made from what there is. `last`: no other claim is open, so once these are decided the
    round goes on to the page."""

    claims: tuple = ()
    repeats: dict = field(default_factory=dict)
    page: bool = False
    last: bool = False

    @classmethod
    def of_environment(cls, study: str, known: list[str]) -> "Ask | None":
        """LABBOOK_ASK, None without it. InputError for another shape, and for a claim that is not `known`."""
        text = os.environ.get("LABBOOK_ASK")
        if not text:
            return None
        try:
            found = json.loads(text)
            ask = cls(tuple(found["claims"]), dict(found["repeats"]), bool(found.get("page", False)),
                      bool(found.get("last", False)))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{text!r} names no claims and repeats", key="LABBOOK_ASK", allowed=SHAPE) from error
        for claim in ask.claims:
            if claim not in known:
                raise InputError(f"{study} has no claim {claim!r}", key="LABBOOK_ASK", allowed=known)
        for name, count in ask.repeats.items():
            if not isinstance(count, int) or not 0 <= count <= MOST_REPEATS:
                raise InputError(f"{count!r} repeats", key=f"LABBOOK_ASK: repeats.{name}",
                                 allowed=f"a whole number from 0 to {MOST_REPEATS}")
        return ask

    def wanted(self, experiment, entries: list[dict]) -> list:
        """The points of an experiment that this round is to have: those that its claims need, up to its
        repeats; of an experiment that no claim reads the declared ones that serve its claims, or all where
        the experiment does not say which do; none of an experiment that is left out (0 repeats)."""
        read = [entry for entry in entries if is_tested(entry) and entry["experiment"] == experiment.name]
        if self.page or not experiment.declared():
            return []
        if not read:
            return self.serving(experiment, entries)
        asked = [entry for entry in read if entry["id"] in self.claims]
        return [point for point in experiment.planned(self.repeats.get(experiment.name, 0))
                if any(needs(entry, point) for entry in asked)]

    def serving(self, experiment, entries: list[dict]) -> list:
        """The declared points of an experiment that no claim reads on which the asked claims rest."""
        asked = [entry for entry in entries if is_tested(entry) and entry["id"] in self.claims]
        return [point for point in experiment.declared()
                if experiment.serves is None or any(experiment.serves(point, entry) for entry in asked)]


def needs(entry: dict, point) -> bool:
    """Whether a claim needs a point; of a paired point, any of its arms."""
    return needs_point(entry, *point.arms)


def further(experiment, valid) -> list:
    """The recorded points of an experiment beyond its declared repeats, without records that
    `valid(metadata)` refuses. An experiment that is left out (0 repeats) has none."""
    declared, records = experiment.declared(), experiment.study.records(experiment.name)
    others = records.keys() - {point.key for point in declared}
    if not declared or not others:
        return []
    each = [point for point in experiment.planned(MOST_REPEATS)[len(declared):] if point.key in others]
    return [point for point in each if (meta := records.meta(point.key)) and valid(meta)]


def whole_repeats(experiment, entry: dict, rows: list[dict]) -> set:
    """The repeats of which all points that a claim needs are among the rows of a summary; of a fleet those that were
    measured on one machine."""
    there = {row["point"] for row in rows}
    repeats = {row["repeat"] for row in rows}
    incomplete = {point.repeat for point in experiment.planned(max(repeats, default=0))
                  if point.key not in there and needs(entry, point)}
    return {one for one in repeats - incomplete
            if not experiment.study.run.fleet or _of_one_machine(experiment, entry, one)}


def _of_one_machine(experiment, entry, repeat: int) -> bool:
    keys = [point.key for point in experiment.planned(repeat) if point.repeat == repeat and needs(entry, point)]
    return fleet.of_one_machine(experiment.study, experiment, keys)


def survey(study) -> tuple[dict, list[dict]]:
    """Where the asked claims stand and what a repeat takes, for the planner of the next round.

    claims: [{id, experiment, verdict, needed (repeats, or None), points (places in a repeat), by_sight (whether
    one repeat may decide it), least (see decisions.least_repeats)}].
    built_s: what this execution has built for the cache, and no other will.
    experiments: {name: see costs.of_repeats}. unread: {name: see costs.left} of experiments that no claim
    reads. The second value has the verdicts as dicts.
    """
    judged = {one["id"]: one for one in map(asdict, study.judged(study.run.ask.claims))}
    read = {entry["experiment"] for entry in study.claim_entries if is_tested(entry)}
    found = {"built_s": sum(build.took),
             "claims": [_standing(study, entry, judged[entry["id"]]) for entry in study.claim_entries
                        if entry["id"] in judged],
             "experiments": {name: costs.of_repeats(study, one) for name, one in study.experiments.items()
                             if name in read and one.declared()},
             "unread": {name: costs.left(study, one, study.run.ask.serving(one, study.claim_entries))
                        for name, one in study.experiments.items() if name not in read}}
    return found, list(judged.values())


def _standing(study, entry, verdict) -> dict:
    experiment = study.experiments.get(entry.get("experiment"))
    places = _places(experiment, entry)
    return {"id": entry["id"], "experiment": entry.get("experiment"), "points": places,
            "least": least_repeats(entry["rule"], len(places)),
            "verdict": verdict["verdict"], "needed": verdict.get("repeats_needed"),
            "by_sight": entry["rule"]["name"] == "sometimes"}


def _places(experiment, entry) -> list[int]:
    """The places in a repeat that a claim needs; none where the experiment lacks something that it compares."""
    points = experiment.places() if experiment and is_tested(entry) else []
    if not can_be_compared(entry, [arm for point in points for arm in point.arms]):
        return []
    return [i for i, point in enumerate(points) if needs(entry, point)]

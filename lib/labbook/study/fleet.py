"""A study on a fleet: what one machine is to measure of it, and what there is to hand out.

LABBOOK_POINTS, on a machine of the fleet: {"experiment": [keys]}: measure these points and stop. LABBOOK_FLEET,
where the fleet is driven from: the folder of its records; nothing is measured there.
"""

import json
import os
import re
from collections import Counter

from labbook.claims.selection import is_tested
from labbook.errors import InputError
from labbook.study import costs
from labbook.study.costs import MOST_REPEATS
from labbook.study.point import digest

NAME = re.compile(r"(fleet|cluster)-[A-Za-z0-9][A-Za-z0-9._-]{0,59}")    # no id of a machine looks like it
SHAPE = 'JSON such as {"clients": ["0123456789abcdef0123"]}'


def folder_of_environment() -> str | None:
    """LABBOOK_FLEET, None without it; InputError for what is no name of a fleet's folder."""
    name = os.environ.get("LABBOOK_FLEET") or None
    if name and not NAME.fullmatch(name):
        raise InputError(f"{name!r} is no fleet", key="LABBOOK_FLEET", allowed="fleet-NAME or cluster-NAME")
    return name


def points_of_environment() -> dict | None:
    """LABBOOK_POINTS, None without it; InputError for another shape."""
    text = os.environ.get("LABBOOK_POINTS")
    if not text:
        return None
    try:
        return {str(name): frozenset(map(str, keys)) for name, keys in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(f"{text[:80]!r} names no points", key="LABBOOK_POINTS", allowed=SHAPE) from error


def chosen(experiment, points: dict) -> list:
    """The experiment's points with these keys ({experiment: keys}), in the order of the plan."""
    keys = points.get(experiment.name, ())
    every = dict.fromkeys([*experiment.declared(), *(experiment.planned(MOST_REPEATS) if keys else ())])
    return [point for point in every if point.key in keys]


def with_mixed(study, experiment, points: list, todo: list) -> list:
    """`todo`, and what several machines have measured of a repeat of which nothing is left: all but the points of the
    machine with most. Rules compare what one machine measured, so such a repeat counts for nothing."""
    if not _is_read(study, experiment.name):
        return todo
    begun, machines = {point.repeat for point in todo}, {}
    for point in points:
        if point.repeat not in begun:
            machines.setdefault(point.repeat, {})[point] = _machine(study, experiment, point)
    again = set(todo)
    for of_repeat in machines.values():
        most, _ = Counter(of_repeat.values()).most_common(1)[0]
        again |= {point for point, machine in of_repeat.items() if machine != most}
    return [point for point in points if point in again]


def of_most(study, experiment: str, metas: dict) -> dict:
    """{key: metadata} without the points of a repeat that another machine measured than most of it, of an experiment
    that claims read."""
    if not _is_read(study, experiment):
        return metas
    machines = {}
    for meta in metas.values():
        machines.setdefault(meta["repeat"], []).append(_id(meta))
    most = {repeat: Counter(ids).most_common(1)[0][0] for repeat, ids in machines.items()}
    return {key: meta for key, meta in metas.items() if _id(meta) == most[meta["repeat"]]}


def _is_read(study, experiment: str) -> bool:
    return experiment in {entry["experiment"] for entry in study.claim_entries if is_tested(entry)}


def _id(meta) -> str:
    return meta["provenance"]["machine"]["id"]


def to_hand_out(study, experiment, todo: list) -> dict:
    """What is left of an experiment, for labbook.pipeline.fleet: {read: whether a claim reads it, repeats: [{repeat,
    points: [{key, setup (a digest), setup_s, point_s (None: unknown), guessed (whether both are those of points with
    other parameters), machine (id; None: to be measured)}]}]}.

    A repeat of which anything is left has all of its points, also those that are recorded: they are measured on
    one machine, so if that is gone they are measured again. What no claim reads (ceilings) has all points, since
    each machine needs its own; those with a machine need not come home.
    """
    read = _is_read(study, experiment.name)
    todo_keys = {point.key for point in todo}
    todo = todo if read else study.run.wanted(experiment)
    describe, found = _describer(study, experiment), {}
    for point in dict.fromkeys([*todo, *_recorded(study, experiment, todo)] if read else todo):
        machine = None if point.key in todo_keys else _machine(study, experiment, point)
        if machine or point.key in todo_keys:
            found.setdefault(point.repeat, []).append(describe(point) | {"machine": machine})
    return {"read": read, "repeats": [{"repeat": repeat, "points": found[repeat]} for repeat in sorted(found)]}


def _recorded(study, experiment, todo) -> list:
    """The points with a record in the repeats of `todo`."""
    repeats, keys = {point.repeat for point in todo}, study.records(experiment.name).keys()
    every = dict.fromkeys([*experiment.declared(), *experiment.planned(max(repeats, default=0))])
    return [point for point in every if point.repeat in repeats and point.key in keys]


def _machine(study, experiment, point) -> str | None:
    """Id of the machine that has measured a point, None without a valid record."""
    meta = study.records(experiment.name).meta(point.key)
    return _id(meta) if meta and study.run.is_valid(meta) else None


def _describer(study, experiment):
    """A function of a point: its key, its set-up, and what both take in seconds, as far as that is known."""
    known = costs.of_repeats(study, experiment)
    seconds = dict(zip((json.dumps(point.params) for point in experiment.places()), known["point_s"] or ()))
    return lambda point: {"key": point.key,
                          "setup": digest([experiment.name, point.block, sorted(point.setup.items())]),
                          "setup_s": known["setup_s"], "point_s": seconds.get(json.dumps(point.params)),
                          "guessed": known["guessed"]}


def of_one_machine(study, experiment, keys) -> bool:
    """Whether the recorded ones of these points were all measured on one machine."""
    records = study.records(experiment.name)
    metas = [records.meta(key) for key in keys]
    return len({_id(meta) for meta in metas if meta}) < 2

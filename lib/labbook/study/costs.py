"""What repeats of an experiment take, from the records of its points, or else from the published ones."""

import json
import statistics

from labbook.claims.looks import LOOKS
from labbook.study.records.record import parameters

MOST_REPEATS = LOOKS[-1]


def of_repeats(study, experiment) -> dict:
    """{setups (a number a place), done (repeats recorded, a place), declared, setup_s, point_s (a place; None
    without any earlier duration), guessed (whether both are those of points with other parameters)} of an
    experiment's places, the points of one repeat."""
    places, index = experiment.places(), _index(experiment)
    recorded, done = [[] for _ in places], [0] * len(places)
    records, unmeasured = study.records(experiment.name), set()
    there = records.keys()
    for point in experiment.planned(MOST_REPEATS) if there else ():
        place = index.get(json.dumps(point.params))
        if place is None or place in unmeasured:
            continue
        meta = records.meta(point.key) if point.key in there else None
        if meta:
            recorded[place].append(meta)
        if meta is None or not study.run.is_valid(meta):
            unmeasured.add(place)
        else:
            done[place] += 1
    setup_s, point_s, guessed = _durations(study, experiment, recorded, index)
    settings = [json.dumps(point.setup) for point in places]
    return {"setups": [settings.index(one) for one in settings], "done": done,
            "declared": len(experiment.declared()), "setup_s": setup_s, "point_s": point_s,
            "guessed": guessed}


def _index(experiment) -> dict:
    """{parameters as text: the number of their place}."""
    return {json.dumps(point.params): i for i, point in enumerate(experiment.places())}


def of_points(study, experiment, points: list, metas) -> tuple[float | None, bool]:
    """Expected seconds of measuring points of an experiment, set-ups included, from records of its points
    (`metas`: {key: metadata or None}; also of earlier code, which hardly changes what a point takes), or
    else from published ones; None where nothing is known. And whether these are of other parameters alone, so that
    the points may take quite another time."""
    index = _index(experiment)
    recorded = [[] for _ in index]
    for point in experiment.declared():
        place = index.get(json.dumps(point.params))
        if place is not None and (meta := metas.get(point.key)):
            recorded[place].append(meta)
    setup_s, point_s, guessed = _durations(study, experiment, recorded, index)
    if point_s is None:
        return None, False
    places = [index.get(json.dumps(point.params)) for point in points]
    usual = statistics.fmean(point_s)
    return setup_s * len({point.block for point in points}) + sum(
        usual if place is None else point_s[place] for place in places), guessed


def _durations(study, experiment, recorded, index) -> tuple[float, list | None, bool]:
    """`durations` from records of these places, or published ones, or else from the experiment's other records here,
    such as those of other parameters, or other published ones; and whether it is these others."""
    known = _published(study, experiment)
    setup_s, point_s = durations(recorded, _by_place(experiment, index, known))
    if point_s is not None:
        return setup_s, point_s, False
    records = study.records(experiment.name)
    others = [meta | {"params": parameters(meta)} for key in records.keys() if (meta := records.meta(key))]
    return *_of_the_nearest(experiment, others or list(known.values())), True


def _of_the_nearest(experiment, metas: list[dict]) -> tuple[float, list | None]:
    """`durations` from points of other parameters: a place takes the median of those that share most of its own."""
    firsts, alone = _apart([[meta] for meta in metas])
    every = [took for one in alone for took in one]
    if not every:
        return 0.0, None
    known = [_as_texts(meta["params"]) for meta in metas]

    def usual(place) -> float:
        shared = [len(_as_texts(place.params) & one) for one in known]
        nearest = [took for count, one in zip(shared, alone) if count == max(shared) for took in one]
        return statistics.median(nearest or every)

    return statistics.fmean(firsts) if firsts else 0.0, [usual(place) for place in experiment.places()]


def _as_texts(params: dict) -> set[tuple[str, str]]:
    """Each parameter as (name, value): equal where a record and a table of published points have the same value."""
    plain = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in params.items()}
    return {(name, json.dumps(float(value) if type(value) in (int, float) else value, default=str))
            for name, value in plain.items()}


def durations(recorded: list[list[dict]], otherwise=()) -> tuple[float, list | None]:
    """Seconds of a set-up, and of a point at each place, from lists of {"block", "took_s"}, a list a place.

    The first point of a block brings its set-up; what it took beyond the others' median is the set-up's.
    otherwise: the same of points elsewhere, which count where nothing is recorded. None without any.
    """
    firsts, alone = _apart(recorded)
    other_firsts, others = _apart(otherwise or [[] for _ in recorded])
    each = [own or other for own, other in zip(alone, others)]
    every = [took for one in alone for took in one] or [took for one in others for took in one]
    if not every:
        return 0.0, None
    usual, firsts = statistics.median(every), firsts or other_firsts
    return (statistics.fmean(firsts) if firsts else 0.0,
            [statistics.median(one) if one else usual for one in each])


def _apart(places: list[list[dict]]) -> tuple[list[float], list[list[float]]]:
    """Seconds of set-ups, and of points without, a list a place."""
    blocks = {}
    for place, points in enumerate(places):
        for point in points:
            if point.get("took_s") is not None:
                blocks.setdefault(point["block"], []).append((point["took_s"], place))
    firsts, alone = [], [[] for _ in places]
    for block in blocks.values():
        longest = max(block)
        rest = [one for one in block if one is not longest] or block
        if rest is not block:
            firsts.append(longest[0] - statistics.median(took for took, _ in rest))
        for took, place in rest:
            alone[place].append(took)
    return firsts, alone


def _published(study, experiment) -> dict:
    """{(machine, key): {"block", "took_s", "params"}} of the points in published sets.

    A point's span in its provenance has the set-up of its block.
    """
    from labbook.study.publication import published

    if not experiment.places() or not published.has(study.name, experiment.name):
        return {}
    found = {}
    for machine, frame in published.parts(study, experiment.name):
        if "point" in frame:
            for row in frame.drop_duplicates("point").to_dict("records"):
                during = json.loads(row["provenance"])["during"]
                found[machine, row["point"]] = {
                    "block": (machine, row["block"]), "took_s": during["ended"] - during["started"],
                    "params": {name: row[name] for name in experiment.places()[0].params if name in row}}
    return found


def _by_place(experiment, index, known: dict) -> list[list[dict]]:
    """Those of published points that are points of these places, a list a place."""
    found = [[] for _ in index]
    if known:
        places = {point.key: place for point in experiment.planned(MOST_REPEATS)
                  if (place := index.get(json.dumps(point.params))) is not None}
        for (_, key), meta in known.items():
            if key in places:
                found[places[key]].append(meta)
    return found


def left(study, experiment, points: list) -> dict:
    """{left, declared, seconds (None without any earlier duration)} of those points of an experiment that
    no claim reads."""
    records = study.records(experiment.name)
    metas = [records.meta(point.key) for point in points]
    unmeasured = sum(meta is None or not study.run.is_valid(meta) for meta in metas)
    took = [meta["took_s"] for meta in metas if meta and meta.get("took_s") is not None]
    if not took:
        index = _index(experiment)
        setup_s, point_s, _ = _durations(study, experiment, [[] for _ in index], index)
        settings = {json.dumps(point.setup) for point in experiment.places()}
        took = [one + setup_s * len(settings) / len(point_s) for one in point_s or ()]
    return {"left": unmeasured, "declared": len(points),
            "seconds": statistics.fmean(took) * unmeasured if took else None}

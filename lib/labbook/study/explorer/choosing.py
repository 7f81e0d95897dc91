"""Recorded points by their parameters: the raw rows of `experiment.rows(clients=90, op="read", repeat=1)`.

A point is represented by the metadata of its record. A paired parameter has all values of the point's
arms; choosing one of them chooses the point, and of its rows those of that arm.
"""

from labbook.checks import did_you_mean
from labbook.errors import InputError
from labbook.study.point import normal
from labbook.study.records.record import parameters

REPEAT = "repeat"       # chosen as a parameter is; no parameter may have this name


def of_experiment(experiment, given: dict) -> dict:
    """The one recorded point of an Experiment with these values, of the notebook's grid if it is there.

    InputError, with the parameter and its recorded values, when no point or several have them.
    """
    from labbook.study.results import metas

    planned = metas(experiment)
    if not (planned and _matching(planned, given)):
        planned = all_of(experiment.study.records(experiment.name)) or planned
    return one(planned, given, experiment.name)


def all_of(records) -> list[dict]:
    """The metadata of all records of an experiment on this machine, by their parameters."""
    found = [meta for meta in map(records.meta, records.keys()) if meta is not None]
    return sorted(found, key=lambda meta: (repr(list(_values(meta).values())), meta["key"]))


def one(metas: list[dict], given: dict, experiment: str) -> dict:
    """The one point with these values; see `chosen`. InputError as well when several have them."""
    found = chosen(metas, given, experiment)
    if len(found) > 1:
        open_ = "; ".join(f"{name} {_listed(values)}" for name, values in varying(found, given).items())
        matching = f" {_given_words(given)}" if given else ""
        raise InputError(f"{len(found)} points match{matching}", key=f"experiment {experiment}",
                         allowed=f"values of one point, so name also: {open_}")
    return found[0]


def chosen(metas: list[dict], given: dict, experiment: str) -> list[dict]:
    """The points with these values {parameter or `repeat`: value}, one or more.

    InputError for an unknown parameter, with the one that was probably meant, and for a value that none of
    the points with the values before it has.
    """
    key = f"experiment {experiment}"
    if not metas:
        raise InputError("no point is recorded on this machine", key=key,
                         allowed="after a run here: published results have no raw rows")
    known = values_of(metas)
    for name in given:
        if name not in known:
            raise InputError(f"no such parameter{did_you_mean(name, known)}", key=f"{key}: {name}",
                             allowed=list(known))
    left, before = metas, {}
    for name, value in given.items():
        found = _matching(left, {name: value})
        if not found:
            also = f" with {_given_words(before)}" if before else ""
            there = values_of(left).get(name, [])
            near = did_you_mean(value, there) if isinstance(value, str) else ""
            raise InputError(f"none of {len(left)} recorded points{also} has {value!r}{near}", key=f"{key}: {name}",
                             allowed=_listed(there))
        left, before = found, {**before, name: value}
    return left


def values_of(metas: list[dict]) -> dict[str, list]:
    """{parameter: its values among these points, in order}, with `repeat` last."""
    found = {}
    for meta in metas:
        for name, values in _values(meta).items():
            found.setdefault(name, {}).update({repr(value): value for value in values})
    found[REPEAT] = found.pop(REPEAT, {})
    return {name: sorted(values.values(), key=order) for name, values in found.items()}


def varying(metas: list[dict], given=()) -> dict[str, list]:
    """{parameter: values} of those in which these points differ, without the paired one (its rows differ)
    and without those `given`."""
    paired = {name for meta in metas for name in meta.get("paired", ())}
    partial = {name for name in values_of(metas) if any(name not in _values(meta) for meta in metas)}
    return {name: values for name, values in values_of(metas).items()
            if name not in given and name not in paired and (len(values) > 1 or name in partial)}


def from_text(metas: list[dict], name: str, text: str):
    """A value from the command line: the recorded one that is written so, or what YAML makes of it."""
    import yaml

    for value in values_of(metas).get(name, ()):
        if str(value) == text:
            return value
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, OverflowError):     # also a date that is none
        return text


def rows(records, meta: dict, given: dict, series: str | None = None):
    """DataFrame of a point's raw rows, or of a named series: of a paired parameter's chosen arm alone, if
    one is given and the frame has its column. InputError without such a series."""
    if series is not None and series not in meta.get("series", {}):
        known = sorted(meta.get("series", {}))
        raise InputError(f"this point has no series {series!r}{did_you_mean(series, known)}", key=meta["label"],
                         allowed=known or "none: it has rows only")
    frame = records.rows(meta["key"]) if series is None else records.series(meta["key"], series)
    for name in meta.get("paired", ()):
        if name in given and name in frame:
            wanted = _plain(given[name])
            frame = frame[[_plain(value) == wanted for value in frame[name]]].reset_index(drop=True)
    return frame


def table(records, metas: list[dict], given: dict, series: str | None = None):
    """DataFrame of the raw rows, or of a series, of several points: in front a column for each parameter
    in which they differ. A column of the rows with such a name is kept, with `row_` before it."""
    import pandas as pd

    differs = [*varying(metas, given)]
    frames = []
    for meta in metas:
        frame = rows(records, meta, given, series)
        frame = frame.rename(columns={name: f"row_{name}" for name in differs if name in frame})
        own = {**parameters(meta), REPEAT: meta[REPEAT]}
        for at, name in enumerate(differs):
            frame.insert(at, name, own.get(name))
        frames.append(frame)
    return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]


def _values(meta: dict) -> dict[str, list]:
    """{parameter: its values}: one, or those of the arms; and the repeat."""
    alone = {name: [value] for name, value in parameters(meta).items()}
    return {**alone, **meta.get("paired", {}), REPEAT: [meta[REPEAT]]}


def _matching(metas, given: dict) -> list[dict]:
    wanted = {name: _plain(value) for name, value in given.items()}
    return [meta for meta in metas if all(
        value in map(repr, _values(meta).get(name, ())) for name, value in wanted.items())]


def _plain(value) -> str:
    """A value as text, in which 1 and 1.0 are the same and True is another; any text for what no parameter
    can be."""
    try:
        return repr(normal(value, "value"))
    except InputError:
        return repr(value)


def order(value):
    """The key by which a parameter's values are sorted: nothing, numbers, text."""
    return value is not None, isinstance(value, str), value if value is not None else 0


def _listed(values) -> str:
    return ", ".join(map(repr, values))


def _given_words(given: dict) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items())

"""Expand entries of claims.yml that stand for several claims: `for: {op: [read, write]}`.

An entry with `for` is repeated for every combination of the values. The placeholder `{op}` in any
of its strings is replaced by the value. A value may have fields, as in
`for: {op: {read: {verb: reads, factor: 2}, write: {...}}}`; `{op.verb}` is their placeholder. A
string that consists of one placeholder becomes the value itself, with its type: a number, a list or
a mapping.
"""

import re
from itertools import product

from labbook.checks import did_you_mean
from labbook.errors import InputError

PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*(?:\.\w+)?)\}")
SHAPE = "{name: [value, ...]} or {name: {value: {field: ...}, ...}}"


def expand(entries, file):
    """The list of entries with every matrix expanded; any other data is returned unchanged.

    InputError names the entry, and the placeholder or the part of `for` that is wrong.
    """
    if not isinstance(entries, list):
        return entries
    claims = []
    for entry in entries:
        made = _claims_of(entry, file) if isinstance(entry, dict) and "for" in entry else [entry]
        if isinstance(entry, dict):
            _check_headline(entry, made, file)
        claims += made
    return claims


def _claims_of(entry: dict, file) -> list[dict]:
    key = f"{entry.get('id')}.for"
    rest = {name: value for name, value in entry.items() if name != "for"}
    axes = [_choices(name, values, file, key) for name, values in _axes(entry["for"], file, key)]
    unused = set(entry["for"]) - {name.split(".")[0] for name in _named(rest)}
    if unused:
        raise InputError(f"no string of the claim uses {{{sorted(unused)[0]}}}", file=file, key=key)
    claims = []
    for chosen in product(*axes):
        values = {name: value for part in chosen for name, value in part.items()}
        claims.append(_filled(rest, values, file, str(entry.get("id"))))
    return claims


def _check_headline(entry, claims, file) -> None:
    """InputError for an id in the entry's list of headline claims that none of its claims has."""
    listed, ids = entry.get("headline"), [one.get("id") for one in claims]
    for name in listed if isinstance(listed, list) else ():
        if name not in ids:
            raise InputError(f"this entry makes no claim {name!r}{did_you_mean(name, ids)}", file=file,
                             key=f"{entry.get('id')}.headline", allowed=ids)


def _axes(matrix, file, key):
    if not isinstance(matrix, dict) or not matrix:
        raise InputError("not a matrix", file=file, key=key, allowed=SHAPE)
    return matrix.items()


def _choices(name, values, file, key) -> list[dict]:
    """For each value of one name: {placeholder: its replacement}."""
    if isinstance(values, list) and values and not any(isinstance(v, (dict, list)) for v in values):
        return [{name: value} for value in values]
    if isinstance(values, dict) and values and all(isinstance(v, dict) for v in values.values()):
        return [{name: value} | {f"{name}.{field}": one for field, one in fields.items()}
                for value, fields in values.items()]
    raise InputError("not a list of values", file=file, key=f"{key}.{name}", allowed=SHAPE)


def _named(data) -> set[str]:
    """All placeholders in the strings of `data`."""
    if isinstance(data, str):
        return set(PLACEHOLDER.findall(data))
    parts = [*data.keys(), *data.values()] if isinstance(data, dict) else data
    return set().union(*map(_named, parts)) if isinstance(parts, list) else set()


def _filled(data, values, file, key):
    """`data` with its placeholders replaced, also in the keys of mappings."""
    if isinstance(data, dict):
        return {_filled(name, values, file, key): _filled(part, values, file, f"{key}.{name}")
                for name, part in data.items()}
    if isinstance(data, list):
        return [_filled(part, values, file, f"{key}.{i}") for i, part in enumerate(data)]
    if not isinstance(data, str):
        return data
    for name in PLACEHOLDER.findall(data):
        if name not in values:
            raise InputError(f"no value for {{{name}}}{did_you_mean(name, values)}", file=file,
                             key=key, allowed=", ".join(f"{{{one}}}" for one in values))
    alone = PLACEHOLDER.fullmatch(data)
    if alone:
        return values[alone[1]]
    return PLACEHOLDER.sub(lambda match: str(values[match[1]]), data)

"""A notebook's parameters, checked by name and type, whoever gave them.

A parameter is a literal, or a group: a dict of one experiment's parameters, such as
`response = dict(rtt_ms=[0, 100], repeats=3)`. One entry of a group is named `response.repeats`.
papermill only warns about an unknown name, and does not check types at all.
"""

import math

import yaml

from labbook.checks import did_you_mean
from labbook.errors import InputError

_NAMES = {int: "int", float: "float", str: "str", bool: "bool", list: "list", dict: "group",
          type(None): "None"}
MANY = 20       # names of parameters that an error lists one by one


def flat(values: dict) -> dict:
    """{"group.entry": value} of all entries of groups, and other parameters by their name."""
    found = {}
    for name, value in values.items():
        if is_group(value):
            found |= {f"{name}.{entry}": v for entry, v in flat(value).items()}
        else:
            found[name] = value
    return found


def is_group(value) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(key, str) for key in value)


def unknown(name: str, known: list[str], file) -> InputError:
    """The error for a name that is none of `known`, with the one that was probably meant: of the
    same group, or entries of that name in any group, or the nearest of all."""
    group, _, entry = name.rpartition(".")
    inside = [one for one in known if one.rpartition(".")[0] == group] if group else []
    ends = [one for one in known if one.rpartition(".")[2] == entry]
    near = did_you_mean(name, inside) or (
        f", did you mean {' or '.join(ends[:3])}?" if ends else did_you_mean(name, known))
    return InputError(f"no such parameter{near}", file=file, key=name, allowed=_allowed(sorted(inside or known)))


def _allowed(names: list[str]) -> list[str] | str:
    """The names, or where they are many those of their groups and what is in none."""
    if len(names) <= MANY:
        return names
    groups = dict.fromkeys(name.partition(".")[0] for name in names if "." in name)
    alone = [name for name in names if "." not in name]
    return ", ".join([*alone, f"or GROUP.NAME with a group of {', '.join(groups)}"])


def from_text(default, text: str, name: str):
    """A value that was given as text: YAML, but text where the notebook has text ("0.7", "on"). InputError for what
    YAML cannot read."""
    if isinstance(default, str):
        return text
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"{text!r} is not YAML", key=name, allowed=_such_as(default)) from None
    except (ValueError, OverflowError) as error:    # a date that is none
        raise InputError(f"{text!r} cannot be read: {error}", key=name, allowed=_such_as(default)) from None
    if isinstance(value, str) and isinstance(default, (int, float)):
        try:
            return float(text)  # YAML 1.1 reads 1e-3 as text
        except ValueError:
            pass
    return value


def check(values: dict, defaults: dict, file) -> dict:
    """`values` in the notebook's types; InputError for an unknown name, a wrong type or a group that
    lacks entries."""
    for name in values:
        if name in flat(defaults).keys() - defaults.keys():
            raise InputError("entries of a group are nested in a file", file=file, key=name,
                             allowed=f"{name.partition('.')[0]}: {{...}}, with all of its entries")
        if name not in defaults:
            raise unknown(str(name), list(flat(defaults)), file)
    return {name: checked(value, defaults[name], name, file) for name, value in values.items()}


def checked(value, default, name: str, file):
    """A value in the type of its default. InputError for a wrong type, an empty list, a number that is not finite, or
    below 0 where the default has none below 0, and a group that lacks entries or has unknown ones."""
    if is_group(default) and isinstance(value, dict):
        return _checked_group(value, default, name, file)
    if not _fits(value, default):
        raise InputError(f"{value!r} is of the wrong type", file=file, key=name,
                         allowed=_such_as(default))
    if default and isinstance(default, (list, tuple)) and not value:
        raise InputError("an empty list leaves nothing to measure", file=file, key=name,
                         allowed=f"one value or more, such as {default!r}")
    if name.rpartition(".")[2] == "repeats" and type(value) is int and value < 0:
        raise InputError(f"must be 0 or more, and 0 leaves the experiment out; got {value}", file=file, key=name)
    least = min(numbers(default), default=0)
    for number in numbers(value):
        if not math.isfinite(number):
            raise InputError(f"must be finite; got {number}", file=file, key=name, allowed=_such_as(default))
        if number < 0 <= least:
            raise InputError(f"must be 0 or more; got {number}", file=file, key=name, allowed=_such_as(default))
    return _widened(value, default)


def numbers(value) -> list[int | float]:
    """All numbers in a value: itself, or those in a list or a group."""
    if isinstance(value, (int, float)):
        return [] if isinstance(value, bool) else [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [number for one in inside for number in numbers(one)]


def _checked_group(value: dict, default: dict, name: str, file) -> dict:
    for entry in value:
        if entry not in default:
            raise unknown(f"{name}.{entry}", [f"{name}.{known}" for known in default], file)
    missing = [entry for entry in default if entry not in value]
    if missing:
        raise InputError(f"the group is incomplete, it lacks {', '.join(missing)}: papermill replaces "
                         "a group as a whole", file=file, key=name, allowed=f"all of {', '.join(default)}")
    return {entry: checked(value[entry], default[entry], f"{name}.{entry}", file) for entry in default}


def _fits(value, default) -> bool:
    if default is None:
        return True
    if isinstance(default, (list, tuple)):
        examples = list(default)
        return isinstance(value, (list, tuple)) and (
            not examples or all(any(_fits(v, e) for e in examples) for v in value))
    if isinstance(default, dict):
        return isinstance(value, dict) and all(
            _fits(v, default[k]) for k, v in value.items() if k in default)
    if isinstance(default, float):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is type(default)


def _widened(value, default):
    """Whole numbers become floats where the notebook has floats: 1 and 1.0 are one point."""
    if isinstance(default, float):
        return float(value)
    if isinstance(default, (list, tuple)):
        floats = default and all(isinstance(d, float) for d in default)
        return [float(v) for v in value] if floats else list(value)
    return value


def _such_as(default) -> str:
    """What is allowed for a parameter, by its default."""
    return "any YAML" if default is None else f"{described(default)}, such as {default!r}"


def described(default) -> str:
    """A type in words: "list of int"."""
    if isinstance(default, (list, tuple)):
        kinds = sorted({described(element) for element in default})
        return f"list of {' or '.join(kinds)}" if kinds else "list"
    return _NAMES.get(type(default), type(default).__name__)

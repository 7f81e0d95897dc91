"""Parameter values in one form, so that 100, 100.0 and numpy.int64(100) are the same point."""

import math
from numbers import Integral, Real

from labbook.errors import InputError

ALLOWED = "text, numbers, true or false, or nothing (None)"
EXACT_FLOAT = 2**53


def normal(value, key: str):
    """`value` as a plain str, int, float, bool or None; whole floats become ints."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and math.isfinite(value):
        value = float(value)
        return int(value) if value.is_integer() and abs(value) < EXACT_FLOAT else value
    raise InputError(f"{value!r} cannot be a parameter's value", key=key, allowed=ALLOWED)


def values(name: str, given) -> list:
    """The values of one parameter: a scalar stands for a list of one."""
    key = f"parameter {name}"
    if isinstance(given, (dict, set, frozenset, bytes)):
        raise InputError(f"a {type(given).__name__} has no order to measure in", key=key,
                         allowed="one value, or a list of values")
    listed = list(given) if _is_list(given) else [given]
    found = [normal(value, key) for value in listed]
    if not found:
        raise InputError("no value at all", key=key, allowed="one value, or a list of values")
    twice = next((v for i, v in enumerate(found) if _tagged(v) in map(_tagged, found[:i])), None)
    if twice is not None or found.count(None) > 1:
        raise InputError(f"{twice!r} is given twice", key=key)
    kinds = {_kind(v) for v in found if v is not None}
    if len(kinds) > 1:
        raise InputError(f"values of different kinds, {' and '.join(sorted(kinds))}", key=key,
                         allowed="one kind of value for a parameter")
    return found


def _is_list(given) -> bool:
    return hasattr(given, "__iter__") and not isinstance(given, str) and (
        getattr(given, "ndim", 1) > 0)


def _tagged(value):
    return (_kind(value), value)


def _kind(value) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "text" if isinstance(value, str) else "numbers" if value is not None else "nothing"

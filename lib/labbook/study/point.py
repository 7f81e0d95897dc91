"""A point: one setting of all parameters, in one repeat. Its key names its record.

Parameter values are normalised, so that 100, 100.0 and numpy.int64(100) give the same point.
"""

import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real

from labbook.checks import did_you_mean
from labbook.errors import InputError

ALLOWED = "text, numbers, true or false, or nothing (None)"
EXACT_FLOAT = 2**53     # larger floats may not be exact integers


@dataclass(frozen=True, eq=False)
class Point:
    """`setup` and `vary` hold the parameters, which are also attributes and the items of `params`.

    `block` numbers the blocks of the experiment's plan from 1; `order` is the position within the
    block, from 1; `seed` is the random seed of that order. `paired`: {the paired parameter: its values},
    one value an arm; empty without one. A paired parameter is neither an attribute nor in `params`.
    """

    experiment: str
    setup: dict = field(repr=False)
    vary: dict = field(repr=False)
    repeat: int
    block: int = field(repr=False)
    order: int = field(repr=False)
    seed: int = field(repr=False)
    paired: dict = field(default_factory=dict, repr=False)

    @property
    def params(self) -> dict:
        return {**self.setup, **self.vary}

    @cached_property
    def key(self) -> str:
        """Digest of the experiment's name, all parameters (grouped in any way), the values of a paired
        one, and the repeat."""
        arms = [{"paired": self.paired}] if self.paired else []
        return digest([self.experiment, sorted(self.params.items()), *arms, self.repeat])

    @property
    def arms(self) -> list[dict]:
        """The parameters of each arm; those of the point itself without a paired parameter."""
        return [point.params for point in self.arm_points]

    @property
    def arm_points(self) -> list["Point"]:
        """Each arm as a point; the point itself without a paired parameter."""
        return [self.of(value) for value in self.arm_values] or [self]

    @property
    def arm_values(self) -> list:
        """The values of the paired parameter; none without one."""
        return next(iter(self.paired.values()), [])

    def of(self, value) -> "Point":
        """The arm with this value of the paired parameter, as a point that has it as a parameter."""
        name, = self.paired
        return replace(self, setup={**self.setup, name: value}, paired={})

    @property
    def label(self) -> str:
        arms = {name: "|".join(map(str, values)) for name, values in self.paired.items()}
        settings = " ".join(f"{name}={value}" for name, value in {**arms, **self.params}.items())
        return f"{self.experiment}: {settings} repeat {self.repeat}"

    def __getattr__(self, name):
        params = {**self.__dict__.get("setup", {}), **self.__dict__.get("vary", {})}
        if name in params:
            return params[name]
        raise AttributeError(f"this point has no parameter {name!r}{did_you_mean(name, params)}")

    def __eq__(self, other):
        return isinstance(other, Point) and self.key == other.key

    def __hash__(self):
        return hash(self.key)


def check_values(points, allowed: dict) -> None:
    """InputError for a parameter of a point, or of one of its arms, whose value is not among those of `allowed`,
    {parameter: its values}. Call it before a lab is brought up; parameters that a point lacks are left out."""
    for arm in (arm for point in points for arm in point.arm_points):
        for name, values in allowed.items():
            if name in arm.params and arm.params[name] not in values:
                raise InputError(f"{arm.params[name]!r} is not allowed", key=f"{arm.experiment}: {name}",
                                 allowed=list(values))


def check_range(points, least: dict, most: dict | None = None) -> None:
    """InputError for a parameter of a point, or of one of its arms, that is below its number in `least`, or above that
    in `most`, {parameter: number}. Parameters that a point lacks, or that are None, are left out."""
    for arm in (arm for point in points for arm in point.arm_points):
        for name in {**least, **(most or {})}:
            low, high, value = least.get(name, -math.inf), (most or {}).get(name, math.inf), arm.params.get(name)
            if value is not None and not low <= value <= high:
                raise InputError(f"{value:g} is too {'small' if value < low else 'large'}",
                                 key=f"{arm.experiment}: {name}", allowed=_range_words(low, high))


def _range_words(low: float, high: float) -> str:
    if math.isinf(high):
        return f"{low:g} and more"
    return f"up to {high:g}" if math.isinf(low) else f"{low:g} to {high:g}"


def digest(data) -> str:
    """Digest of plain data, 20 hex digits; the same on every machine and in every process."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def normal(value, key: str):
    """`value` as a plain str, int, float, bool or None; whole floats become ints.

    InputError, with `key`, for a value of any other type.
    """
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
    """The normalised values of one parameter; a scalar is a list of one value.

    InputError for no value, duplicates, values of several types, and collections without an order.
    """
    key = f"parameter {name}"
    if isinstance(given, (dict, set, frozenset, bytes)):
        raise InputError(f"a {type(given).__name__} cannot list a parameter's values, which need an order", key=key,
                         allowed="one value, or a list of values")
    listed = list(given) if _is_list(given) else [given]
    normalised = [normal(value, key) for value in listed]
    if not normalised:
        raise InputError("the list of values is empty", key=key, allowed="one value, or a list of values")
    twice = next((v for i, v in enumerate(normalised) if _tagged(v) in map(_tagged, normalised[:i])), None)
    if twice is not None or normalised.count(None) > 1:
        raise InputError(f"{twice!r} is listed twice", key=key)
    kinds = {_kind(v) for v in normalised if v is not None}
    if len(kinds) > 1:
        raise InputError(f"values of different types, {' and '.join(sorted(kinds))}", key=key,
                         allowed="values of one type")
    return normalised


def _is_list(given) -> bool:
    return hasattr(given, "__iter__") and not isinstance(given, str) and (
        getattr(given, "ndim", 1) > 0)


def _tagged(value):
    return (_kind(value), value)


def _kind(value) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "text" if isinstance(value, str) else "numbers" if value is not None else "nothing"

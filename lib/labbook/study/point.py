"""A point: one setting of all parameters, in one repeat. Its key names its record."""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property

from labbook.checks import did_you_mean


@dataclass(frozen=True, eq=False)
class Point:
    """`setup` and `vary` are the parameters, also to be had as attributes and in `params`.

    `block` counts the set-ups of the experiment's plan from 1; `order` is the place in the block;
    `seed` is what the order within the block was drawn with.
    """

    experiment: str
    setup: dict = field(repr=False)
    vary: dict = field(repr=False)
    repeat: int
    block: int = field(repr=False)
    order: int = field(repr=False)
    seed: int = field(repr=False)

    @property
    def params(self) -> dict:
        return {**self.setup, **self.vary}

    @cached_property
    def key(self) -> str:
        """Identity: the experiment's name, every parameter, however grouped, and the repeat."""
        return digest([self.experiment, sorted(self.params.items()), self.repeat])

    @property
    def label(self) -> str:
        settings = " ".join(f"{name}={value}" for name, value in self.params.items())
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


def digest(data) -> str:
    """20 hex digits that stand for plain data, on every machine and in every process."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]

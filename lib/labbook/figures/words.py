"""Numbers and names as a reader wants them, the same in axes, tables and prose."""

import math
from numbers import Integral, Real
from pathlib import Path

from labbook.checks import load_yaml

_names = {}


def use_names(paper_file: Path) -> None:
    """Call values of parameters by the `names` of paper.yml, in all figures from here on."""
    _names.clear()
    _names.update(load_yaml(paper_file).get("names", {}))


def name(value, parameter="") -> str:
    """What `value` is called; numbers and truths are told apart by their parameter: `segments 2`,
    `cache true`."""
    is_float = isinstance(value, Real) and not isinstance(value, Integral)
    plain = f"{value:g}" if is_float else str(value)
    known = f"{parameter} {plain.lower() if plain in ('True', 'False') else plain}"
    return _names.get(known, _names.get(value, plain))


def in_order(values, parameter="") -> list:
    """Values once each, as `names` lists them; others behind, sorted."""
    listed = list(_names.values())
    return sorted(set(values), key=lambda value: (
        listed.index(called) if (called := name(value, parameter)) in listed else len(listed),
        value))


def quantity(label: str) -> tuple[str, str]:
    """An axis label's words and unit, which stands behind its last comma: `round trip, ms`."""
    words, comma, unit = label.rpartition(", ")
    return (words, unit) if comma else (label, "")


def amount(value: float, unit: str) -> str:
    """A number to three figures, with its unit where there is one."""
    return f"{number(value)} {unit}".rstrip()


def number(value: float) -> str:
    """Three figures, thousands apart: 0.0123, 4.56, 78.9, 1,230."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def between(low: float, high: float, unit: str = "") -> str:
    """An interval: `0.41 to 0.47 ms`."""
    return f"{number(low)} to {number(high)}" + (f" {unit}" if unit else "")

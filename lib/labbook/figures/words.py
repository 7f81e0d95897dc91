"""Numbers and names as a reader wants them, the same in axes, tables and prose."""

import math
from pathlib import Path

from labbook.checks import load_yaml

_names = {}


def use_names(paper_file: Path) -> None:
    """Call values of parameters by the `names` of paper.yml, in all figures from here on."""
    _names.clear()
    _names.update(load_yaml(paper_file).get("names", {}))


def name(value) -> str:
    return _names.get(value, str(value))


def ms(value: float) -> str:
    """Milliseconds to three figures."""
    return f"{number(value)} ms"


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

"""How many repeats a verdict takes, going by the spread of those that were made."""

from statistics import stdev

from labbook.claims import claims
from labbook.claims.rules import numbers
from labbook.claims.statistics import LEVEL, median_interval, repeats_needed
from labbook.figures.tables import Table


def repeats_table(experiment, ids: list[str]) -> Table:
    """A row for each of the experiment's claims `ids` whose rule wants a ratio between bounds
    (ratio_between, equal_within): how much the repeats of it vary, and how many it takes until the
    interval of their median is no wider than the room between the bounds. A study with fewer cannot
    be expected to call such a claim replicated."""
    known = {claim["id"]: claim for claim in claims.load(experiment.study.name)}
    rows = experiment.summary().to_dict("records")
    body = tuple(_row(known[one], numbers(known[one], rows, experiment.parameters) if rows else [])
                 for one in ids)
    return Table(
        ("Claim", "Ratio wanted", "Measured", "Spread of the repeats", "Repeats made",
         "Repeats it takes"), body, label="how many repeats the verdicts take",
        caption="Spread: standard deviation of the ratios, of which each repeat gives one. Repeats "
                f"it takes: at least, until their interval at a level of {LEVEL:.0%} fits between "
                "the bounds, if repeats go on to vary as much; a guess while few were made.")


def _row(claim, found) -> tuple[str, ...]:
    rule = claim["rule"]
    low, high = ((rule["low"], rule["high"]) if rule["name"] == "ratio_between" else
                 (1 / rule["margin"], rule["margin"]))
    if len(found) < 2:
        told = _ratio(*found) if found else "not measured"
        return claim["statement"], _between(low, high), told, "–", str(len(found)), "–"
    middle = median_interval(found)
    return (claim["statement"], _between(low, high),
            f"{_ratio(middle.value)} ({_between(middle.low, middle.high)})", _ratio(stdev(found)),
            str(len(found)), f"{repeats_needed(found, (high - low) / 2):,}")


def _between(low, high) -> str:
    return f"{_ratio(low)} to {_ratio(high)}"


def _ratio(value) -> str:
    """All to a thousandth, so that bounds and measured ratios compare."""
    return f"{value:.3f}"

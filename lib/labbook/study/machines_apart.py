"""Whether a claim's verdict is the same on each kind of machine of a fleet, and how far machines are apart."""

import math
import statistics

from labbook.claims.decisions import DECIDED
from labbook.study.publication import machine_kind


def words(judged, rows: list[dict], machine_of, judge, numbers: dict[int, float]) -> str:
    """What of a Verdict on the rows of a summary depends on the machine; empty where one machine has all repeats.

    machine_of: function of a row, the machine as its provenance describes it. judge: the Verdict on some of the rows.
    numbers: {repeat: its number}, of which the verdict is (rules.numbers).
    """
    machines = {row["repeat"]: machine_of(row) for row in rows}
    ids = {repeat: machine["id"] for repeat, machine in machines.items()}
    if len(set(ids.values())) < 2:
        return ""
    return "; ".join(filter(None, (_kinds(judged, rows, machines, judge), _spread(numbers, ids))))


def _kinds(judged, rows, machines, judge) -> str:
    kinds = {}
    for repeat, machine in machines.items():
        kinds.setdefault(machine_kind.words(machine_kind.kind(machine)), set()).add(repeat)
    if len(kinds) < 2:
        return ""
    each = {kind: judge([row for row in rows if row["repeat"] in repeats]) for kind, repeats in kinds.items()}
    differ = len({one.verdict for one in each.values()}.intersection(DECIDED)) > 1
    verdicts = "; ".join(f"{kind}: {one.verdict}, {one.ours or 'nothing to compare'}" for kind, one in each.items())
    return ("kinds of machines disagree: " if differ else "by kind of machine: ") + verdicts


def _spread(numbers, ids) -> str:
    """How much of the repeats' variance lies between machines."""
    by_machine = {}
    for repeat, number in numbers.items():
        if math.isfinite(number):
            by_machine.setdefault(ids[repeat], []).append(number)
    if len(by_machine) < 2:
        return ""
    medians = [statistics.median(values) for values in by_machine.values()]
    share = between(list(by_machine.values()))
    of = "" if share is None else f", which is {100 * share:.0f} % of the repeats' variance"
    return f"{len(by_machine)} machines, with medians from {min(medians):.3g} to {max(medians):.3g}{of}"


def between(groups: list[list[float]]) -> float | None:
    """The share of the variance that lies between groups, by the one-way analysis of variance with random effects
    (0 to 1); None where no group has two values, or all are equal."""
    total, count = sum(map(len, groups)), len(groups)
    if total <= count:
        return None
    mean = math.fsum(value for group in groups for value in group) / total
    means = [statistics.fmean(group) for group in groups]
    across = sum(len(group) * (own - mean) ** 2 for group, own in zip(groups, means)) / (count - 1)
    inside = sum((value - own) ** 2 for group, own in zip(groups, means) for value in group) / (total - count)
    usual = (total - sum(len(group) ** 2 for group in groups) / total) / (count - 1)
    apart = max((across - inside) / usual, 0.0)
    return apart / (apart + inside) if apart + inside > 0 else None

"""Paired arms: values of one parameter that are measured close together within each point.

An arm is a value of the paired parameter. The arms of a point are up at the same time, each on hosts
of its own, where memory carries that; otherwise they take turns. They are measured in slices: short
loads of one arm each. Slices of the same number, one an arm, are a pair.
"""

import math
import statistics
from dataclasses import dataclass, field

from labbook.errors import InputError
from labbook.study.summary import summarise


@dataclass
class Slice:
    """A load of one arm. `arm`: its value of the paired parameter; `number`: its pair, from 1.

    `rows` and `metrics`: as those of Attempt.record, of this slice alone. `point` is the arm's Point
    and `hosts` the names of the arm's hosts, where Attempt.slices made the slice.
    """

    arm: object
    number: int
    rows: object = None
    metrics: dict = field(default_factory=dict)
    point: object = None
    hosts: list = field(default_factory=list)


def order(arms: list, rounds: int, repeat: int) -> list[tuple]:
    """(number of the pair, arm) of each slice: A B, B A, A B ...; in even repeats B A, A B, B A ...

    So a slow drift affects all arms alike, and no arm is always first after a start.
    """
    return [(number, arm) for number in range(1, rounds + 1)
            for arm in (arms if (number + repeat) % 2 == 0 else reversed(arms))]


def in_turns(arms: list, rounds: int, repeat: int, up=None) -> list[tuple]:
    """As `order`, but all slices of one arm before those of the next. The arm `up` is already set up
    and goes first; otherwise the first arm does in odd repeats, and the last one in even repeats."""
    listed = list(arms) if repeat % 2 else list(reversed(arms))
    if up in listed:
        listed = [up, *(arm for arm in listed if arm != up)]
    return [(number, arm) for arm in listed for number in range(1, rounds + 1)]


def frame(slices: list[Slice], parameter: str):
    """DataFrame of all slices' rows, with the columns `parameter` and `slice`."""
    import pandas as pd

    parts = [rows_of(one).assign(**{parameter: one.arm, "slice": one.number}) for one in slices]
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def summaries(slices: list[Slice]) -> list[dict]:
    """The metrics of each slice: those computed from its rows, and its own."""
    return [summarise(rows_of(one)) | dict(one.metrics) for one in slices]


def arm_summary(slices: list[Slice]) -> dict:
    """The metrics of an arm over all of its slices.

    Computed ones are of all rows together; `seconds` is the sum over the slices, and rate_per_s the
    successful operations in that time. Given ones are means over the slices, but the most of those that say whether
    the clients were the limit (`..._limited`); a text or a list stays if it is the same in all slices.
    """
    import pandas as pd

    parts = [rows_of(one) for one in slices]
    computed = summarise(pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True))
    if "seconds" in computed:
        computed["seconds"] = sum(summarise(part).get("seconds", 0.0) for part in parts)
        if computed["seconds"] > 0:
            computed["rate_per_s"] = (computed["n"] - computed.get("errors", 0)) / computed["seconds"]
    return computed | _means([one.metrics for one in slices])


def _means(given: list[dict]) -> dict:
    found = {}
    for name in dict.fromkeys(name for metrics in given for name in metrics):
        values = [metrics[name] for metrics in given if name in metrics]
        if all(map(_is_number, values)) and name.endswith("_limited"):
            found[name] = max(values)
        elif all(map(_is_number, values)):
            found[name] = values[0] if len(values) == 1 else math.fsum(values) / len(values)
        elif all(value == values[0] for value in values):
            found[name] = values[0]
    return found


def log_ratios(of: dict, than: dict) -> dict:
    """How an arm differs from the first one, over the pairs of slices in which both have a metric
    above 0: {metric_log_ratio: mean of the natural logarithms of the ratios, metric_log_ratio_sd: their
    standard deviation, with two pairs or more}, and `pairs`, the number of pairs.

    of, than: {number of the pair: metrics of the slice}.
    """
    numbers = sorted(set(of) & set(than))
    found = {"pairs": len(numbers)}
    for name in dict.fromkeys(name for number in numbers for name in of[number]):
        logs = [math.log(of[number][name] / than[number][name]) for number in numbers
                if _is_above_0(of[number].get(name)) and _is_above_0(than[number].get(name))]
        if logs:
            found[f"{name}_log_ratio"] = statistics.fmean(logs)
        if len(logs) > 1:
            found[f"{name}_log_ratio_sd"] = statistics.stdev(logs)
    return found


def check_slices(slices: list[Slice], parameter: str, arms: list) -> None:
    """InputError for an unknown arm, one without a slice, and two slices of one arm with one number."""
    seen = set()
    for one in slices:
        if one.arm not in arms:
            raise InputError(f"there is a slice of {one.arm!r}, which is no arm", key=parameter, allowed=arms)
        if (one.arm, one.number) in seen:
            raise InputError(f"two slices of {one.arm!r} have the number {one.number}", key="slice",
                             allowed="one slice of each arm a number")
        seen.add((one.arm, one.number))
    for arm in arms:
        if arm not in {one.arm for one in slices}:
            raise InputError(f"no slice of {arm!r}", key=parameter, allowed="a slice or more of each arm")


def check_arms(given: dict, parameter: str, arms: list) -> None:
    """InputError for metrics of an unknown arm."""
    for arm in given:
        if arm not in arms:
            raise InputError(f"there are metrics of {arm!r}, which is no arm", key=parameter, allowed=arms)


def arm_results(slices: list[Slice], arms: list, further: dict) -> list[dict]:
    """For each arm {"value", "summary"}: its metrics, those of `further[arm]`, and its log ratios."""
    each = {arm: {} for arm in arms}
    for one, metrics in zip(slices, summaries(slices)):
        each[one.arm][one.number] = metrics
    results = []
    for arm in arms:
        summary = arm_summary([one for one in slices if one.arm == arm]) | dict(further.get(arm, {}))
        if arm != arms[0]:
            summary |= log_ratios(each[arm], each[arms[0]])
        results.append({"value": arm, "summary": summary})
    return results


def rows_of(one: Slice):
    """DataFrame of a slice's rows."""
    import pandas as pd

    return one.rows if isinstance(one.rows, pd.DataFrame) else pd.DataFrame(one.rows or [])


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) or hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0


def _is_above_0(value) -> bool:
    return value is not None and _is_number(value) and math.isfinite(value) and value > 0

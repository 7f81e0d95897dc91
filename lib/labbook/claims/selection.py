"""Which points a claim needs: those that one of its arms selects, and those of their baseline. Which value that a
claim wants is one that no point can have."""

import math

from labbook.checks import did_you_mean
from labbook.errors import InputError

_ABSENT = object()      # equals no wanted value, and none is missing


def is_tested(claim: dict) -> bool:
    """Whether measurements decide a claim, not a stated reason."""
    return claim["rule"]["name"] != "not_testable"


def needs_point(claim: dict, *params: dict) -> bool:
    """Whether a claim needs a point with these parameters; of a paired point they are one dict an arm,
    and one that the claim needs is enough."""
    if not is_tested(claim):
        return False
    wanted = wanted_arms(claim)
    return any(has(one, arm) for one in params for arm in wanted)


def can_be_compared(claim: dict, params: list[dict]) -> bool:
    """Whether points with these parameters, one dict an arm, have all that a claim compares: each of its arms and,
    where it follows a parameter, two values of it."""
    wanted, along = wanted_arms(claim), claim["rule"].get("along")
    values = {one.get(along) for one in params if any(has(one, arm) for arm in wanted)}
    return all(any(has(one, arm) for one in params) for arm in wanted) and (along is None or len(values) > 1)


def has(params: dict, arm: dict) -> bool:
    """Whether parameters, or a point's row, are those of an arm."""
    return all(_matches(params.get(name, _ABSENT), want) for name, want in arm.items())


def wanted_arms(claim: dict) -> list[dict]:
    """{parameter: wanted value} of each arm that a claim compares, and of their baselines."""
    rule = claim["rule"]
    arms = [rule.get("of", {}), *([rule["than"]] if "than" in rule else [])]
    wanted = [{**rule.get("where", {}), **arm} for arm in arms]
    return wanted + [{**arm, **rule["baseline"]["arm"]} for arm in wanted if "arm" in rule.get("baseline", {})]


def fits(claim: dict, rows: list[dict], parameters) -> bool:
    """Whether published points, which may be older than a claim, have what it compares: the parameters that its
    rule names and, in some point that it selects, its metric."""
    rule = claim["rule"]
    named = {name for part in ("of", "than", "where") for name in rule.get(part, ())}
    named |= {*rule.get("baseline", {}).get("arm", ()), *([rule["along"]] if "along" in rule else [])}
    return named <= set(parameters) and any(
        not is_missing(row.get(claim["metric"])) for row in rows if needs_point(claim, row))


def _matches(value, want) -> bool:
    return value is not _ABSENT and matches(value, want)


def check_value(name, want, rows, known_words, file, key=None) -> None:
    """InputError for a parameter's value that no row has and that is probably a mistake.

    It is one where the value is a word that resembles one of the rows' and is none of `known_words`,
    or where it is text among numbers, or a number or a truth value among text.
    """
    known = sorted({row[name] for row in rows if not is_missing(row[name])}, key=str)
    if not known or any(matches(row[name], want) for row in rows):
        return
    near = ""
    if _is_word(want) and want not in known_words:
        near = did_you_mean(want, [one for one in known if not _extends(want, one)])
    kinds = {_kind(one) for one in known}
    if isinstance(want, bool) and kinds == {"text"}:
        near = ": YAML reads on, off, yes and no as true and false; quote it"
    if near or (_kind(want) not in kinds | {""} and "" not in kinds):
        raise InputError(f"no point has {name} {want!r}{near}", file=file, key=key, allowed=known)


def _kind(value) -> str:
    """Type of a value: "text" or "number"; empty for None and booleans, which fit either."""
    if isinstance(value, str):
        return "text"
    is_number = isinstance(value, (int, float, dict)) and not isinstance(value, bool)
    return "number" if is_number else ""


def _is_word(want) -> bool:
    """Whether a value is a plain word; similar names with digits often name different values."""
    return isinstance(want, str) and want.islower() and want.replace("_", "").isalpha()


def _extends(want, other) -> bool:
    """Whether one value is the other with a word added (standby, standby_replay): no typing error."""
    short, long = sorted((str(want), str(other)), key=len)
    return long.startswith(f"{short}_")


def matches(value, want) -> bool:
    """Whether a parameter's value is the wanted one, or within a wanted {at_least, at_most}."""
    if isinstance(want, dict):
        return (not is_missing(value) and not isinstance(value, str)
                and want.get("at_least", -math.inf) <= value <= want.get("at_most", math.inf))
    return is_missing(value) if want is None else value == want


def is_missing(value) -> bool:
    """Whether a value is None or NaN."""
    return value is None or value != value

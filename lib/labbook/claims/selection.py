"""Which points a claim needs: those that one of its arms selects, and those of their baseline."""

from labbook.claims.comparison import is_missing, matches

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

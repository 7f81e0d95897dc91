"""Every claim can be met and can be refuted: its rule judges made-up points of both kinds.

The points lie where the rule looks. Their values are possible ones: none is below 0, and a metric whose
unit begins with "of " is a share, so that a claim about it that every share meets fails here.
"""

from itertools import product

import pytest
from papers_in_book import PAPERS

from labbook.claims import claims, rules
from labbook.claims.selection import matches

REPEATS = 8     # two of which choose what `differs_over` compares
NEVER = 60      # repeats without what a claim of none or of some is about


def bounded(rule) -> tuple:
    """The lower and upper bound of the number that a rule judges; None where there is none."""
    name, margin = rule["name"], rule.get("margin", 1)
    return {"greater": (margin, None), "equal_within": (1 / margin, margin), "grows_with": (margin, None),
            "above": (rule.get("value"), None), "below": (None, rule.get("value")),
            }.get(name, (rule.get("low"), rule.get("high")))


def within(low, high, most):
    """A value well between the bounds; at most `most`."""
    if low is None:
        return high / 2
    return min((low + (2 * low + 2 if high is None else high)) / 2, (low + most) / 2)


def outside(low, high, most):
    """A value well beyond one of the bounds, none of them below 0 or above `most`."""
    return min(2 * high + 1, most) if high is not None and (high < most or low is None) else low / 2


def ratio(chosen):
    return lambda rule: lambda arm, x: 1.0 if arm else chosen(*bounded(rule), float("inf"))


def power(chosen):
    def made(rule):
        low, high = bounded(rule)
        ends = low if low is not None else high - 2, high if high is not None else low + 2
        at = sum(ends) / 2 if chosen is within else (ends[1] + 1 if high is not None else low - 1)
        return lambda arm, x: x**at
    return made


def level(chosen):
    def made(rule):
        low, high = bounded(rule)
        value = chosen(low, high, 1.0 if rule.get("unit", "").startswith("of ") else float("inf"))
        return lambda arm, x: value
    return made


def at_the_bound(rule):
    value = bounded(rule)[bounded(rule)[0] is None]
    return lambda arm, x: value


def curves(of, than):
    return lambda rule: lambda arm, x: than(x) if arm else of(x)


def flat(x):
    return 1.0


def line(x):
    return 1.0 + x


MET_AND_NOT = {     # rule: functions of the rule that give values, by arm and place along
    "greater": (ratio(within), ratio(outside)), "equal_within": (ratio(within), ratio(outside)),
    "ratio_between": (ratio(within), ratio(outside)),
    "differs_over": (curves(line, flat), curves(flat, flat)),
    "grows_with": (curves(lambda x: x, flat), curves(lambda x: 1 / x, flat)),
    "rises_by": (lambda rule: lambda arm, x: 1 + x * within(*bounded(rule), float("inf")), curves(flat, flat)),
    "scales_with": (power(within), power(outside)), "proportional": (power(within), power(outside)),
    "grows_alike": (curves(line, line), curves(lambda x: x**3, flat)),
    "grows_less": (curves(flat, line), curves(line, flat)),
    "grows_slower": (curves(lambda x: 10 + x / 100, line), curves(line, lambda x: 10 + x / 100)),
    "crosses_near": (lambda rule: lambda arm, x: 1.0 if arm else (rule["at"] / x)**2,
                     lambda rule: lambda arm, x: 1.0 if arm else 2.0),
    "above": (level(within), level(outside)), "below": (level(within), level(outside)),
    "between": (level(within), level(outside)),
    "always": (at_the_bound, level(outside)), "sometimes": (at_the_bound, level(outside)),
}


def places(rule) -> list:
    """Values of `along` that the rule selects; one place where it has none."""
    if rule["name"] == "crosses_near":
        return [rule["at"] + rule["within"] * part for part in (-1.5, -0.5, 0.5, 1.5)]
    bounds = rule.get("where", {}).get(rule.get("along"), {})
    least = bounds.get("at_least", 1)
    every = [least * 2**i for i in range(4 if "along" in rule else 1)]
    return [x for x in every if x <= bounds.get("at_most", x)]


def repeats_of(rule) -> int:
    return NEVER if rule["name"] in ("always", "sometimes") else REPEATS


def points(claim, made) -> tuple[list[dict], tuple]:
    """Rows where the claim's rule looks, and their parameters' names; the place meets all its needs."""
    rule = claim["rule"]
    needs = {need["metric"]: need.get("at_least", need.get("at_most")) for need in claim.get("needs", ())}
    arms = [{**rule.get("where", {}), **arm} for arm in
            [rule.get("of", {})] + ([rule["than"]] if "than" in rule else [])]
    less = {metric: 0.0 for metric in [rule.get("baseline", {}).get("metric")] if metric}
    rows = []
    for (number, arm), x, repeat in product(enumerate(arms), places(rule), range(1, repeats_of(rule) + 1)):
        chosen = {name: want.get("at_least", want.get("at_most")) if isinstance(want, dict) else want
                  for name, want in arm.items()} | ({rule["along"]: x} if "along" in rule else {})
        assert all(matches(chosen[name], want) for name, want in arm.items())
        rows.append(needs | less | chosen | {"repeat": repeat, "n": 100, claim["metric"]: made(number, x)})
    return rows, tuple(name for name in chosen)


def judged(claim, made) -> rules.Outcome:
    return rules.decide(claim, *points(claim, made))


def cannot(claim) -> list[str]:
    """What a claim cannot be by made-up points: replicated, not replicated."""
    met, unmet = (make(claim["rule"]) for make in MET_AND_NOT[claim["rule"]["name"]])
    wanted = ((met, rules.REPLICATED), (unmet, rules.NOT_REPLICATED))
    return [f"{claim['id']}: not {verdict} but {found.verdict}, {found.reason}" for made, verdict in wanted
            for found in [judged(claim, made)] if found.verdict != verdict]


def with_rule(paper):
    return [claim for claim in claims.load(paper) if claim["rule"]["name"] != "not_testable"]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_claim_can_be_met_and_can_be_refuted(paper):
    assert [what for claim in with_rule(paper) for what in cannot(claim)] == []


def test_every_rule_has_made_up_data():
    assert set(MET_AND_NOT) == set(claims.RULES) - {"not_testable"}


@pytest.mark.parametrize("rule, verdict", [
    ({"name": "above", "value": 1, "unit": "of all"}, "not replicated"),
    ({"name": "always", "high": 1, "unit": "of all"}, "replicated"),
    ({"name": "below", "value": 0, "unit": "s"}, "not replicated")])
def test_a_claim_that_only_one_kind_of_data_can_have_is_found(rule, verdict):
    """A share above 1, a share of 1 at most, a time below 0."""
    found = cannot({"id": "x", "metric": "m", "rule": rule})
    assert len(found) == 1 and f"but {verdict}" in found[0]


def selected(claim) -> str:
    """What a claim looks at: two that look at the same are one claim."""
    rule = {name: part for name, part in claim["rule"].items() if name not in ("margin", "unit")}
    parts = {name: sorted(map(str, part.items())) if isinstance(part, dict) else part
             for name, part in rule.items()}
    return repr((claim["experiment"], claim["metric"], sorted(parts.items(), key=str)))


@pytest.mark.parametrize("paper", PAPERS)
def test_no_claim_repeats_another(paper):
    seen = {}
    for claim in with_rule(paper):
        seen.setdefault(selected(claim), []).append(claim["id"])
    assert not [ids for ids in seen.values() if len(ids) > 1]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_has_three_to_six_headline_claims_and_they_are_its_own(paper):
    """One with fewer than three claims of its own, as while it is being written, may have none."""
    headline = [claim for claim in claims.load(paper) if claim["headline"]]
    own = [claim for claim in claims.load(paper) if claim["owner"] == "paper"]
    assert (3 if len(own) >= 3 else 0) <= len(headline) <= 6 and all(claim in own for claim in headline)
    assert not [claim["id"] for claim in headline if claim["rule"]["name"] == "not_testable"]


@pytest.mark.parametrize("paper", PAPERS)
def test_what_a_paper_leaves_open_is_not_its_own_claim(paper):
    assert not [claim["id"] for claim in claims.load(paper) if claim["owner"] == "paper" and "none" in claim["paper"]]

"""Claims on settings that were measured in repeats of their own, and on values that the first repeats choose."""

from labbook.claims.rules import NOT_RUN, OPEN, REPLICATED, decide


def rows(x, repeats, **more):
    return [{"x": x, "arm": arm, "repeat": repeat, "ms": ms + 0.01 * repeat, **more}
            for repeat in repeats for arm, ms in (("a", 10.0), ("b", 20.0))]


def outcome(rule, found, **more):
    claim = {"id": "c", "metric": "ms", "rule": {"margin": 1.05, **rule}, **more}
    return decide(claim, found, {"x": [1, 3], "arm": ["a", "b"]})


def test_a_claims_needs_are_those_of_the_repeats_that_are_judged():
    """Repeats of a setting that came later had made a decided claim not testable."""
    found = rows(1, range(1, 7), cpu=80) + rows(3, range(7, 19), cpu=99)
    needs = [{"metric": "cpu", "at_most": 95, "otherwise": "the processor was the limit"}]
    judged = outcome({"name": "greater", "of": {"arm": "b"}, "than": {"arm": "a"}}, found, needs=needs)
    assert (judged.verdict, judged.interval.n) == (REPLICATED, 6)


def test_arms_of_different_repeats_are_not_compared():
    """One limited point had made the claim not testable, as if the clients were the limit of all."""
    found = rows(1, range(1, 7)) + rows(3, range(7, 13))
    found[0]["client_limited"] = 1.0
    judged = outcome({"name": "greater", "of": {"x": 3}, "than": {"x": 1}}, found)
    assert (judged.verdict, judged.reason) == (NOT_RUN, "the arms were measured in no repeat together")


def values(repeats, **of_value):
    return [{"v": v, "repeat": repeat, "ms": of(repeat)} for repeat in repeats for v, of in of_value.items()]


def difference(found):
    return decide({"id": "c", "metric": "ms", "rule": {"name": "differs_over", "along": "v", "margin": 1.5}}, found,
                  {"v": ["a", "b", "c"]})


def test_the_repeats_that_choose_are_needed_beside_those_that_test():
    found = difference(values(range(1, 5), a=lambda _: 10.0, b=lambda _: 20.0))
    assert (found.verdict, found.repeats_needed) == (OPEN, 8)
    found = difference(values(range(1, 9), a=lambda _: 10.0, b=lambda _: 20.0))
    assert found.verdict == REPLICATED


def test_what_another_pair_of_values_speaks_against_is_no_tendency():
    found = difference(values(range(1, 8), a=lambda _: 10.0, b=lambda _: 11.0,
                              c=lambda repeat: 10.0 if repeat < 3 else 20.0))
    assert (found.verdict, found.tendency) == (OPEN, None)

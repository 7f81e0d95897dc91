"""Which repeats are asked for next: by simulated claims whose repeats have an effect and noise."""

import math
import random

import pytest

from labbook.claims.decisions import by_median, least_repeats
from labbook.claims.looks import LOOKS
from labbook.pipeline.running import planner


class Simulated:
    """Experiments of some places with durations, and claims that compare two places by a bound."""

    def __init__(self, seed, experiments=5, claims=24, spread=0.16):
        self.draw = random.Random(seed)
        self.costs = {f"e{i}": {"setups": [0, 0, 1, 1], "done": [0] * 4, "declared": 4,
                                "setup_s": self.draw.uniform(2, 20),
                                "point_s": [self.draw.uniform(0.5, 6) for _ in range(4)]} for i in range(experiments)}
        self.claims, self.numbers = [], {}
        for number in range(claims):
            self._add(f"c{number}", f"e{number % experiments}", spread)
        self.seconds, self.rounds = 0.0, 0

    def _add(self, name, experiment, spread):
        """Effects beside the bound as those of the published records, of which six repeats decide two
        thirds and sixty five sixths."""
        effect = self.draw.choices((0.0, 0.08, 0.2, 0.4, 0.8), (3, 2, 4, 5, 9))[0] * self.draw.choice((-1, 1))
        noise = spread * self.draw.lognormvariate(0, 0.5)
        self.numbers[name] = [math.exp(effect + self.draw.gauss(0, noise)) for _ in range(LOOKS[-1])]
        self.claims.append({"id": name, "experiment": experiment, "points": self.draw.choice(([0, 2], [1, 3])),
                            "verdict": "not run", "needed": None})

    def survey(self):
        return {"claims": self.claims, "experiments": self.costs, "unread": {}}

    def measure(self, planned, round_s, given):
        """One round, as the kernel would measure and judge it; it stops when the time given is up."""
        lab = planner.Lab(self.costs, 5.0)
        for name, repeats in planned.repeats.items():
            own = [one for one in self.claims if one["id"] in planned.claims and one["experiment"] == name]
            places = {place for one in own for place in one["points"]}
            seconds = self.draw.uniform(0.9, 1.1) * lab.seconds(name, places, repeats)
            if self.seconds + seconds > given:
                self.seconds = given
                break
            self.seconds += seconds
            for place in places:
                self.costs[name]["done"][place] = max(repeats, self.costs[name]["done"][place])
        self.seconds += round_s
        self.rounds += 1
        self.judge(planned.claims)

    def judge(self, claims):
        ids = set(claims)
        for one in self.claims:
            if one["id"] in ids and self.repeats(one):
                found = by_median(self.numbers[one["id"]][:self.repeats(one)], 1.0, math.inf, "times")
                one.update(verdict=found.verdict, needed=found.repeats_needed)

    def spent(self, name):
        """Seconds of an experiment's points."""
        one = self.costs[name]
        setups = {setup: max(done for at, done in zip(one["setups"], one["done"]) if at == setup)
                  for setup in set(one["setups"])}
        return sum(map(math.prod, zip(one["point_s"], one["done"]))) + one["setup_s"] * sum(setups.values())

    def repeats(self, one):
        return min(self.costs[one["experiment"]]["done"][place] for place in one["points"])

    def look(self, name):
        """The look that decides a claim, or the last."""
        return next((look for look in LOOKS if by_median(
            self.numbers[name][:look], 1.0, math.inf, "times").verdict != "open"), LOOKS[-1])

    def decided(self):
        return sum(one["verdict"] in ("replicated", "not replicated") for one in self.claims)

    def run(self, given=math.inf, round_s=5.0):
        first = None
        while True:
            planned = planner.plan(self.survey(), LOOKS, given - self.seconds, round_s=round_s)
            first = planned if first is None else first
            if not planned.repeats:
                return first
            self.measure(planned, round_s, given)


def test_every_claim_is_asked_until_it_is_decided_or_the_looks_end():
    lab, of_places = Simulated(1), {}
    lab.run(round_s=0)
    for one in lab.claims:
        places = of_places.setdefault((one["experiment"], tuple(one["points"])), [])
        places.append(lab.look(one["id"]))
        assert one["verdict"] in ("replicated", "not replicated") or lab.repeats(one) == LOOKS[-1]
    for (experiment, places), looks in of_places.items():
        assert lab.costs[experiment]["done"][places[0]] == max(looks), "no repeat of what is decided"
    assert {max(looks) for looks in of_places.values()} > {LOOKS[0], LOOKS[-1]}


def test_the_time_of_all_is_known_from_the_start():
    estimated, took = [], []
    for seed in range(40):
        lab = Simulated(seed)
        estimated.append(lab.run().total_s)
        took.append(lab.seconds)
    assert sum(estimated) == pytest.approx(sum(took), rel=0.25)
    apart = sorted(abs(a / b - 1) for a, b in zip(estimated, took))
    assert apart[len(apart) // 2] < 0.25


def test_the_time_of_each_experiment_is_known_from_the_start():
    estimated, took = {}, {}
    for seed in range(40):
        lab = Simulated(seed)
        for name, seconds in lab.run(round_s=0.0).experiments.items():
            estimated.setdefault(name, []).append(seconds)
            took.setdefault(name, []).append(lab.spent(name))
    for name in estimated:
        assert sum(estimated[name]) == pytest.approx(sum(took[name]), rel=0.25), name


def test_the_points_of_the_next_looks_are_counted_once_with_their_set_ups():
    surveyed = survey(("x", "a", "open", 9), ("y", "a", "open", 9), ("z", "b", "replicated", None),
                      a=(6, 10), b=(6, 10))
    surveyed["experiments"]["a"]["setup_s"] = 5.0
    surveyed["unread"] = {"ceiling": {"left": 2, "declared": 2, "seconds": 4.0},
                          "seek": {"left": 1, "declared": 1, "seconds": None}}
    assert planner.next_look(surveyed, LOOKS, default_s=7.0) == (3 + 3, 3 * (10 + 5.0) + 4.0 + 7.0)


def test_every_experiment_gets_its_first_look_before_any_gets_a_further_one():
    """The first experiment had nearly all the time, and five nodes came last."""
    lab = Simulated(7)
    for one in lab.costs["e0"], lab.costs["e1"]:
        one["done"] = [6] * 4
    lab.judge(one["id"] for one in lab.claims if one["experiment"] in ("e0", "e1"))
    planned = planner.plan(lab.survey(), LOOKS, 3600)
    assert planned.repeats == dict.fromkeys(("e2", "e3", "e4"), LOOKS[0])
    assert max(planned.seconds[one["id"]] for one in lab.claims if one["experiment"] in ("e2", "e3", "e4")) <= min(
        planned.seconds[one["id"]] for one in lab.claims if one["id"] in planned.seconds and one["experiment"] in ("e0", "e1"))


def test_given_little_time_more_experiments_are_judged_than_one():
    lab = Simulated(11)
    limit = 1.3 * sum(planner.Lab(lab.costs, 5.0).seconds(name, range(4), LOOKS[0]) for name in lab.costs)
    lab.run(limit)
    assert all(lab.repeats(one) >= LOOKS[0] for one in lab.claims)
    assert lab.seconds <= 1.05 * limit


def test_the_cheapest_first_looks_come_first_where_time_is_short():
    surveyed = survey(("x", "a", "not run", None), ("y", "b", "not run", None), ("z", "b", "not run", None),
                      ("old", "c", "open", 9), a=(0, 12), b=(0, 20), c=(6, 1))
    assert planner.plan(surveyed, LOOKS, 150, round_s=1).repeats == {"b": 6}
    assert planner.plan(surveyed, LOOKS, 100, round_s=1).repeats == {"a": 6}
    assert planner.plan(surveyed, LOOKS, 30, round_s=1).repeats == {"c": 9}
    assert planner.plan(surveyed, LOOKS, 250, round_s=1).repeats == {"b": 6, "a": 6}


def test_an_experiment_of_which_nothing_is_known_has_a_round_of_its_own():
    surveyed = survey(("x", "a", "not run", None), ("y", "b", "not run", None), ("z", "c", "not run", None),
                      a=(0, 10), b=(0, 10), c=(0, 10))
    for name in "bc":
        surveyed["experiments"][name]["point_s"] = None
    assert planner.plan(surveyed, LOOKS, default_s=1.0).repeats == {"a": 6}
    surveyed["experiments"].pop("a"), surveyed["claims"].pop(0)
    assert planner.plan(surveyed, LOOKS, default_s=1.0).repeats == {"b": 6}


def test_given_too_little_time_the_cheap_claims_are_decided_and_the_others_reported():
    all_of, some = Simulated(3), Simulated(3)
    all_of.run()
    limit = all_of.seconds / 6
    some.run(limit)
    assert some.seconds <= 1.05 * limit
    assert some.decided() > all_of.decided() / 6, "the first sixth of the time decides more than a sixth"
    left = planner.plan(some.survey(), LOOKS, max(limit - some.seconds, 0), round_s=5.0)
    open_now = {one["id"] for one in some.claims if one["verdict"] not in ("replicated", "not replicated")
                and some.repeats(one) < LOOKS[-1]}
    assert set(left.seconds) == set(left.late) == open_now


def test_a_run_that_goes_on_measures_what_one_without_a_stop_would():
    at_once, twice = Simulated(5), Simulated(5)
    at_once.run()
    twice.run(at_once.seconds / 3)
    twice.run()
    assert [one["verdict"] for one in twice.claims] == [one["verdict"] for one in at_once.claims]
    assert twice.costs == at_once.costs


def survey(*claims, **experiments):
    """claims: (id, experiment, verdict, needed); each experiment: (repeats, seconds of a repeat)."""
    return {"claims": [{"id": name, "experiment": of, "points": [0], "verdict": verdict, "needed": needed}
                       for name, of, verdict, needed in claims],
            "experiments": {name: {"setups": [0], "done": [done], "declared": 3, "setup_s": 0.0, "point_s": [seconds]}
                            for name, (done, seconds) in experiments.items()}, "unread": {}}


def test_what_is_soon_decided_comes_first_and_what_is_decided_not_at_all():
    found = planner.plan(survey(("slow", "a", "open", 9), ("fast", "b", "open", 9), ("done", "c", "replicated", None),
                                a=(6, 100), b=(6, 10), c=(6, 1)), LOOKS, 200, round_s=1)
    assert found.repeats == {"b": 9} and found.claims == ("fast",) and found.late == ("slow",)
    assert found.seconds["fast"] < found.seconds["slow"]


def test_claims_that_no_repeat_decides_are_not_asked():
    surveyed = survey(("here", "a", "not testable here", None), ("last", "b", "open", None), a=(6, 1), b=(60, 1))
    assert planner.plan(surveyed, LOOKS).repeats == {}
    surveyed["claims"][0]["points"] = []
    assert planner.plan(surveyed, LOOKS).repeats == {}


def test_a_claim_that_its_first_repeats_could_not_test_is_asked_on():
    """A run that was stopped after one repeat, in which the clients were the limit, gave the claim up."""
    for done, needed, asked in ((1, 6, {"a": 6}), (1, None, {}), (6, None, {})):
        surveyed = survey(("here", "a", "not testable here", needed), a=(done, 1))
        assert planner.plan(surveyed, LOOKS).repeats == asked


def test_looks_that_cost_less_than_a_round_are_taken_together():
    assert planner.plan(survey(("x", "a", "open", 20), a=(6, 0.1)), LOOKS, round_s=10).repeats == {"a": 20}
    assert planner.plan(survey(("x", "a", "open", 60), a=(30, 10)), LOOKS, round_s=10).repeats == {"a": 60}


@pytest.mark.parametrize("repeats, needed, asked", [(6, 9, 9), (6, 12, 12), (6, 20, 12), (9, 20, 12), (12, 60, 20)])
def test_a_round_goes_to_the_expected_look_or_to_twice_the_repeats(repeats, needed, asked):
    """A platform was started anew for three repeats, and once more for the next three."""
    found = planner.plan(survey(("x", "a", "open", needed), a=(repeats, 10)), LOOKS, round_s=10)
    assert found.repeats == {"a": asked}


def test_time_left_without_a_claim_that_fits_goes_to_the_next_look():
    found = planner.plan(survey(("x", "a", "open", 30), a=(6, 10)), LOOKS, 50, round_s=5)
    assert found.repeats == {"a": 9} and found.late == ("x",)
    assert planner.plan(survey(("x", "a", "open", 30), a=(6, 100)), LOOKS, 50, round_s=5).repeats == {}


def test_a_claim_that_was_never_judged_is_begun_even_if_its_time_is_too_short():
    surveyed = survey(("x", "a", "not run", None), ("y", "b", "not run", None), a=(0, 100), b=(0, 200))
    found = planner.plan(surveyed, LOOKS, 50, round_s=5)
    assert found.repeats == {"a": 6} and found.late == ("x", "y") and found.total_s == 50
    assert planner.plan(surveyed, LOOKS, 4, round_s=5).repeats == {}


@pytest.mark.parametrize("seen, guessed, seconds", [(0, True, 606.0), (6, True, 36.0), (6, False, 606.0)])
def test_a_guessed_set_up_takes_no_longer_than_those_seen_here(seen, guessed, seconds):
    """A platform that is up is the next experiment's too."""
    experiments = {"seen": {"setups": [0], "done": [seen], "setup_s": 5.0, "point_s": [1.0]},
                   "new": {"setups": [0], "done": [0], "setup_s": 100.0, "point_s": [1.0], "guessed": guessed}}
    assert planner.Lab(experiments, 5.0).seconds("new", [0], 6) == seconds


def test_experiments_that_no_claim_reads_are_counted():
    surveyed = survey(("x", "a", "not run", None), a=(0, 1))
    surveyed["unread"] = {"ceiling": {"left": 2, "declared": 2, "seconds": 30.0}}
    assert planner.plan(surveyed, LOOKS).seconds["x"] >= 36
    surveyed["unread"]["ceiling"]["seconds"] = None
    assert planner.plan(surveyed, LOOKS, default_s=4.0, round_s=0).seconds["x"] == 14


def test_a_guess_of_what_comes_before_does_not_stop_an_ask():
    surveyed = survey(("x", "a", "not run", None), a=(0, None))
    surveyed["experiments"]["a"]["point_s"] = None
    surveyed["unread"] = {"ceiling": {"left": 2, "declared": 2, "seconds": None}}
    assert planner.plan(surveyed, LOOKS, 600, default_s=1600).repeats == {"a": 6}
    surveyed["unread"]["ceiling"]["seconds"] = 700.0
    assert planner.plan(surveyed, LOOKS, 600, default_s=1600).repeats == {}


def test_a_claim_that_one_sight_decides_is_asked_for_one_repeat_first():
    surveyed = survey(("seen", "a", "not run", None), ("usual", "b", "not run", None), a=(0, 50), b=(0, 10))
    surveyed["claims"][0]["by_sight"] = True
    found = planner.plan(surveyed, LOOKS, 200, round_s=5)
    assert found.repeats == {"a": 1, "b": 6} and found.late == ()
    surveyed["claims"][0]["verdict"], surveyed["experiments"]["a"]["done"] = "open", [1]     # nothing was seen
    assert planner.plan(surveyed, LOOKS, 2000, round_s=5).repeats == {"a": 6, "b": 6}


def test_a_claim_that_whole_repeats_could_not_judge_is_asked_no_more():
    """A crossing near 70 of a run with up to 20 clients was measured sixty times."""
    one = planner.Claim("c", "e", frozenset([0]), 6, None, "not run")
    assert not planner.can_be_asked(one, LOOKS)
    assert planner.can_be_asked(planner.Claim("c", "e", frozenset([0]), 0, None, "not run"), LOOKS)


def test_a_claim_of_none_is_planned_with_the_repeats_without_one_that_it_takes():
    never = {"name": "always", "high": 0}
    assert [least_repeats(rule, 4) for rule in (never, never | {"rate": 0.05}, never | {"per": "point"}, {"name": "greater"}, {"name": "differs_over"})] == [
        30, 60, 9, 6, 8]
    one = planner.Claim("c", "e", frozenset([0]), 0, None, "not run", least=30)
    assert one.expected(LOOKS) == 30
    survey = {"claims": [{"id": "c", "experiment": "e", "points": [0], "verdict": "not run", "needed": None, "least": 30}],
              "experiments": {"e": {"setups": [0], "done": [0], "declared": 1, "setup_s": 0.0, "point_s": [10.0]}}}
    assert planner.plan(survey, LOOKS).total_s > 300

"""The order of visits, what is thrown away, and what a pair's slices get; without servers."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from paper_stand_ins import StandIn, point

from labbook.papers.cloud_platforms import turns
from labbook.papers.cloud_platforms.platforms import Bed
from labbook.papers.cloud_platforms.turns import Tested, grouped, in_turn, twin_ratios

RELEASES = ["older", "newer"]


class Steps:
    """Visits of so many steps, in the order in which they were made."""

    def __init__(self, steps):
        self.steps, self.did = steps, []

    def __call__(self, tested, point):
        for step in range(self.steps):
            if step:
                yield
            self.did.append(tested.folder or point.release)
        return SimpleNamespace(rows=[{"ok": True}], metrics={"index": float(len(self.did))})


def test_steps_of_several_visits_alternate_in_an_order_that_is_reversed_each_time():
    visit = Steps(4)
    found = in_turn({one: visit(Tested(), SimpleNamespace(release=one)) for one in "AB"}, lambda key: None)
    assert visit.did == list("ABBAABBA") and list(found) == ["B", "A"]


def test_each_step_is_announced_before():
    seen = []
    visit = Steps(2)
    in_turn({one: visit(Tested(), SimpleNamespace(release=one)) for one in "AB"}, lambda key: seen.append(
        (key, len(visit.did))))
    assert seen == [("A", 0), ("B", 1), ("B", 2), ("A", 3)]


def measured(visit, *, warm=None, at_once=True, pairs=2, twin=False, repeat=1):
    """(slices, what `after` returned, the order in which arms were made up) of a point of both releases."""
    study, made = StandIn(SimpleNamespace(hosts={}), hosts={"older": ["cloud"], "newer": ["cloud2"]}, at_once=at_once), []
    platforms = SimpleNamespace(beds=lambda attempt, arms, everyone, **types: made.append((arms, types)) or {
        arm: Bed(None, None, None, []) for arm in arms})

    def prepare(bed, point):
        return Tested(bed, twin=Tested(bed, folder="twin") if twin and point.release == "newer" else None)

    one = point("unixbench", repeat, {"release": RELEASES}, pairs=pairs, pinned=False)
    with study.attempt(one) as attempt:
        if not at_once:
            attempt.slices = lambda rounds: [SimpleNamespace(arm=arm, number=number, point=one.of(arm))
                                             for arm in RELEASES for number in range(1, rounds + 1)]
        slices, found = turns.measure(attempt, platforms, RELEASES, {"vm": "m1.small"}, prepare, visit,
                                      lambda tested, point: point.release, warm)
    return slices, found, made


def test_pairs_begin_with_the_one_release_and_then_with_the_other():
    visit = Steps(1)
    slices, found, made = measured(visit)
    assert visit.did == ["older", "newer", "newer", "older"]
    assert found == {"older": "older", "newer": "newer"}
    assert [sorted(arms) for arms, _ in made] == [sorted(RELEASES)] and made[0][1] == {"vm": "m1.small"}
    other = Steps(1)
    measured(other, repeat=2)
    assert other.did == ["newer", "older", "older", "newer"]


def test_what_warms_up_is_in_no_slice():
    visit, warm = Steps(1), Steps(1)
    slices, *_ = measured(visit, warm=warm)
    assert sorted(warm.did) == sorted(RELEASES) and len(visit.did) == 4
    assert sorted(one.metrics["index"] for one in slices) == [1, 2, 3, 4]


def test_servers_that_were_tested_before_are_warm():
    beds = {arm: Bed(None, None, None, []) for arm in RELEASES}

    def are_new(older, newer):
        return turns._are_new(beds, {arm: Tested(servers=[SimpleNamespace(id=one) for one in ids])
                                     for arm, ids in (("older", older), ("newer", newer))})

    assert [are_new("a", "b"), are_new("a", "b"), are_new("a", "c"), are_new("a", "c")] == [True, False, True, False]
    assert are_new("", "c")      # machines that are no servers


def test_a_twin_has_its_own_visits_and_is_reported_beside_its_arm_only():
    visit = Steps(3)
    slices, *_ = measured(visit, pairs=1, twin=True)
    assert {name: visit.did.count(name) for name in ("older", "newer", "twin")} == dict(older=3, newer=3, twin=3)
    by_arm = {one.arm: one.metrics for one in slices}
    assert by_arm["newer"]["twin_index_ratio"] > 0 and "twin_index_ratio" not in by_arm["older"]


def test_releases_that_take_turns_are_set_up_one_after_the_other():
    visit = Steps(1)
    _, found, made = measured(visit, at_once=False)
    assert visit.did == ["older", "older", "newer", "newer"]
    assert [arms for arms, _ in made] == [["older"], ["newer"]] and list(found) == RELEASES


def test_slices_are_grouped_by_what_is_up():
    slices = [SimpleNamespace(arm=arm, number=number) for number, arm in ((1, "A"), (1, "B"), (2, "B"), (2, "A"))]
    assert [(arms, len(group)) for arms, group in grouped(slices, True)] == [(["A", "B"], 4)]


@pytest.mark.parametrize("others, found", [
    (None, {}), ({"index": 3.0, "suite": "x", "gone": 0.0}, {"twin_index_ratio": 1.5})])
def test_twins_are_compared_by_numbers_above_0(others, found):
    assert twin_ratios({"index": 2.0, "suite": "x", "gone": 1.0, "none": 0.0}, others) == found


def test_where_the_lab_runs_no_platform_nothing_is_pinned(monkeypatch):
    @contextmanager
    def never(hosts):
        raise AssertionError("pinned")
        yield

    monkeypatch.setattr(turns, "pinned", never)
    tested = Tested(servers=[SimpleNamespace(id="a")])
    hosted = SimpleNamespace(name="cloud", cores=[0, 1])
    for pinned, hosts in ((True, []), (False, [hosted]), (True, [SimpleNamespace(name="cloud", cores=None)])):
        with turns.pinning(point(pinned=pinned), {"newer": Bed(None, None, None, hosts)}) as pin:
            pin(tested)


def test_the_tested_servers_of_all_hosts_of_the_platforms_are_pinned(monkeypatch):
    seen = []

    @contextmanager
    def pinned(hosts):
        yield lambda ids: seen.append(([host.name for host in hosts], ids))

    monkeypatch.setattr(turns, "pinned", pinned)
    hosts = {name: SimpleNamespace(name=name, cores=[0, 1]) for name in ("cloud", "store", "cloud2")}
    beds = {arm: Bed(None, None, None, [hosts[name] for name in names])
            for arm, names in (("older", ["cloud", "store"]), ("newer", ["cloud2"]))}
    with turns.pinning(point(pinned=True), beds) as pin:
        pin(Tested(servers=[SimpleNamespace(id="a"), SimpleNamespace(id="b")]))
    assert seen == [(["cloud", "store", "cloud2"], ["a", "b"])]


def test_twins_are_visited_before_or_behind_the_others():
    twin = Tested()
    tested = {("older", False): Tested(), ("newer", False): Tested(twin=twin)}
    assert list(turns.with_twins(tested)) == [*tested, ("newer", True)]
    assert list(turns.with_twins(tested, first=True)) == [("newer", True), *tested]
    assert turns.with_twins(tested)["newer", True] is twin

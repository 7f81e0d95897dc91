"""The arms of a point in turn: visits of seconds, each of one arm, while the others are up and idle.

A visit is a generator that returns what it measured (an object with `rows` and `metrics`); where it yields, the
next arm has its turn. The order of the arms is reversed after each turn of all (A B B A), and from pair to pair
by the study's own order, so that a slow drift of the machine is the same for all arms.
"""

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from labbook.lab.disk.hurry import in_a_hurry
from labbook.papers.cloud_platforms.clocks import Clocks
from labbook.papers.cloud_platforms.pinning import pinned
from labbook.systems.cluster import in_parallel


@dataclass
class Tested:
    """What of an arm is tested. `servers`: those of the cloud, whose processors are pinned; `machines`: where
    programs run; `folder`: on the disk that is tested. `bed`: of its platform. `twin`: another one alike, which
    has a visit in each pair too, with which the arm's slice is compared (`twin_METRIC_ratio`)."""

    bed: Any = None
    servers: list = field(default_factory=list)
    machines: list = field(default_factory=list)
    folder: str = ""
    twin: "Tested | None" = None
    __test__ = False    # no test of pytest's


def measure(attempt, platforms, everyone, types: dict, prepare, visit, after, warm=None):
    """(slices with their rows and metrics, {arm: what `after(tested, point)` returned}) of the attempt's point.

    everyone, types: as of Platforms.beds. prepare(bed, point) -> Tested, of each arm at the same time, before the first
    visit. visit(tested, point): see above. warm: the same, of each arm before all, and thrown away; once, where
    the same servers are tested in later repeats, too.
    """
    point, slices, found = attempt.point, attempt.slices(attempt.point.pairs), {}
    for arms, of_group in grouped(slices, attempt.at_once):
        with in_a_hurry(attempt.lab):
            beds = platforms.beds(attempt, arms, everyone, **types)
            own = dict(zip(arms, in_parallel(arms, lambda arm: prepare(beds[arm], point.of(arm)))))
        with pinning(point, beds) as pin, held(own), right_clocks(own):
            if warm is not None and _are_new(beds, own):
                both = with_twins({(arm, False): own[arm] for arm in arms})
                in_turn({key: warm(one, point.of(key[0])) for key, one in both.items()}, lambda key: pin(both[key]))
            for _, pair in groupby(of_group, key=lambda one: one.number):
                _pair(list(pair), own, visit, pin)
        found |= {arm: after(own[arm], point.of(arm)) for arm in arms}
    return slices, found


def _are_new(beds, tested) -> bool:
    """Whether the servers of any arm are others than those that were tested last on its bed."""
    ids = {arm: [server.id for server in one.servers] for arm, one in tested.items()}
    are_new = any(not ids[arm] or bed.warm != ids[arm] for arm, bed in beds.items())
    for arm, bed in beds.items():
        bed.warm = ids[arm]
    return are_new


def grouped(slices, at_once: bool):
    """(arms, their slices) that are measured together: all, or those of one arm after the other."""
    for _, group in groupby(slices, key=lambda one: None if at_once else one.arm):
        group = list(group)
        yield list(dict.fromkeys(one.arm for one in group)), group


def in_turn(visits: dict, before) -> dict:
    """{key: what its visit returned}: a step of each visit, then in reverse order, until all have ended.
    `before(key)` is called before each step."""
    done, order = {}, list(visits)
    while len(done) < len(visits):
        for key in [key for key in order if key not in done]:
            before(key)
            try:
                next(visits[key])
            except StopIteration as end:
                done[key] = end.value
        order.reverse()
    return done


def _pair(slices, tested, visit, pin) -> None:
    """Measure the slices of one pair, and the twins of their arms: first or last, in turn from pair to pair."""
    all_of_them = with_twins({(one.arm, False): tested[one.arm] for one in slices}, first=slices[0].number % 2 == 0)
    point_of = {one.arm: one.point for one in slices}
    loads = in_turn({key: visit(one, point_of[key[0]]) for key, one in all_of_them.items()},
                    lambda key: pin(all_of_them[key]))
    for one in slices:
        load, other = loads[one.arm, False], loads.get((one.arm, True))
        one.rows, one.metrics = load.rows, dict(load.metrics) | twin_ratios(load.metrics, other and other.metrics)


def with_twins(tested: dict, first: bool = False) -> dict:
    """{(arm, whether it is the twin): Tested} of these, and of their twins before or behind them."""
    twins = {(arm, True): one.twin for (arm, _), one in tested.items() if one.twin is not None}
    return twins | tested if first else tested | twins


def twin_ratios(metrics: dict, others: dict | None) -> dict:
    """{twin_NAME_ratio}: of the twin to the arm's own, of each number above 0; without a twin nothing."""
    return {f"twin_{name}_ratio": others[name] / value for name, value in metrics.items()
            if others and _is_positive(value) and _is_positive(others.get(name))}


def _is_positive(value) -> bool:
    return isinstance(value, (int, float)) and value > 0


@contextmanager
def pinning(point, beds):
    """A context with a function that pins the servers of a Tested, where the point says so and the lab runs the
    platforms; elsewhere the function does nothing."""
    hosts = list({host.name: host for bed in beds.values() for host in bed.hosts}.values())
    if not (point.params.get("pinned") and hosts and hosts[0].cores):
        yield lambda tested: None
        return
    with pinned(hosts) as pin:
        yield lambda tested: pin([server.id for server in tested.servers])


@contextmanager
def right_clocks(tested: dict):
    """A context at whose end SystemFailure says if the clock of a server of any arm went wrong in it."""
    clocks = Clocks([machine for one in _each(tested) for machine in one.machines])
    yield
    clocks.check()


def _each(tested: dict) -> list[Tested]:
    """All arms, and their twins."""
    return [each for one in tested.values() for each in (one, one.twin) if each is not None]


@contextmanager
def held(tested: dict):
    """A context in which the machines of all arms are reached over connections that stay open."""
    all_of_them = _each(tested)
    before = [list(one.machines) for one in all_of_them]
    with ExitStack() as stack:
        for one in all_of_them:
            one.machines = [stack.enter_context(machine.held()) for machine in one.machines]
        yield
    for one, machines in zip(all_of_them, before):
        one.machines = machines

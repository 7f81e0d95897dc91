"""That right histories raise no alarm, that every seeded fault is found, as what it is, and that no other is."""

import math
import random

import pytest
from made_up_histories import CLIENTS, any_reads, right

from labbook.workloads.histories.calls import FAILED, OK, READ, UNKNOWN, WRITE, Call
from labbook.workloads.histories.registers import ANOMALIES, check_register

RIGHT, SPOILED = range(1000), range(300)


def write(value, begin, end, client="a", outcome=OK):
    return Call(client, WRITE, "key", value, begin, end, outcome)


def read(value, begin, end, client="a", last=False):
    return Call(client, READ, "key", value, begin, end, last=last)


def found(calls, **more) -> dict:
    """The anomalies that are there."""
    return {name: count for name, count in check_register(calls, **more).items() if count}


@pytest.mark.parametrize("calls, write_share", [(12, 0.5), (40, 0.2), (80, 0.7)])
def test_right_histories_raise_no_alarm(calls, write_share):
    for seed in RIGHT:
        assert not found(right(random.Random(seed), calls, write_share)), seed


def of(calls, op, outcome=OK):
    return [call for call in calls if call.op == op and call.outcome == outcome and not call.last]


def replaced(calls, old, **new):
    return [call._replace(**new) if call is old else call for call in calls]


def stale(calls, draw):
    """A read gets a value although another was written wholly after that, and before the read."""
    writes = of(calls, WRITE)
    choices = [(one, old) for one in of(calls, READ) for old in writes
               if any(old.returned_s < new.invoked_s and new.returned_s < one.invoked_s
                      for new in writes)]
    if choices:
        one, old = draw.choice(choices)
        return replaced(calls, one, value=old.value)


def never_written(calls, draw):
    reads = [call for call in calls if call.op == READ]
    return replaced(calls, draw.choice(reads), value="never")


def had_failed(calls, draw):
    failed = of(calls, WRITE, FAILED)
    return failed and replaced(calls, draw.choice(of(calls, READ)), value=draw.choice(failed).value)


def not_yet_written(calls, draw):
    choices = [(one, new) for one in of(calls, READ) for new in of(calls, WRITE)
               if one.returned_s < new.invoked_s]
    if choices:
        one, new = draw.choice(choices)
        return replaced(calls, one, value=new.value)


def lost(calls, draw):
    """A further write is acknowledged, and the last reads do not show it. (A value that was never
    acknowledged nor read before may have come later.)"""
    last_value = next(call.value for call in calls if call.last)
    if all(call.value != last_value or call.outcome == UNKNOWN for call in calls if not call.last):
        return None
    return [*calls, write("further", 500, 501, draw.choice(CLIENTS))]


def lost_by_one_copy(calls, draw):
    """The same, and only one of the last reads, such as that of one node."""
    first, spoiled = next(call for call in calls if call.last), lost(calls, draw)
    return spoiled and [call._replace(value="further") if call.last and call is not first else call
                        for call in spoiled]


def backward(calls, draw, client="d"):
    """A write that was never acknowledged is read, and then the value before it."""
    begun = [*calls, write("old", 500, 501), write("new", 502, 530, "b", UNKNOWN),
             read("new", 510, 511, "c"), read("old", 520, 521, client)]
    return [call._replace(value="new") if call.last else call for call in begun]


def own_backward(calls, draw):
    return backward(calls, draw, "c")


@pytest.mark.parametrize("spoil, anomaly", [
    (stale, "stale_reads"), (never_written, "phantom_values"), (had_failed, "phantom_values"),
    (not_yet_written, "phantom_values"), (lost, "lost_writes"), (lost_by_one_copy, "lost_writes"),
    (backward, "backward_reads"), (own_backward, "own_backward_reads")])
def test_every_seeded_fault_is_found(spoil, anomaly):
    tried = 0
    for seed in SPOILED:
        draw = random.Random(seed)
        spoiled = spoil(right(draw), draw)
        if spoiled:
            tried += 1
            assert check_register(spoiled)[anomaly], seed
    assert tried > 100


def has_an_order(calls) -> bool:
    """Whether some order of the calls, each at a moment between its start and its end, explains all reads: by trying
    all. An unknown write may be at any later moment, or nowhere."""
    calls = [call for call in calls if call.outcome != FAILED]
    ends = [math.inf if call.outcome == UNKNOWN else call.returned_s for call in calls]
    tried, waiting = set(), [(frozenset(range(len(calls))), None)]
    while waiting:
        left, value = waiting.pop()
        if all(calls[one].outcome == UNKNOWN for one in left):
            return True
        first_end = min(ends[one] for one in left)
        for one in left:
            call = calls[one]
            after = (left - {one}, call.value)
            if call.invoked_s <= first_end and (call.op == WRITE or call.value == value) and after not in tried:
                tried.add(after)
                waiting.append(after)
    return False


def test_an_anomaly_is_found_exactly_where_no_order_of_the_calls_explains_the_reads():
    broken = 0
    for seed in RIGHT:
        calls = any_reads(random.Random(seed))
        is_right = has_an_order(calls)
        broken += not is_right
        assert bool(found(calls)) != is_right, seed
    assert 100 < broken < len(RIGHT) - 100


def test_what_is_found_is_named_and_counted():
    written = [write("x", 0, 1), write("y", 2, 3)]
    assert found([*written, read("x", 4, 5)]) == {"stale_reads": 1}
    assert found([*written, read(None, 4, 5, "a"), read(None, 6, 7, "b")]) == {"stale_reads": 2}
    assert found([*written, read("x", 9, 10, last=True)]) == {"lost_writes": 1}
    assert found([*written, read(None, 9, 10, last=True)]) == {"lost_writes": 2}
    assert found([read("x", 4, 5)]) == {"phantom_values": 1}
    seen = [write("x", 0, 1), write("y", 2, 9, outcome=UNKNOWN), read("y", 3, 4, "a")]
    assert found([*seen, read("x", 5, 6, "b")]) == {"backward_reads": 1}
    assert found([*seen, read("x", 5, 6, "a")]) == {"backward_reads": 1, "own_backward_reads": 1}
    assert set(check_register([])) == set(ANOMALIES)


def test_of_a_stale_read_only_itself_is_counted():
    """Whoever reads the new value again afterwards is right, and the old one was overwritten, not lost."""
    written = [write("x", 0, 1), write("y", 2, 3)]
    for old in ("x", None):
        spoiled = [*written, read(old, 4, 5, "b"), read("y", 6, 7, "c"), read("y", 9, 10, last=True)]
        assert found(spoiled) == {"stale_reads": 1}, old
    seen = [*written, read("y", 3.5, 3.6, "b"), read("x", 4, 5, "b"), read("y", 6, 7, "b")]
    assert found(seen) == {"stale_reads": 1, "backward_reads": 1, "own_backward_reads": 1}


def test_what_calls_that_overlap_may_return():
    assert not found([write("x", 0, 5), read(None, 1, 2), read("x", 3, 4, "b"), read("x", 5, 6)])
    both = [write("x", 0, 5), write("y", 0, 5, "b")]
    assert not found([*both, read("x", 6, 7), read("x", 8, 9, last=True)])
    assert found([*both, read("x", 6, 7), read("y", 8, 9)]) == {
        "stale_reads": 1, "backward_reads": 1, "own_backward_reads": 1}
    unknown = write("x", 0, 1, outcome=UNKNOWN)
    assert not found([unknown, read(None, 2, 3), read("x", 4, 5), read("x", 6, 7, last=True)])


def test_a_read_that_failed_says_nothing():
    assert not found([write("x", 0, 1), read(None, 2, 3)._replace(outcome=UNKNOWN)])


def test_clocks_that_are_apart_put_no_blame_on_the_store():
    early = [write("x", 0, 1), read(None, 1.2, 2, "b")]
    assert found(early) == {"stale_reads": 1} and not found(early, slack_s=0.5)
    assert found(early, slack_s=0.1)
    future = [read("x", 0, 1, "b"), write("x", 1.2, 2)]
    assert found(future) == {"phantom_values": 1} and not found(future, slack_s=0.5)
    alone = [write("x", 0, 1), write("y", 2, 9, outcome=UNKNOWN), read("y", 3, 4), read("x", 4.1, 5)]
    assert found(alone, slack_s=0.5)["own_backward_reads"] == 1     # one client has one clock


def test_values_must_differ():
    with pytest.raises(ValueError, match="two writes of 'x' to 'key'"):
        check_register([write("x", 0, 1), write("x", 2, 3)])

"""The table of a history, and the metrics of histories of many keys and of sets."""

import pytest

from labbook.workloads.histories import calls
from labbook.workloads.histories.calls import (
    ABSENT,
    LIST,
    READ,
    THERE,
    UNKNOWN,
    WRITE,
    Call,
    frame,
    metrics,
)


def made(key, begin, end, **more):
    return Call("a", WRITE, key, THERE, begin, end, **more)


def listed(keys, begin, end, client="b", **more):
    return Call(client, LIST, "", keys, begin, end, **more)


def found(*history) -> dict:
    counts = metrics(history)
    assert set(counts) == {*calls.ANOMALIES, "unknown_calls", "checked_calls", "checked_keys"}
    return {name: count for name, count in counts.items() if count and name in calls.ANOMALIES}


def test_keys_are_registers_of_their_own():
    one, other = (Call("a", WRITE, key, "x", 0, 1) for key in ("k", "l"))
    stale = Call("b", READ, "l", ABSENT, 2, 3)
    assert found(one, other, Call("b", READ, "k", "x", 2, 3), stale) == {"stale_reads": 1}


def test_a_list_reads_every_key_of_a_set():
    one, two = made("u1", 0, 1), made("u2", 2, 3)
    assert not found(one, two, listed(("u1",), 2.5, 2.6), listed(("u1", "u2"), 4, 5))
    assert found(one, two, listed(("u2",), 4, 5)) == {"stale_reads": 1}
    assert found(one, listed(("u1", "other"), 4, 5)) == {"phantom_values": 1}
    assert found(one, two, listed(("u1",), 4, 5, "db1", last=True),
                 listed(("u1", "u2"), 4, 5, "db2", last=True)) == {"lost_writes": 1}
    unsure = made("u2", 2, 3, outcome=UNKNOWN)
    assert not found(one, unsure, listed(("u1",), 4, 5))
    assert found(unsure, listed(("u2",), 4, 5), listed((), 6, 7)) == {
        "backward_reads": 1, "own_backward_reads": 1}
    assert not found(one, listed(None, 4, 5, outcome=UNKNOWN))


def test_the_size_of_a_history_is_reported():
    counts = metrics([made("u1", 0, 1), made("u2", 0, 1, outcome=UNKNOWN), listed(("u1",), 2, 3)])
    assert (counts["checked_calls"], counts["checked_keys"], counts["unknown_calls"]) == (3, 2, 1)
    assert metrics([])["checked_calls"] == 0


def test_a_table_has_the_calls_in_their_order():
    table = frame([listed(("u1", "u2"), 2, 3), made("u1", 0, 1), Call("c", READ, "u1", ABSENT, 1, 2)])
    assert list(table["op"]) == [WRITE, READ, LIST] and list(table.columns) == list(Call._fields)
    assert list(table["value"]) == [THERE, None, "u1 u2"]
    assert table["invoked_s"].dtype == float and table["last"].dtype == bool
    assert frame([]).empty


@pytest.mark.parametrize("slack_s, blamed", [(0.0, True), (0.001, False)])
def test_several_clocks_drift_apart_while_a_history_lasts(slack_s, blamed):
    """A read that began 10 ms after a write was acknowledged, after 200 s, in which two clocks may drift by 20 ms."""
    early = [Call("a", WRITE, "k", "x", 198.0, 199.0), Call("b", READ, "k", ABSENT, 199.01, 200.0)]
    assert bool(metrics(early, slack_s)["stale_reads"]) is blamed
    assert metrics([call._replace(invoked_s=call.invoked_s - 190, returned_s=call.returned_s - 190)
                    for call in early], slack_s)["stale_reads"] == 1      # after 10 s by 1 ms

"""Tokens of joining nodes, the data they must receive, and the disk that this needs."""

import pytest

from labbook.errors import InputError
from labbook.systems.cassandra import token_plan as shares

OLD, NEW = "1.0.7", "5.0.8"
NODES = ["node1", "node2", "node3", "node4", "node5"]
ALONE = {"node1": 0}
FIFTH = {OLD: 2**127 // 5, NEW: 2**64 // 5}


@pytest.mark.parametrize("version", [OLD, NEW])
def test_joiners_take_ranges_one_after_the_other(version):
    wanted = shares.plan(version, ALONE, NODES, [0.2, 0.2, 0.2, 0.2])
    assert list(wanted) == NODES[1:]
    assert [shares.position(version, token) for token in wanted.values()] == pytest.approx(
        [0.2, 0.4, 0.6, 0.8], abs=1e-15)
    assert wanted["node2"] == FIFTH[version]
    held = shares.owned(version, {**ALONE, **wanted})
    assert held == pytest.approx(dict.fromkeys(NODES, 0.2), abs=1e-15) and sum(held.values()) == 1


def test_tokens_past_the_middle_are_negative_today():
    wanted = shares.plan(NEW, ALONE, NODES, [0.5, 0.25])
    assert wanted == {"node2": -2**63 + 1, "node3": -2**62}  # -2**63 is nobody's


def test_shares_follow_the_nodes_in_the_ring():
    taken = {**ALONE, **shares.plan(OLD, ALONE, NODES, [0.2, 0.2])}
    (name, token), = shares.plan(OLD, taken, NODES, [0.1]).items()
    assert name == "node4" and token == pytest.approx(2**126, rel=1e-15)
    assert shares.plan(OLD, ALONE, NODES, {"node5": 17}) == {"node5": 17}


def test_nodes_that_join_together_receive_more_than_they_own():
    wanted = shares.plan(OLD, ALONE, NODES, [0.2, 0.2])
    comes = [float(shares.coming(OLD, ALONE, token)) for token in wanted.values()]
    assert comes == pytest.approx([0.2, 0.4])
    assert shares.owned(OLD, ALONE) == {"node1": 1}


@pytest.mark.parametrize("requested, message", [
    ([], "shares: no node is to join"),
    ([0.2, -0.1], r"shares: -0.1 is not a share .*more than 0"),
    ([0], "shares: 0 is not a share"),
    ([float("nan")], "shares: nan is not a share"),
    (["much"], "shares: 'much' is not a share"),
    ([0.5, 0.4, 0.2], "shares: the shares 0.5, 0.4, 0.2 leave nothing .*less than 1"),
    ([0.2, 0.2, 0.2, 0.4], "leave nothing"),
    ([0.1] * 5, "shares: 5 nodes to join, and 4 hosts not in the ring .*at most 4"),
    ({"node9": 5}, "shares: 'node9' is no host of it .*node2, node3, node4, node5"),
    ({"node1": 5}, "shares: 'node1' is in the ring already"),
    ({"node2": 2**127 + 1}, "shares.node2: .*no token of Cassandra 1.0.7 .*integers from 0 to"),
    ({"node2": -1}, "shares.node2: -1 is no token"),
    ({"node2": 0.2}, "shares.node2: 0.2 is no token"),
    ({"node2": True}, "shares.node2: True is no token"),
    ({"node2": 0}, "shares.node2: token 0 is that of node1"),
    ({"node2": 2**127}, "is that of node1"),
    ({"node2": 7, "node3": 7}, "shares.node3: token 7 is that of node2"),
])
def test_impossible_joins(requested, message):
    with pytest.raises(InputError, match=message):
        shares.plan(OLD, ALONE, NODES, requested)


def test_few_rows_are_spread_unevenly_and_many_evenly():
    few, many = 10 * 16384, 100_000 * 16384
    assert shares.least_bytes(few) < 0 < shares.least_bytes(many)
    assert 0.88 * many < shares.least_bytes(many) < 0.9 * many


def test_the_disk_that_loading_needs():
    rows, value = 1000, 16384
    data = rows * (value + shares.ROW_EXTRA_BYTES)
    assert shares.room_bytes(OLD, rows, value, compacting=False) == 2 * data
    assert shares.room_bytes(OLD, rows, value, compacting=True) == 3 * data
    many = 1_000_000  # more than a commit log ever holds
    assert shares.room_bytes(OLD, many, value, False) == 1000 * data + (4096 << 20)
    shares.check_room(OLD, rows, value, False, 2 * data, "node1")
    with pytest.raises(InputError, match="rows: 1000 rows of 16384 bytes take 33008000 bytes .*"
                                         r"node1 has 33007999 free \(allowed: at most 999\)"):
        shares.check_room(OLD, rows, value, False, 2 * data - 1, "node1")


def test_as_many_rows_as_are_allowed_fit():
    free = 10 << 30
    with pytest.raises(InputError) as error:
        shares.check_room(NEW, 1_000_000, 16384, True, free, "node1")
    most = int(error.value.allowed.removeprefix("at most "))
    assert 0.9 * free < shares.room_bytes(NEW, most, 16384, True) <= free

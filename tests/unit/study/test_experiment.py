"""The grid: identity of points, their order, and what is refused."""

import subprocess
import sys
from collections import Counter
from itertools import groupby

import numpy as np
import pytest

from labbook.errors import InputError
from labbook.study.experiment import Experiment, grid


def keys(**given):
    return {p.key for p in grid("e", given.get("setup", {}), given.get("vary", {}),
                                given.get("repeats", 1))}


def test_values_of_whatever_type_are_the_same_point():
    plain = keys(vary={"rtt_ms": [100, 300]})
    for values in ([100.0, 300.0], (100, 300), np.array([100, 300]), np.array([100.0, 300.0]),
                   range(100, 301, 200), [np.int64(300), np.float32(100)]):
        assert keys(vary={"rtt_ms": values}) == plain
    assert keys(vary={"x": [0.1]}) == keys(vary={"x": np.float64(0.1)})
    assert keys(vary={"x": np.array(5)}) == keys(vary={"x": 5})


@pytest.mark.parametrize("other", [
    {"vary": {"x": 1, "y": 2}}, {"vary": {"x": "1"}}, {"vary": {"x": True}},
    {"vary": {"x": 2}}, {"vary": {"x2": 1}}, {"vary": {"x": None}},
    {"vary": {"x": 1.5}}])
def test_what_differs_is_another_point(other):
    assert keys(**other).isdisjoint(keys(vary={"x": 1}))


def test_identity_knows_name_parameters_and_repeat_only():
    assert keys(setup={"a": 1}, vary={"b": 2}) == keys(vary={"b": 2, "a": 1})
    assert len(keys(vary={"a": 1}, repeats=3)) == 3
    assert keys(vary={"a": [1]}) < keys(vary={"a": [1, 2]})
    assert grid("e", {}, {"a": 1}, 1)[0].key != grid("f", {}, {"a": 1}, 1)[0].key


def test_identity_and_order_are_the_same_in_every_process():
    code = ("from labbook.study.experiment import grid; "
            "print([p.key for p in grid('e', {'s': ['a', 'b']}, {'m': list(range(9))}, 2)])")
    printed = {subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed},
                              capture_output=True, text=True, check=True).stdout
               for seed in ("1", "2")}
    here = [p.key for p in grid("e", {"s": ["a", "b"]}, {"m": list(range(9))}, 2)]
    assert printed == {f"{here}\n"}


def test_setups_sweep_forward_and_back():
    points = grid("e", {"system": ["a", "b", "c"]}, {"m": [1, 2]}, 2)
    blocks = [(key, next(iter(block)).system)
              for key, block in groupby(points, key=lambda p: p.block)]
    assert blocks == list(enumerate("abccba", 1))
    assert {p.repeat for p in points if p.block <= 3} == {1}


def test_each_block_has_all_variations_in_an_order_of_its_own():
    points = grid("e", {"system": ["a", "b"]}, {"m": range(8)}, 6)
    orders = [tuple(p.m for p in block) for _, block in groupby(points, key=lambda p: p.block)]
    assert all(sorted(order) == list(range(8)) for order in orders)
    assert len(set(orders)) > 8
    assert max(Counter(order[0] for order in orders).values()) < 8     # none is always first
    assert [p.order for p in points[:8]] == list(range(1, 9))
    assert len({p.seed for p in points}) == 12


def test_a_point_gives_its_parameters_and_nothing_else():
    point = grid("e", {"store": "mysql"}, {"clients": 4}, 1)[0]
    assert (point.store, point.clients) == ("mysql", 4)
    assert point.params == {"store": "mysql", "clients": 4}
    assert point.label == "e: store=mysql clients=4 repeat 1"
    with pytest.raises(AttributeError, match="did you mean 'clients'"):
        point.client
    with pytest.raises(AttributeError):
        point.clients = 5


@pytest.mark.parametrize("setup, vary, repeats, message", [
    ({}, {"repeat": 1}, 1, "repeat"),
    ({"key": 1}, {}, 1, "key"),
    ({}, {"mean_ms": 1}, 1, "mean_ms"),
    ({}, {"stale": 1}, 1, "stale"),
    ({}, {"_x": 1}, 1, "_x"),
    ({}, {"two words": 1}, 1, "two words"),
    ({}, {"class": 1}, 1, "class"),
    ({}, {"x": []}, 1, "is empty"),
    ({}, {"x": [1, 2, 1.0]}, 1, "twice"),
    ({}, {"x": [None, None]}, 1, "twice"),
    ({}, {"x": [1, "a"]}, 1, "different types"),
    ({}, {"x": [1, True]}, 1, "different types"),
    ({}, {"x": {1, 2}}, 1, "order"),
    ({}, {"x": {"a": 1}}, 1, "order"),
    ({}, {"x": float("nan")}, 1, "nan"),
    ({}, {"x": [float("inf")]}, 1, "inf"),
    ({}, {"x": object()}, 1, "object"),
    ({}, {"x": [[1]]}, 1, r"\[1\]"),
    ({"x": 1}, {"x": 1}, 1, "both"),
    ({}, {"x": 1}, -1, "repeats"),
    ({}, {"x": 1}, 0.5, "repeats"),
    ({}, {"x": 1}, 1.5, "repeats"),
    ({}, {"x": 1}, True, "repeats"),
    ({}, {"x": 1}, "2", "repeats"),
    ({}, {"x": 1}, [2], "repeats"),
])
def test_what_cannot_be_a_grid_is_refused(setup, vary, repeats, message):
    with pytest.raises(InputError, match=message):
        grid("e", setup, vary, repeats)
    with pytest.raises(InputError, match=message):
        Experiment(None, "e", setup, vary, repeats)


def test_a_name_with_a_path_in_it_is_refused():
    with pytest.raises(InputError, match="name"):
        grid("../e", {}, {}, 1)


def test_without_parameters_there_is_one_point_a_repeat():
    assert len(grid("e", {}, {}, 3)) == 3


def test_points_that_mean_nothing_are_left_out_and_the_others_keep_their_places():
    given = {"op": ["read", "write"], "level": ["ONE", "ANY"]}
    every = grid("e", {"s": ["a", "b"]}, given, 2)
    points = grid("e", {"s": ["a", "b"]}, given, 2,
                  leave_out=lambda p: (p.op, p.level) == ("read", "ANY"))
    assert [p.key for p in points] == [p.key for p in every if (p.op, p.level) != ("read", "ANY")]
    assert len(points) == len(every) * 3 // 4

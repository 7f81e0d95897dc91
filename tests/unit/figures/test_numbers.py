"""Numbers as figures and prose write them."""

import pandas as pd
import pytest
from figure_stand_ins import names, store_summary  # noqa: F401 (a fixture)

from labbook import figures
from labbook.figures import numbers


@pytest.mark.parametrize("value, text", [
    (0.0123, "0.0123"), (0.594, "0.594"), (1.0, "1.00"), (9.999, "10.0"), (12.56, "12.6"),
    (999.6, "1,000"), (1234.5, "1,230"), (0, "0"), (float("nan"), "–")])
def test_numbers_have_three_figures(value, text):
    assert numbers.number(value) == text


def test_numbers_for_prose_have_their_interval_and_leave_limited_points_out():
    frame = store_summary(limited={("mysql", 10)})
    at = dict(op="read", clients=1)
    assert figures.measured(frame, "mean_ms", "ms", store="mysql", **at) == "2.00 ms (1.00 to 4.00 in 3 repeats)"
    assert figures.times(frame, "mean_ms", {"store": "cassandra"}, {"store": "mysql"}, **at) == (
        "2.00 times (2.00 to 2.00 in 3 repeats)")
    assert figures.measured(frame, "mean_ms", "ms", store="mysql", op="read", clients=10) == (
        "not known (the clients were the limit in some repeats)")
    assert figures.times(frame, "mean_ms", {"store": "cassandra"}, {"store": "mysql"}, op="read", clients=10) == (
        "not known (the clients were the limit in some repeats)")
    assert figures.measured(frame, "mean_ms", "ms", store="mysql", op="read", clients=11) == "not measured"
    assert figures.times(frame.iloc[:0], "mean_ms", {"store": "cassandra"}, {"store": "mysql"}) == (
        "not measured")


def test_a_number_of_a_metric_with_a_mark_of_its_own_goes_by_that():
    frame = store_summary(limited={("mysql", 10)})
    frame = frame.assign(mean_ms_limited=(frame["store"] == "cassandra").astype(float))
    assert figures.measured(frame, "mean_ms", "ms", store="mysql", op="read", clients=10) == "20.0 ms (10.0 to 40.0 in 3 repeats)"
    assert figures.measured(frame, "mean_ms", "ms", store="cassandra", op="read", clients=1) == (
        "not known (the clients were the limit in some repeats)")


def test_a_number_says_of_how_many_repeats_it_is_where_others_have_none():
    """Of six boots of eight servers one had succeeded, and its time stood for all."""
    frame = pd.DataFrame({"store": ["a"] * 3 + ["b"] * 3, "repeat": [1, 2, 3] * 2, "boot_s": [8.0, None, None] + [None] * 3})
    assert figures.measured(frame, "boot_s", "s", store="a") == "8.00 s (in 1 of 3 repeats)"
    assert figures.measured(frame, "boot_s", "s", store="b") == "not known (no value in 3 repeats)"
    assert figures.measured(frame, "boot_s", "s", store="c") == "not measured"


def test_numbers_of_two_machines_are_neither_pooled_nor_paired():
    one, other = (store_summary().assign(machine=machine) for machine in ("one", "other"))
    at = dict(op="read", clients=1)
    both = pd.concat([one, other.assign(mean_ms=1000 * other["mean_ms"])], ignore_index=True)
    ratio_of = {"store": "cassandra"}, {"store": "mysql"}
    for frame, said in ((both, "2.00"), (both[::-1], "2,000")):
        assert figures.measured(frame, "mean_ms", "ms", store="mysql", **at).startswith(f"{said} ms")
        assert figures.times(frame, "mean_ms", *ratio_of, **at) == "2.00 times (2.00 to 2.00 in 3 repeats)"
    # one machine has the one store, and the other the other
    apart = both[(both["store"] == "mysql") == (both["machine"] == "one")]
    assert figures.times(apart, "mean_ms", *ratio_of, **at) == "not measured"
    assert figures.percent_saved(apart, "mean_ms", *ratio_of, **at) == "not measured"


def test_a_value_of_0_has_no_ratio_and_ends_no_page():
    frame = pd.DataFrame({"store": ["a", "b"] * 2, "repeat": [1, 1, 2, 2], "mean_ms": [0.0, 0.0, 4.0, 2.0]})
    assert figures.times(frame, "mean_ms", {"store": "a"}, {"store": "b"}) == "2.00 times (in 1 of 2 repeats)"
    assert figures.percent_saved(frame, "mean_ms", {"store": "a"}, {"store": "b"}) == "50.0 % (in 1 of 2 repeats)"
    assert figures.times(frame.assign(mean_ms=0.0), "mean_ms", {"store": "a"}, {"store": "b"}) == "not measured"


def test_text_about_points_has_their_parameters_and_else_the_runs(names):  # noqa: F811
    shown = pd.DataFrame({"ranks": [4, 2, 4], "size": ["S", "S", "S"]})
    assert figures.with_values(shown, "ranks", 16) == "2 and 4"
    assert figures.with_values(shown, "size", "A") == "S"
    assert figures.with_values(shown.iloc[:0], "ranks", 16) == "16"
    assert figures.with_values(pd.DataFrame(), "phase_s", 12.5) == "12.5"
    assert figures.with_values(pd.DataFrame(), "vms", [8, 2, 4]) == "2, 4 and 8"

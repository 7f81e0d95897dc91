"""Intervals over repeats, and which repeats the clients limited."""

import math

import pandas as pd
import pytest
from figure_stand_ins import names, store_summary  # noqa: F401 (a fixture)

from labbook import figures
from labbook.figures import repeats


def test_the_band_is_the_interval_of_the_median_and_says_how_sure_that_is():
    spread = repeats.over_repeats(store_summary(), ["store", "op", "clients"], "mean_ms")
    row = spread[(spread.store == "mysql") & (spread.op == "read") & (spread.clients == 10)].iloc[0]
    assert (row.n, row["low"], row["median"], row["high"]) == (3, 10.0, 20.0, 40.0)
    assert row.level == 0.75
    assert "3 repeats" in figures.time_over_clients(store_summary()).caption
    assert "75 %" in figures.time_over_clients(store_summary()).caption
    assert "one repeat" in figures.time_over_clients(store_summary(repeat_times=(1.0,))).caption


def test_a_summary_without_the_metric_has_no_limited_points():
    plain = store_summary().drop(columns="client_limited")
    assert not repeats.client_limited(plain).any()
    figures.time_over_clients(plain)


@pytest.mark.parametrize("draw", [
    lambda points: figures.dot_chart(points, y="clients", hue="store", col="op"),
    lambda points: figures.time_over_clients(points),
    lambda points: figures.time_over_clients(points[points.clients == points.clients.max()]),   # a dot chart
    lambda points: figures.median_table(points, by={"store": "Store"}, metrics={"mean_ms": "Time"}, label="times")])
def test_a_caption_says_when_all_points_are_of_the_published_run(draw):
    points = store_summary()
    assert not draw(points).caption.endswith("Published run.")
    published = draw(points.assign(run="published")).caption
    assert published.endswith("Published run.") and published.count("Published run.") == 1
    assert not draw(points.assign(run=["published"] * (len(points) - 1) + [None])).caption.endswith("Published run.")


def test_a_metric_with_a_mark_of_its_own_is_limited_by_that_alone():
    points = store_summary(limited={("mysql", 10)}).assign(mean_ms_limited=0.0)
    assert not repeats.client_limited(points, "mean_ms").any() and repeats.client_limited(points, "rate_per_s").sum() == 6
    assert not repeats.over_repeats(points, ["store"], "mean_ms").limited.any()
    assert "limited" not in figures.time_over_clients(points).caption
    marked = points.assign(mean_ms_limited=[1.0] + [None] * (len(points) - 1))
    assert repeats.client_limited(marked, "mean_ms").sum() == 7, "the point's mark holds where the metric has none"


def test_repeats_without_the_metric_are_no_numbers_of_a_median():
    for values in ([math.nan, 3.0, 1.0], [3.0, math.nan, 1.0], [3.0, 1.0, math.nan]):
        found, = repeats.over_repeats(pd.DataFrame({"store": "a", "mean_ms": values}), ["store"], "mean_ms").itertuples()
        assert (found.n, found.median) == (2, 2.0)


def test_a_caption_names_the_machines_and_a_median_is_of_one():
    points = store_summary()
    both = pd.concat([points.assign(machine="one"), points.assign(machine="other", mean_ms=1000 * points["mean_ms"])])
    assert "machine" not in figures.time_over_clients(points.assign(machine="one")).caption
    assert figures.time_over_clients(both).caption.endswith("Some settings were measured on one; others on other.")
    settings = ["store", "op", "clients"]
    of_first, alone = (repeats.over_repeats(rows, settings, "mean_ms") for rows in (both, points))
    pd.testing.assert_frame_equal(of_first, alone)
    assert set(repeats.made(both, settings).values()) == {3}


def test_rows_of_this_run_beside_published_ones_are_of_a_machine_too():
    points = pd.concat([store_summary().assign(store="own"), store_summary().assign(machine="other")])
    assert set(repeats.over_repeats(points, ["store"], "mean_ms")["store"]) == {"cassandra", "mysql", "own"}
    assert figures.measured(points, "mean_ms", "ms", store="own", op="read", clients=1) == "3.00 ms (1.50 to 6.00 in 3 repeats)"


def test_a_repeat_is_one_number_also_of_several_points():
    """Points of several settings had counted as repeats: 6 of 3, at a level of 95 %."""
    points = pd.DataFrame([{"store": "a", "op": op, "repeat": repeat, "ms": factor * repeat}
                           for op, factor in (("read", 1.0), ("write", 3.0)) for repeat in (1, 2, 3)])
    found = repeats.over_repeats(points, ["store"], "ms").iloc[0]
    assert (found["n"], found["median"], found["low"], found["high"], found["most_points"]) == (3, 4.0, 2.0, 6.0, 2)
    assert repeats.band_words(repeats.over_repeats(points, ["store"], "ms")).endswith("a repeat is the mean of its points")
    each = repeats.over_repeats(points, ["store", "op"], "ms")
    assert set(each["most_points"]) == {1} and "mean" not in repeats.band_words(each)

"""Stacked bars and tables of medians: what is drawn, described in words and left out."""

import math

import pandas as pd
import pytest

from labbook import figures
from labbook.figures.canvas import NOT_MEASURED


@pytest.fixture(autouse=True)
def names(tmp_path):
    paper = tmp_path / "names.yml"
    paper.write_text("title: a\nnames: {load read: reads}\n")
    figures.use_names(paper)


def parts(version, repeat, waits, moving):
    return {"version": version, "repeat": repeat, "fixed_wait_s": waits, "moving_s": moving}


PARTS = {"fixed_wait_s": "waits", "moving_s": "the rest"}


def test_a_join_is_made_of_parts():
    frame = pd.DataFrame([parts("old", i, 60, rest) for i, rest in enumerate((3, 5, 4), 1)]
                         + [parts("new", 1, 41, 20)])
    picture = figures.stacked_bars(frame, y="version", parts=PARTS, label="time of a join, s")
    assert picture.panels[0].alt == ("Bar chart: time of a join. old: waits 60.0 s, the rest 4.00 s; "
                                     "new: waits 41.0 s, the rest 20.0 s.")
    each = figures.stacked_bars(frame, y="repeat", col="version", parts=PARTS, label="time of a join, s")
    assert [panel.alt[:15] for panel in each.panels] == ["Bar chart, new:", "Bar chart, old:"]


@pytest.mark.parametrize("frame", [
    pd.DataFrame(columns=["version"]), pd.DataFrame([{"version": "old", "repeat": 1, "mean_ms": 3.0}]),
    pd.DataFrame([parts("old", 1, math.nan, math.nan)])])
def test_without_measurements_there_is_no_picture(frame):
    assert figures.stacked_bars(frame, y="version", parts=PARTS, label="s") is NOT_MEASURED


def test_metrics_of_each_setting_stand_in_a_table():
    frame = pd.DataFrame([{"load": load, "version": "old", "repeat": i, "join_s": 10.0 * i,
                           "grown": None if load == "none" else 2.0}
                          for load in ("none", "read") for i in (1, 2, 3)])
    table = figures.median_table(frame, by={"load": "Load", "version": "Of"}, label="joins",
                            metrics={"join_s": "A join, s", "grown": "Grown"})
    assert table.columns == ("Load", "Of", "A join, s", "Grown")
    assert table.rows == (("reads", "old", "20.0 (10.0 to 30.0 in 3 repeats)", "2.00 (2.00 to 2.00 in 3 repeats)"),
                          ("none", "old", "20.0 (10.0 to 30.0 in 3 repeats)", "–"))
    for empty in (frame.iloc[:0], pd.DataFrame()):
        table = figures.median_table(empty, by={"load": "Load"}, metrics={"join_s": "s"}, label="joins")
        assert table.rows == (("Not measured in this profile.", "–"),)

"""Figures of the metadata study: cached metadata through time, and outcomes that are counted."""

import math

import numpy as np
import pandas as pd
import pytest

from labbook import figures
from labbook.figures.canvas import NOT_MEASURED
from labbook.papers.ceph_mds.figures import cached_metadata


@pytest.fixture(autouse=True)
def names(tmp_path):
    paper = tmp_path / "names.yml"
    paper.write_text("names: {sequential_create: 'create, in order', spare false: no spare,\n"
                     "  spare true: a spare, mds 2: two metadata servers}\n")
    figures.use_names(paper)


def lists(repeat=1, moved=(900,), **more):
    t = [float(one) for one in range(20)]
    return {"mds": 2, "repeat": repeat, "cached_t_s": t + t, "cached_rank": [0] * 20 + [1] * 20,
            "cached_inodes": [min(1000, 100 * int(one)) for one in t] + [0] * 15 + [900] * 5,
            "phase_name": ["sequential_create", "sequential_delete"], "phase_from_s": [0.0, 10.0],
            "phase_to_s": [10.0, 20.0], "move_t_s": [15.0][:len(moved)], "move_inodes": list(moved), **more}


def test_what_is_cached_is_told_by_rank_phase_and_migration():
    picture = cached_metadata(pd.DataFrame([lists(2, ()), lists()]), by=["mds"])
    assert [panel.alt for panel in picture.panels] == [
        "Chart through time, two metadata servers: metadata cached by each metadata server. rank 0: at "
        "most 1,000 inodes, 1,000 at the end; rank 1: at most 900 inodes, 900 at the end; create, in order "
        "from 0 to 10.0 s; sequential_delete from 10.0 to 20.0 s; 900 inodes migrate at 15.0 s."]
    assert "one run" in picture.caption


def test_small_migrations_and_none_are_not_marked_and_published_lists_are_arrays():
    for moved in ((), (3,)):
        frame = pd.DataFrame([{k: np.array(v) if isinstance(v, list) else v
                               for k, v in lists(moved=moved).items()}])
        picture = cached_metadata(frame, by=["mds"])
        assert "migrate at" not in picture.panels[0].alt


@pytest.mark.parametrize("frame", [pd.DataFrame(columns=["mds", "repeat"]),
                                   pd.DataFrame([lists(cached_t_s=math.nan)])])
def test_where_nothing_was_cached_that_is_told(frame):
    assert cached_metadata(frame, by=["mds"]) is NOT_MEASURED


OUTCOMES = {"right": "Right", "lost": "Lost"}


def test_runs_are_counted_by_their_outcome():
    frame = pd.DataFrame([{"spare": spare, "rank": 1, "right": right} for spare, right in
                          ((False, 0.0), (False, 1.0), (False, math.nan), (True, 1.0))])
    table = figures.outcome_table(frame, by={"spare": "Spare", "rank": "Rank"}, outcomes=OUTCOMES, label="runs")
    assert table.columns == ("Spare", "Rank", "Runs", "Right", "Lost")
    assert table.rows == (("no spare", "1", "3", "1", "–"), ("a spare", "1", "1", "1", "–"),
                          ("all", "", "4", "2", "–"))


def test_without_runs_that_is_told():
    for lacking in (pd.DataFrame(), pd.DataFrame(columns=["spare", "right"])):
        table = figures.outcome_table(lacking, by={"spare": "Spare"}, outcomes=OUTCOMES, label="runs")
        assert table.rows == (("Not measured in this profile.", "–", "–", "–"),)


def test_a_repeat_that_has_no_value_is_left_out_of_numbers_in_prose():
    frame = pd.DataFrame([{"mds": mds, "repeat": repeat, "stat_per_s": value}
                          for mds, values in ((1, (100.0, math.nan, 100.0)), (2, (50.0, 50.0, math.nan)))
                          for repeat, value in enumerate(values, 1)])
    assert figures.times(frame, "stat_per_s", {"mds": 2}, {"mds": 1}) == "0.500 times"
    assert figures.measured(frame, "stat_per_s", "files/s", mds=1) == "100 files/s (100 to 100)"

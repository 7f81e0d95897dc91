"""Figures of the metadata study: cached metadata through time, and outcomes that are counted."""

import math

import numpy as np
import pandas as pd
import pytest

from labbook import figures
from labbook.figures.canvas import NOT_MEASURED
from labbook.papers.ceph_mds import figures as pictures
from labbook.papers.ceph_mds.figures import cached_metadata


@pytest.fixture(autouse=True)
def names(tmp_path):
    paper = tmp_path / "names.yml"
    paper.write_text("title: a\nnames: {sequential_create: 'create, in order', spare false: no spare,\n"
                     "  spare true: a spare, mds 2: two metadata servers}\n")
    figures.use_names(paper)


def lists(repeat=1, moved=(900,), **more):
    t = [float(one) for one in range(20)]
    return {"mds": 2, "repeat": repeat, "cached_t_s": t + t, "cached_rank": [0] * 20 + [1] * 20,
            "cached_inodes": [min(1000, 100 * int(one)) for one in t] + [0] * 15 + [900] * 5,
            "phase_name": ["sequential_create", "sequential_delete"], "phase_from_s": [0.0, 10.0],
            "phase_to_s": [10.0, 20.0], "move_t_s": [15.0][:len(moved)], "move_inodes": list(moved), **more}


def test_cached_metadata_is_described_by_rank_phase_and_migration():
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
def test_without_cached_metadata_there_is_no_picture(frame):
    assert cached_metadata(frame, by=["mds"]) is NOT_MEASURED


OUTCOMES = {"right": "Right", "lost": "Lost"}


def test_runs_are_counted_by_their_outcome():
    frame = pd.DataFrame([{"spare": spare, "rank": 1, "right": right} for spare, right in
                          ((False, 0.0), (False, 1.0), (False, math.nan), (True, 1.0))])
    table = figures.outcome_table(frame, by={"spare": "Spare", "rank": "Rank"}, outcomes=OUTCOMES, label="runs")
    assert table.columns == ("Spare", "Rank", "Runs", "Right", "Lost")
    assert table.rows == (("no spare", "1", "3", "1 of 2", "–"), ("a spare", "1", "1", "1", "–"),
                          ("all", "", "4", "2 of 3", "–"))


def test_without_runs_the_table_says_so():
    for empty in (pd.DataFrame(), pd.DataFrame(columns=["spare", "right"])):
        table = figures.outcome_table(empty, by={"spare": "Spare"}, outcomes=OUTCOMES, label="runs")
        assert table.rows == (("Not measured in this profile.", "–", "–", "–"),)


def test_a_repeat_that_has_no_value_is_left_out_of_numbers_in_prose():
    frame = pd.DataFrame([{"mds": mds, "repeat": repeat, "stat_per_s": value}
                          for mds, values in ((1, (100.0, math.nan, 100.0)), (2, (50.0, 50.0, math.nan)))
                          for repeat, value in enumerate(values, 1)])
    assert figures.times(frame, "stat_per_s", {"mds": 2}, {"mds": 1}) == "0.500 times (in 1 of 3 repeats)"
    assert figures.measured(frame, "stat_per_s", "files/s", mds=1) == "100 files/s (100 to 100 in 2 of 3 repeats)"


def rates(**more):
    return [{"mds": mds, "directories": 8, "tool": tool, "repeat": repeat, "client_limited": 0.0,
             **{f"{phase}_per_s": 100.0 / mds for phase in pictures.PHASES}, **more}
            for mds in (1, 2) for tool in ("bonnie", "own") for repeat in (1, 2, 3)]


def test_rates_have_a_panel_for_each_tool_and_order():
    picture = pictures.rates_over_directories(pd.DataFrame(rates()), "delete", "directories", "deleting, files a second")
    assert len(picture.panels) == 4 and "8 directories, 1: 100" in picture.panels[0].alt
    assert pictures.rates_over_directories(pd.DataFrame(), "delete", "d", "s") is NOT_MEASURED


def test_the_rate_with_two_servers_stands_beside_what_the_paper_says_of_it():
    table = pictures.beside_the_paper(pd.DataFrame(rates()), ["own"], [8])
    half = "0.500 times (0.500 to 0.500 in 3 repeats)"
    assert table.rows[0] == ("create, in order", "8", "no large difference", half)
    assert ("sequential_delete", "8", "0.1 to 0.5", half) in table.rows and len(table.rows) == 6


def test_the_papers_range_of_deleting_is_a_rate():
    printed = pd.DataFrame({"what": ["delete_less_least", "delete_less_most"], "value": [50, 90]})
    assert pictures.printed_deleting(printed) == "0.1 to 0.5"


def test_runs_are_counted_where_something_was_seen():
    runs = pd.DataFrame([{"spare": spare, "client_cut": cut, "other_mds_died": 0, "migration_failed": 0,
                          "map_not_updated": 0} for spare, cut in ((True, 0), (False, 1), (False, 0))])
    assert pictures.runs_with(runs, "client_cut", spare=False) == "1 of 2 runs"
    assert pictures.runs_with(runs, "client_cut", spare=True) == "0 of 1 run"
    assert pictures.runs_with(pd.DataFrame(), "client_cut", spare=True) == "not measured"
    published = runs.assign(run=["published"] * len(runs))
    assert pictures.runs_with(published, "client_cut", spare=False) == "1 of 2 runs (published run)"
    published.loc[0, "run"] = "quick"
    assert pictures.runs_with(published, "client_cut") == "1 of 3 runs (partly the published run)"
    asked = pd.DataFrame({"right_again": [1.0, 0.0, math.nan]})     # of the last one, not all names were asked in time
    assert pictures.runs_with(asked, "right_again") == "1 of 2 runs"
    assert pictures.runs_with(asked.iloc[2:], "right_again") == "not measured"
    assert pictures.ways_left(runs) == 1 and pictures.ways_left(pd.DataFrame()) == "not measured"


def test_settings_are_named_in_one_column_and_an_empty_summary_has_none():
    frame = pd.DataFrame([{"mds": 2, "spare": False, "cache_inodes": 16384}])
    assert list(pictures.with_arm(frame, "mds", "spare")["arm"]) == ["two metadata servers, no spare"]
    assert list(pictures.with_cache(frame)["cache"]) == ["16,384 inodes"]
    assert not len(pictures.with_arm(frame.iloc[:0], "mds")) and not len(pictures.with_cache(frame.iloc[:0]))


def test_the_versions_are_those_of_the_last_record():
    found = pictures.versions(pd.DataFrame({"ceph_version": ["16.2", "17.2"], "bonnie_version": ["2.00", math.nan]}))
    assert found == {"ceph_version": "17.2", "fuse_version": "not measured", "bonnie_version": "2.00"}


def test_a_sweep_has_a_row_for_each_number_of_directories():
    swept = pd.DataFrame({"cache": ["c"], "repeat": [1], "create_per_s_8": [10.0], "create_per_s_16": [12.0],
                          "create_per_s_beyond": [9.0]})
    found = pictures.by_number(swept, "create_per_s")
    assert list(found["directories"]) == [8, 16] and list(found["create_per_s"]) == [10, 12]
    assert not len(pictures.by_number(swept[:0], "create_per_s"))


def test_a_phase_is_drawn_as_limited_by_its_own_mark():
    summary = pd.DataFrame({"mds": [1, 2], "repeat": 1, "client_limited": [0.0, 1.0], "random_stat_per_s": [5.0, 6.0],
                            "random_stat_per_s_limited": [1.0, float("nan")], "random_create_per_s": [1.0, 2.0]})
    assert list(pictures.by_phase(summary, "stat")["client_limited"]) == [1, 1]
    assert list(pictures.by_phase(summary, "create")["client_limited"]) == [0, 1]    # without one, by the point's


def test_own_clients_are_those_who_read_again_where_there_are_such():
    both = pd.DataFrame({"tool": ["own", "remount", "bonnie"]})
    assert list(pictures.of_own_clients(both)["tool"]) == ["remount"]
    assert list(pictures.of_own_clients(both[both["tool"] != "remount"])["tool"]) == ["own"]
    assert not len(pictures.of_own_clients(pd.DataFrame()))


def test_rates_say_where_they_are_from_and_what_was_measured():
    shown = pd.DataFrame({"mds": [1, 2], "directories": [8, 8], "tool": "remount", "repeat": 1, "run": "published",
                          "machine": "m", "sequential_delete_per_s": [2.0, 1.0]})
    rows = pictures.by_phase(shown, "delete")
    assert set(rows.run) == {"published"} and set(rows.machine) == {"m"}
    own = {"tools": ["remount_in_order"], "directories": [16, 4]}
    assert pictures.settings(shown, own) == (["remount"], [8])
    assert repr(pictures.settings(shown, own)[1]) == "[8]", "it stands in the text of a page"
    assert pictures.settings(shown.iloc[:0], own) == (["remount_in_order"], [4, 16])

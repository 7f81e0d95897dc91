"""Figures of joins and of a disk's requests: what is drawn, described in words and left out."""

import math
import re

import numpy as np
import pandas as pd
import pytest

from labbook.figures import use_names
from labbook.figures.canvas import NOT_MEASURED
from labbook.papers.cassandra_elasticity import experiments, figures
from labbook.papers.cassandra_elasticity.joins import joiners_apart


@pytest.fixture(autouse=True)
def names(tmp_path):
    paper = tmp_path / "names.yml"
    paper.write_text("title: a\nnames: {'how none': no join, one_by_one: one by one, load read: reads,\n"
                     "  stream: streaming}\n")
    use_names(paper)


def through(how, repeat=1, mean=4.0, starts=(2.0,), ends=(5.0,), **more):
    means = [mean] * 6 + [None] + [mean / 2] * 3
    metrics = {"beginning_ms": mean, "streaming_ms": 2 * mean, "end_ms": mean / 2} if starts else {}
    return {"how": how, "repeat": repeat, "mean_ms": mean, "bin_s": 1.0, "mean_ms_per_bin": means,
            "p95_ms_per_bin": [None if one is None else 3 * one for one in means],
            "join_starts_s": list(starts), "join_ends_s": list(ends), **metrics, **more}


def test_joins_are_marked_in_the_time_of_calls():
    frame = pd.DataFrame([through("one_by_one"), through("none", starts=(), ends=())])
    picture = figures.calls_through_joins(frame, by=["how"])
    assert [panel.alt for panel in picture.panels] == [
        "Chart through time, no join: time of a call. 4.00 ms in the mean, and no join.",
        "Chart through time, one by one: time of a call. a node joins from 2.00 to 5.00 s; "
        "4.00 ms at the beginning; 8.00 ms while nodes stream; 2.00 ms at the end."]
    assert "one repeat each" in picture.caption


def test_of_several_repeats_the_middle_one_is_drawn_through_time():
    frame = pd.DataFrame([through("one_by_one", i, mean) for i, mean in enumerate((9.0, 1.0, 5.0), 1)])
    picture = figures.calls_through_joins(frame, by=["how"])
    assert "5.00 ms at the beginning" in picture.panels[0].alt and "middle mean" in picture.caption


def test_published_lists_are_arrays_and_are_drawn_alike():
    frame = pd.DataFrame([{k: np.array(v, object) if isinstance(v, list) else v
                           for k, v in through("one_by_one").items()}])
    assert "from 2.00 to 5.00 s" in figures.calls_through_joins(frame, by=["how"]).panels[0].alt


def test_a_stall_shows_in_calls_at_a_rate():
    """100 calls a second of a client, whose server stands still for 2 s."""
    due = np.arange(600) / 100
    late = np.where((due > 1) & (due < 3), 3 - due, 0.0)
    rows = pd.DataFrame({"client": 0, "started_s": due, "service_s": np.where(due == 1.01, 2.0, 0.001), "ok": True})
    rows["seconds"] = late + 0.001
    metrics = {"load": "read_capped", "mean_ms": 330.0, **experiments.per_bin(rows, 0.5)}
    assert max(one or 0 for one in metrics["p95_ms_per_bin"]) > 1800
    found = pd.DataFrame([metrics, {"load": "read", "mean_ms": 3.0}])
    picture = figures.calls_at_a_rate(found, by=["load"])
    assert len(picture.panels) == 1
    assert "95 % take up to 1,870 ms from when they are due, 1.00 ms without their wait" in picture.panels[0].alt
    assert figures.calls_at_a_rate(found[1:], by=["load"]) is NOT_MEASURED


def lists(load, repeat=1, number=40):
    t = np.arange(number) / 10
    return {"load": load, "repeat": repeat, "request_t_s": list(t), "request_gb": list(10 + t),
            "request_kb": [64.0] * number,
            "request_group": ["stream" if i % 2 else "gets" for i in range(number)]}


def test_requests_are_described_by_their_groups():
    frame = pd.DataFrame([lists("read"), lists("none", number=2), lists("read", 2, 6)])
    picture = figures.disk_requests(frame, by="load", groups=["stream", "gets", "other"])
    assert [panel.alt for panel in picture.panels] == [
        "Dot chart through 3.90 s, reads: place on the disk of each request. streaming: 20 requests "
        "from 10.1 to 13.9 GB; gets: 20 requests from 10.0 to 13.8 GB.",
        "Dot chart through 0.100 s, none: place on the disk of each request. streaming: 1 request "
        "from 10.1 to 10.1 GB; gets: 1 request from 10.0 to 10.0 GB."]
    sizes = figures.disk_requests(frame, by="load", y="kb", path=True, groups=["gets", "stream"])
    assert "gets: 20 requests from 64.0 to 64.0 KB" in sizes.panels[0].alt
    assert "the line goes from each to the next" in sizes.caption


def test_many_requests_are_a_picture_in_the_page_and_the_same_data_give_the_same_bytes():
    frame = pd.DataFrame([lists("read", number=20_000)])
    first, second = (figures.disk_requests(frame, by="load", groups=["stream", "gets"]).panels[0].svg
                     for _ in range(2))
    assert first == second and len(first) < 400_000
    assert re.search(rb"<image [^>]*data:image/png", first)


@pytest.mark.parametrize("frame", [
    pd.DataFrame(columns=["how", "load"]),
    pd.DataFrame([{"how": "none", "load": "none", "repeat": 1, "mean_ms": 3.0}]),
    pd.DataFrame([through("none") | lists("none") | {"mean_ms_per_bin": math.nan, "request_t_s": math.nan}])])
def test_without_measurements_there_is_no_picture(frame):
    assert figures.calls_through_joins(frame, by=["how"]) is NOT_MEASURED
    assert figures.disk_requests(frame, by="load", groups=["stream"]) is NOT_MEASURED


def test_a_join_and_the_gets_meanwhile_stand_side_by_side():
    frame = pd.DataFrame([{"scheduler": name, "load": "read", "repeat": i, "moving_s": 10.0, "streaming_ms": 2.0}
                          for name in ("none", "bfq") for i in (1, 2, 3)])
    picture = figures.join_and_gets(frame, "scheduler")
    assert ["10.0" in panel.alt for panel in picture.panels] == [True, False]
    assert figures.join_and_gets(frame.iloc[:0], "scheduler").panels == ()


def test_settings_are_named_in_one_column_and_an_empty_summary_has_none():
    frame = pd.DataFrame([{"load": "read", "ring_delay_ms": 3000, "share": 0.2}])
    assert list(figures.with_delay(frame, "load")["arm"]) == ["reads, 3 s"]
    assert list(figures.in_percent(frame)["percent"]) == [20]
    assert len(figures.of(frame, load="none")) == 0 and len(figures.of(pd.DataFrame(), load="none")) == 0
    assert not len(figures.with_delay(frame.iloc[:0], "load")) and not len(figures.in_percent(frame.iloc[:0]))


def test_what_the_loader_reached_is_named_or_that_nothing_was_loaded():
    frame = pd.DataFrame({"loader_mb_per_s": [60.0, 66.0, 70.0], "loader_mb_per_s_per_core": [500.0, 519.0, 530.0]})
    assert figures.loader(frame) == "66 MB/s, 519 MB for each second of a client core"
    assert figures.loader(frame.iloc[:0]) == "not measured"


def test_the_papers_main_results_stand_beside_ours():
    printed = pd.DataFrame({"what": ["least_join", "sleep"], "value": [60, 30]})
    joins = pd.DataFrame([{"load": load, "repeat": i, "from_request_s": 6.0 + seconds, "fixed_wait_s": 6.0} for i in (1, 2, 3)
                          for load, seconds in (("none", 5.0), ("read", 15.0), ("write", 30.0))])
    delays = pd.DataFrame([{"ring_delay_ms": ms, "repeat": 1, "from_request_s": ms / 500 + 1} for ms in (3000, 30000)])
    table = figures.beside_the_paper(printed, joins=joins, delays=delays, gets=pd.DataFrame(), disk=pd.DataFrame())
    assert table.rows[0] == ("A join as shipped, from its request on", "60 s or more", "61.0 s")
    assert table.rows[1][2].startswith("3.00 times") and table.rows[2][2].startswith("0.500 times")
    assert table.rows[3][2] == table.rows[5][2] == "not measured"


def test_joiners_have_a_row_each():
    frame = pd.DataFrame([{"version": "old", "data_mb": 16, "load": "none", "repeat": 1, "join_s": 11.0,
                           "join_1_s": 10.0, "join_2_s": 12.0, "join_3_s": math.nan}])
    found = joiners_apart(frame)
    assert list(zip(found["joiner"], found["one_join_s"])) == [(1, 10), (2, 12)]
    assert not len(joiners_apart(frame.iloc[:0]))
    elsewhere = joiners_apart(frame.assign(run="published", machine="another"))     # so that none are pooled
    assert set(elsewhere["run"]) == {"published"} and set(elsewhere["machine"]) == {"another"}
    assert len(joiners_apart(frame.assign(run=None))) == 2


def test_a_join_without_waits_counts_from_its_request():
    found = figures.without_waits(pd.DataFrame({"from_request_s": [9.0], "fixed_wait_s": [6.0], "moving_s": [5.0]}))
    assert found["moving_from_request_s"].tolist() == [3.0]
    assert "moving_from_request_s" not in figures.without_waits(pd.DataFrame({"moving_s": [5.0]}))


def test_tags_are_those_of_the_points_that_are_shown():
    assert figures.tags(pd.DataFrame(), 4) == "4"
    assert figures.tags(pd.DataFrame({"tags": [8, 8]}), 4) == "8"
    assert figures.tags(pd.DataFrame({"repeat": [1]}), 4) == "4; 128 in the published results, which are older"


def test_joins_that_the_clients_limited_stay_so_joiner_by_joiner():
    joined = pd.DataFrame({"version": "1.0.7", "data_mb": 8, "load": "read", "repeat": [1], "client_limited": [1.0],
                           "join_1_s": [2.0], "join_2_s": [3.0]})
    assert joiners_apart(joined).client_limited.tolist() == [1.0, 1.0]

"""Statistics of made-up traces: sequential requests, lengths of runs, seeks, and requesters."""

import math

import numpy as np
import pandas as pd
import pytest

from labbook.papers.cassandra_elasticity.disk import (
    STATISTICS,
    attribute_requests,
    request_statistics,
    sample_consecutive,
    sample_evenly,
)

KB128 = 128 << 10
SECTORS = KB128 // 512


def trace(*rows):
    """Rows (thread, sector, size_bytes, write) 0.1 s apart, with event, or (..., write, event)."""
    full = [row if len(row) == 5 else (*row, "issue") for row in rows]
    frame = pd.DataFrame(full, columns=["thread", "sector", "size_bytes", "write", "event"])
    frame["thread"] = frame["thread"].astype("category")
    return frame.assign(t_s=1.7e9 + np.arange(len(frame)) / 10)


def reads(thread, *sectors, size=KB128):
    return [(thread, sector, size, False) for sector in sectors]


def of(frame, group="all", **groups):
    found = request_statistics(frame, groups or None).set_index("group")
    return found.loc[group]


def test_one_stream_is_sequential_and_one_run():
    found = of(trace(*reads("a", *(i * SECTORS for i in range(10)))))
    assert found["requests"] == 10 and found["bytes"] == 10 * KB128
    assert found["sequential_share"] == found["sequential_on_disk"] == 1
    assert found["run_requests"] == 10 and found["run_bytes"] == 10 * KB128
    assert math.isnan(found["seek_median_bytes"]) and found["read_share"] == 1


def test_random_reads_are_not_and_their_seeks_are_measured_from_the_end_of_the_last():
    found = of(trace(*reads("a", 1000, 5000, 0, size=512)))
    assert found["sequential_share"] == 0 and found["run_requests"] == 1
    assert found["run_bytes"] == found["size_mean_bytes"] == 512
    # 1000..1001 to 5000, and 5000..5001 back to 0
    assert found["seek_mean_bytes"] == (3999 + 5001) / 2 * 512 == found["seek_median_bytes"]


def test_the_median_of_seeks_is_not_their_mean():
    found = of(trace(*reads("a", 0, 11, 22, 100033, size=512)))
    assert found["seek_median_bytes"] == 10 * 512
    assert found["seek_mean_bytes"] == pytest.approx((10 + 10 + 100010) / 3 * 512)


def test_a_gap_is_a_seek_and_so_is_the_same_place_again():
    found = of(trace(*reads("a", 0, SECTORS, SECTORS, 3 * SECTORS)))
    assert found["sequential_share"] == pytest.approx(1 / 3)
    assert found["run_requests"] == pytest.approx(4 / 3)
    assert found["seek_mean_bytes"] == KB128


def test_a_stream_cut_up_by_another_s_reads_is_sequential_by_itself_and_not_on_the_disk():
    stream = reads("stream", *(i * SECTORS for i in range(6)))
    others = reads("get", 90000, 50000, 70000, 30000, 99000, 60000, size=4096)
    mixed = trace(*(row for pair in zip(stream, others) for row in pair))
    mine = of(mixed, "streaming", streaming="^stream", gets="^get")
    assert mine["requests"] == 6 and mine["sequential_share"] == 1 and mine["run_requests"] == 6
    assert mine["sequential_on_disk"] == 0 and mine["seek_mean_bytes"] > 10_000_000
    alone = of(trace(*stream), "streaming", streaming="^stream")
    assert alone["sequential_on_disk"] == 1
    assert of(mixed)["sequential_share"] == 0
    assert mine["run_on_disk_requests"] == 1 and mine["run_on_disk_bytes"] == KB128


def test_writes_in_between_do_not_cut_a_run_of_reads():
    both = [row for i in range(5) for row in (("r", i * SECTORS, KB128, False),
                                              ("w", 10**6 + i * SECTORS, KB128, True))]
    found = of(trace(*both))
    assert found["sequential_share"] == 1 and found["run_requests"] == 5
    assert found["read_share"] == 0.5


def test_together_writes_come_between_reads_and_cut_their_runs():
    rows = [row for i in range(4) for row in (("r", i * SECTORS, KB128, False),
                                              ("w", 10**6 + i * SECTORS, KB128, True))]
    found = request_statistics(trace(*rows), {"r": "^r"}, together=True).set_index("group")
    assert found.loc["all", "sequential_share"] == 0 and found.loc["all", "read_share"] == 0.5
    assert found.loc["r", "sequential_on_disk"] == 0 and found.loc["r", "run_on_disk_requests"] == 1
    assert found.loc["r", "sequential_share"] == 1 and found.loc["r", "run_requests"] == 4
    # from the write's end at 10**6 + (i + 1) * SECTORS to the read at (i + 1) * SECTORS
    assert found.loc["r", "seek_median_bytes"] == 10**6 * 512


def test_a_read_may_go_on_where_another_s_write_ended():
    frame = trace(("w", 0, 512, True), ("r", 1, 512, False), ("r", 2, 512, False))
    found = request_statistics(frame, {"r": "^r"}, together=True).set_index("group").loc["r"]
    assert found["sequential_on_disk"] == 1 and found["run_on_disk_requests"] == 2


def test_another_s_request_ends_a_run_on_the_disk_though_it_lies_in_the_way():
    frame = trace(*reads("a", 0, SECTORS), *reads("b", 2 * SECTORS), *reads("a", 3 * SECTORS))
    mine = of(frame, "a", a="^a$")
    assert mine["run_on_disk_requests"] == 1.5 and mine["run_on_disk_bytes"] == 1.5 * KB128
    assert mine["sequential_on_disk"] == 1 and mine["sequential_share"] == 0.5
    assert of(frame)["run_on_disk_requests"] == 4


def test_each_group_has_its_seeks():
    frame = trace(*reads("a", 0, 11, size=512), *reads("b", 112, size=512), *reads("a", 13, size=512))
    groups = request_statistics(frame, {"a": "^a$", "b": "^b$"}).set_index("group")["seek_median_bytes"]
    assert groups["b"] == 100 * 512 and groups["a"] == (10 + 100) / 2 * 512


def test_a_group_that_no_thread_is_in_has_no_requests_and_no_numbers():
    found = of(trace(*reads("a", 0, 8)), "none", none="^nobody$")
    assert found["requests"] == found["bytes"] == 0
    assert all(math.isnan(found[name]) for name in STATISTICS[2:])


def test_an_empty_trace_has_a_row_too():
    found = request_statistics(trace(*reads("a", 0)).iloc[:0], {"a": "a"})
    assert list(found["group"]) == ["all", "a"] and list(found["requests"]) == [0, 0]


def test_one_request_is_neither_sequential_nor_not():
    found = of(trace(*reads("a", 8)))
    assert found["requests"] == 1 and found["run_requests"] == 1
    assert math.isnan(found["sequential_share"])


def test_only_events_of_one_kind_are_counted():
    frame = trace(("a", 0, 4096, False, "queue"), ("a", 8, 4096, False, "queue"),
                  ("k", 0, 8192, False, "issue"))
    assert of(frame)["requests"] == 1
    assert request_statistics(frame, event="queue").iloc[0]["sequential_share"] == 1


def test_rows_may_carry_any_index():
    frame = trace(*reads("a", 0, SECTORS), *reads("b", 7000, 9000))
    again = pd.concat([frame, frame.assign(t_s=frame["t_s"] + 9)])
    pd.testing.assert_frame_equal(request_statistics(again, {"b": "b"}),
                                  request_statistics(again.reset_index(drop=True), {"b": "b"}))


def test_who_asked_is_found_through_merges_and_splits():
    frame = trace(
        ("read", 0, 4096, False, "queue"), ("read", 8, 4096, False, "queue"),
        ("kworker/0:1H", 0, 8192, False),                           # both in one
        ("stream", 100, 16384, False, "queue"),
        ("kworker/0:1H", 100, 8192, False), ("kworker/1:2", 116, 8192, False),  # one in two
        ("kworker/u4", 500, 4096, True))                            # of which nothing is known
    found = attribute_requests(frame)
    assert list(found["asked_by"]) == ["read", "stream", "stream", "kworker/u4"]
    assert list(found["event"].unique()) == ["issue"]
    assert of(found, "mine", mine="^stream$")["requests"] == 2


def test_a_write_queued_where_another_reads_is_its_own_request():
    frame = trace(("writer", 0, 4096, True, "queue"), ("reader", 0, 4096, False, "queue"),
                  ("k", 0, 4096, False), ("k", 0, 4096, True))
    assert list(attribute_requests(frame)["asked_by"]) == ["reader", "writer"]


def requests(number):
    return pd.DataFrame({"t_s": 100 + np.arange(number), "sector": 2_000_000 * np.arange(number),
                         "size_bytes": 4096, "write": False, "group": ["stream", "gets"] * (number // 2)})


def test_samples_of_many_requests_are_even_from_first_to_last():
    found = sample_evenly(requests(1000), 90, 11)
    assert len(found["request_t_s"]) == 11
    assert (found["request_t_s"][0], found["request_t_s"][-1]) == (10, 1009)
    assert found["request_gb"][-1] == pytest.approx(999 * 1.024) and found["request_kb"][0] == 4
    few = sample_evenly(requests(4), 100, 11)
    assert few["request_t_s"] == [0, 1, 2, 3] and few["request_group"] == ["stream", "gets"] * 2
    assert sample_evenly(requests(0), 0, 5)["request_t_s"] == []


def test_consecutive_samples_are_all_requests_of_a_moment():
    found = sample_consecutive(requests(100), 100, 10)
    assert found["close_t_s"] == list(range(50, 60))
    assert len(sample_consecutive(requests(6), 100, 10)["close_t_s"]) == 6
    lopsided = pd.concat([requests(10), requests(2).assign(t_s=5000)])
    assert len(sample_consecutive(lopsided, 0, 4)["close_t_s"]) == 4
    assert sample_consecutive(requests(0), 0, 4)["close_kb"] == []

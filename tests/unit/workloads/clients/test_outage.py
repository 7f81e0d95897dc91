"""Successes, errors and their times over time, and the longest time without a success."""

import math

import pandas as pd
import pytest

from labbook.workloads.clients.outage import outage, over_time, timeline


def calls(*given, step=""):
    """Rows of (started_s, seconds, ok)."""
    return pd.DataFrame([{"started_s": s, "seconds": t, "ok": ok, "step": step}
                         for s, t, ok in given], columns=["started_s", "seconds", "ok", "step"])


def steady(first, last, every=0.5, ok=True):
    return [(first + i * every, every, ok) for i in range(round((last - first) / every))]


def test_calls_are_counted_where_they_end():
    rows = calls((0.0, 0.5, True), (0.9, 0.2, True), (0.2, 2.1, False), (2.0, 0.9, True))
    assert timeline(rows, 1) == {"ok_per_bin": [1, 1, 1], "errors_per_bin": [0, 0, 1], "bin_s": 1}


def test_bins_are_of_any_width_and_all_there():
    found = timeline(calls((0, 0.1, True), (5, 0.1, False)), 0.5)
    assert len(found["ok_per_bin"]) == len(found["errors_per_bin"]) == 11
    assert sum(found["ok_per_bin"]) == 1 and found["errors_per_bin"][-1] == 1


def test_what_ends_on_an_edge_is_in_the_later_bin():
    assert timeline(calls((0, 1.0, True)), 1)["ok_per_bin"] == [0, 1]


def test_steps_do_not_count():
    rows = pd.concat([calls((0, 0.5, True)), calls((0, 0.2, True), (1, 0.2, False), step="a")])
    assert timeline(rows, 1) == {"ok_per_bin": [1], "errors_per_bin": [0], "bin_s": 1}
    assert outage(rows, 0)["errors"] == 0


def test_calls_on_a_schedule_have_times_of_their_own_too():
    rows = calls((0.0, 0.2, True), (0.1, 0.3, True), (0.2, 9.0, False)).assign(service_s=[0.2, 0.1, 9.0])
    first = over_time(rows, 1).iloc[0]
    assert (first.p95_ms, first.service_p95_ms) == (pytest.approx(295), pytest.approx(195))


def test_no_calls_no_bins():
    assert timeline(calls(), 1) == {"ok_per_bin": [], "errors_per_bin": [], "bin_s": 1}


def test_the_longest_gap_is_the_outage():
    rows = calls(*steady(0, 10), (10, 6.4, True), *steady(16.4, 20, 0.3))
    found = outage(rows, 10.2)
    assert found["outage_s"] == pytest.approx(6.4) and found["outage_from_s"] == pytest.approx(10)
    assert found["first_success_s"] == pytest.approx(6.2)
    assert found["errors"] == 0 and found["recovered"] == 1


def test_a_longer_gap_before_the_fault_is_none_of_its():
    rows = calls((0, 0.5, True), (0.5, 8, True), *steady(8.5, 12), (12, 2, True), (14, 0.5, True))
    assert outage(rows, 12.5)["outage_s"] == pytest.approx(2)


def test_a_later_gap_may_be_the_longest():
    """A cluster may answer calls under way, and only then find out."""
    rows = calls(*steady(0, 11), (11, 5, True), (16, 0.5, True))
    found = outage(rows, 10)
    assert found["outage_s"] == pytest.approx(5) and found["outage_from_s"] == pytest.approx(11)
    assert found["first_success_s"] < 0.6


def test_errors_break_no_gap_and_are_counted_after_the_fault():
    rows = calls((3, 0.1, False), *steady(0, 10), *steady(10, 20, ok=False), *steady(20, 22))
    found = outage(rows, 10)
    assert found["outage_s"] == pytest.approx(10.5) and found["errors"] == 20
    assert found["errors_before"] == 1


def test_an_outage_that_does_not_end_lasts_to_the_end_of_the_calls():
    rows = calls(*steady(0, 10), *steady(10, 30, ok=False))
    found = outage(rows, 10)
    assert found["outage_s"] == pytest.approx(20) and found["recovered"] == 0
    assert "first_success_s" not in found


def test_one_that_never_had_a_success_begins_with_the_calls():
    found = outage(calls(*steady(1, 5, ok=False)), 2)
    assert found["outage_s"] == pytest.approx(4) and found["outage_from_s"] == pytest.approx(1)
    assert found["recovered"] == 0


def test_what_recovered_and_ended_soon_after_is_recovered():
    rows = calls(*steady(0, 10), (10, 5, True), (15, 0.2, False))
    assert outage(rows, 11)["recovered"] == 1


def test_calls_in_parallel_are_taken_together():
    rows = calls((0, 3, True), (0.5, 3, True), (1, 6, True), (3, 4.5, True), (3.5, 8, True))
    found = outage(rows, 3.2)  # successes end at 3, 3.5, 7, 7.5 and 11.5
    assert found["outage_s"] == pytest.approx(4) and found["outage_from_s"] == pytest.approx(7.5)


def test_without_calls_there_is_nothing_to_report():
    with pytest.raises(ValueError, match="no calls"):
        outage(calls(), 0)


def test_calls_through_time():
    rows = calls((0.0, 0.5, True), (0.1, 0.3, True), (0.2, 0.7, False), (2.0, 0.1, True))
    found = over_time(rows, 1)
    assert list(found) == ["t_s", "calls", "errors", "mean_ms", "p95_ms"]
    assert found.t_s.tolist() == [0, 1, 2] and found.calls.tolist() == [3, 0, 1]
    assert found.errors.tolist() == [1, 0, 0]
    assert found.mean_ms.tolist() == pytest.approx([400, math.nan, 100], nan_ok=True)
    assert found.p95_ms.tolist() == pytest.approx([490, math.nan, 100], nan_ok=True)


def test_they_count_where_they_end_and_in_bins_of_any_width():
    found = over_time(calls((0.9, 0.2, True), (0.0, 0.25, False)), 0.25)
    assert found.t_s.tolist() == [0, 0.25, 0.5, 0.75, 1.0]
    assert found.calls.tolist() == [0, 1, 0, 0, 1] and found.errors.tolist() == [0, 1, 0, 0, 0]
    assert found.mean_ms.isna().tolist() == [True, True, True, True, False]


def test_clocks_that_differ_lose_no_call():
    assert over_time(calls((-0.002, 0.001, True)), 1).calls.tolist() == [1]


def test_no_calls_are_a_table_too():
    assert list(over_time(calls(), 1)) == ["t_s", "calls", "errors", "mean_ms", "p95_ms"]
    assert not len(over_time(calls(), 1))


def test_a_bin_agrees_with_the_timeline():
    rows = calls(*steady(0, 7), *steady(7, 9, ok=False), *steady(12, 15, 0.3))
    found, other = over_time(rows, 0.7), timeline(rows, 0.7)
    assert (found.calls - found.errors).tolist() == other["ok_per_bin"]
    assert found.errors.tolist() == other["errors_per_bin"]


def test_what_is_waited_for_after_the_end_is_no_outage():
    """One client's call never returns, and is waited for until 60 s after the end at 20; another client goes on."""
    rows = pd.DataFrame([{"started_s": t / 2, "seconds": 0.5, "ok": not 4 <= t / 2 < 16} for t in range(40)]
                        + [{"started_s": 5.0, "seconds": 75.0, "ok": False}])
    assert outage(rows, 4.0)["outage_s"] == 60 and not outage(rows, 4.0)["recovered"]
    found = outage(rows, 4.0, until_s=20.0)
    assert (found["outage_s"], found["outage_from_s"], found["recovered"]) == (12.5, 4.0, 1.0)
    alone = outage(rows[rows.started_s < 4].assign(ok=True), 3.0, until_s=20.0)
    assert alone["outage_s"] == 0.5, "the calls ended by themselves"
    hung = pd.DataFrame([{"started_s": 0.0, "seconds": 1.0, "ok": True}, {"started_s": 1.0, "seconds": 79.0, "ok": False}])
    assert outage(hung, 1.5, until_s=20.0)["outage_s"] == 19

"""Metrics of joins, and of the calls made around them."""

import math

import pandas as pd
import pytest

from labbook.papers.cassandra_elasticity.joins import (
    beginning_and_end,
    call_times,
    calls_during,
    join_metrics,
    join_times,
    stream_times,
    streaming_over_before,
    streaming_over_waiting,
)


def join(asked_s, join_s, waits=10.0, received=100, before=1000, after=1000):
    return {"node": "node2", "token": 1, "share": 0.2, "asked_s": asked_s, "normal_s": asked_s + join_s,
            "join_s": join_s, "fixed_wait_s": waits, "streaming_s": join_s - waits - 1,
            "streamed_from_s": asked_s + waits, "streamed_to_s": asked_s + join_s - 1,
            "received_bytes": received * 1e6, "expected_bytes": 100e6,
            "donor_bytes_before": before * 1e6, "donor_bytes_after": after * 1e6}


TWO = [join(0, 15), join(20, 20, received=300, before=1200, after=1500)]


def test_joins_one_after_another_add_up():
    found = join_metrics(TWO)
    assert found["join_s"] == 17.5 and found["least_join_s"] == 15 and found["all_joined_s"] == 35
    assert (found["moving_s"], found["moving_all_s"], found["fixed_wait_s"]) == (7.5, 15, 10)
    assert (found["streaming_s"], found["rest_s"]) == (6.5, 1)
    assert (found["join_2_s"], found["moving_2_s"], found["received_2_mb"]) == (20, 10, 300)
    assert found["last_over_first"] == 2 and found["grown_times"] == 1.5
    assert (found["received_mb"], found["most_received_mb"], found["least_received_mb"]) == (400, 300, 100)
    assert found["stream_mb_per_s"] == pytest.approx(400 / (4 + 9))


def test_a_join_without_data_has_no_rate_and_its_time_since_its_request_is_apart():
    nothing = join(0, 11, received=0, before=0, after=0) | {"from_request_s": 10.2}
    found = join_metrics([nothing])
    assert math.isnan(found["stream_mb_per_s"]) and math.isnan(found["grown_times"])
    assert found["from_request_s"] == 10.2 and "from_request_s" not in join_metrics(TWO)
    assert found["moving_from_request_s"] == pytest.approx(0.2), "without the waits, and without the start of Java"


def test_joins_at_once_take_as_long_as_the_longest():
    found = join_metrics(TWO, together=True)
    assert (found["all_joined_s"], found["moving_all_s"], found["join_s"]) == (20, 10, 17.5)


def test_one_join_is_first_and_last_and_none_is_an_error():
    assert math.isnan(join_metrics(TWO[:1])["last_over_first"])
    with pytest.raises(ValueError, match="no joins"):
        join_metrics([])


def test_when_joins_began_and_ended_by_the_calls_clock():
    assert join_times([join(105, 15), join(125, 20)], 100) == {"join_starts_s": [5, 25],
                                                          "join_ends_s": [20, 45]}


def test_streams_are_when_the_logs_say_and_not_when_the_ring_showed_the_join():
    assert stream_times([join(105, 15), join(125, 20)], 100) == {"join_starts_s": [15, 35],
                                                            "join_ends_s": [19, 44]}


def calls(*rows):
    return pd.DataFrame(rows, columns=["started_s", "seconds", "ok"])


def test_calls_that_began_meanwhile():
    rows = calls((4.9, 1, True), (5, 1, True), (19.9, 9, False), (20, 1, True), (30, 1, True))
    assert list(calls_during(rows, [5, 25], [20, 45])["started_s"]) == [5, 19.9, 30]


def test_calls_are_before_during_or_after_the_joins():
    rows = calls((0, 0.5, True), (4.5, 1.5, True),  # the second is under way when a node joins
                 (6, 3, True), (7, 5, True), (8, 90, False), (22, 9, True), (50, 0.5, True))
    found = call_times(rows, [5, 25], [20, 45])
    assert (found["before_ms"], found["during_ms"], found["after_ms"]) == (1000, 4000, 500)
    assert (found["during_over_before"], found["after_over_before"]) == (4, 0.5)


def test_joins_at_once_count_a_call_once():
    rows = calls((0, 1, True), (6, 2, True), (30, 4, True))
    assert call_times(rows, [5, 5], [20, 40])["during_ms"] == 3000


def test_calls_of_a_cold_start_are_not_before():
    rows = calls((0, 9, True), (12, 2, True), (25, 3, True), (40, 4, True))
    assert call_times(rows, [20], [30], since_s=10)["before_ms"] == 2000


def test_of_what_there_are_no_calls_there_is_no_time():
    found = call_times(calls((6, 3, True)), [5], [20])
    assert found.pop("during_ms") == 3000
    assert all(math.isnan(value) for value in found.values()) and len(found) == 4


def test_the_beginning_and_the_end_are_those_calls_that_lie_in_their_windows():
    rows = calls((0, 9, True), (10, 1, True), (12, 3, True), (17.5, 1, True), (30, 5, True), (34, 90, False), (60, 9, True))
    assert beginning_and_end(rows, (10, 18), (30, 50)) == {"beginning_ms": 2000, "end_ms": 5000, "end_over_beginning": 2.5}
    assert math.isnan(beginning_and_end(rows, (10, 18), (70, 80))["end_over_beginning"])


def test_streams_are_compared_with_the_seconds_before_their_join_when_as_many_nodes_served():
    rows = calls(*((float(t), seconds, True) for t, seconds in
                   [(1, 9.0), (6, 0.004), (12, 0.09), (17, 0.008), (25, 0.001), (32, 0.09), (37, 0.008), (45, 0.001)]))
    each = [join(10, 10, waits=4), join(30, 10, waits=4)]
    assert streaming_over_before(rows, each, 0, since_s=5) == pytest.approx(math.sqrt(2 * 8))
    assert streaming_over_before(rows, each, -1000, since_s=5) != streaming_over_before(rows, each, 0, since_s=5)
    at_once = [join(10, 10, waits=4), join(11, 8, waits=3)]
    assert streaming_over_before(rows, at_once, 0, since_s=5) == pytest.approx(2)      # one
    assert math.isnan(streaming_over_before(rows, [], 0, since_s=5))
    after_each_other = [join(10, 10, waits=4), join(20, 20, waits=14)]
    assert math.isnan(streaming_over_before(rows, after_each_other, 0, since_s=5))      # no call between them


def test_streams_are_compared_with_the_wait_just_before_them():
    """Gets that take half the time every 20 s, whatever joins: a stream 10 s after the moment before its join was
    taken for one that makes them faster."""
    rows = calls(*((float(t), 0.1 * 0.5 ** (t / 20), True) for t in range(60)))
    each = [join(10, 10, waits=6), join(30, 10, waits=6)]       # streams of 3 s
    assert streaming_over_before(rows, each, 0, since_s=5) < 0.75
    assert streaming_over_waiting(rows, each, 0, wait_s=2) == pytest.approx(0.5 ** (2.5 / 20), rel=0.02)
    slow = calls(*((float(t), 0.3 if 16 <= t < 19 or 36 <= t < 39 else 0.1, True) for t in range(60)))
    assert streaming_over_waiting(slow, each, 0, wait_s=2) == pytest.approx(3)
    assert math.isnan(streaming_over_waiting(rows, [], 0, wait_s=2))

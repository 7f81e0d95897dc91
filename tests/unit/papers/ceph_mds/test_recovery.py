"""A rank's recovery, from made-up states and calls."""

import math

import pandas as pd
import pytest

from labbook.papers.ceph_mds.recovery import in_order, metrics_through, recovery_metrics

KILLED = 1000.0


def states(*given, rank=1):
    return pd.DataFrame([(t, rank, d, s) for t, d, s in given],
                        columns=["t_s", "rank", "daemon", "state"])


def calls(*given):
    """(client, started_s, seconds, ok, error)"""
    return pd.DataFrame(given, columns=["client", "started_s", "seconds", "ok", "error"])


def steady(first, last, client=0, every=0.5):
    return [(client, first + i * every, every, True, "") for i in range(round((last - first) / every))]


SPARE = states((990, "mds2", "active"), (1012, "mds3", "replay"), (1012.5, "mds3", "resolve"),
               (1013, "mds3", "reconnect"), (1013.5, "mds3", "rejoin"), (1014, "mds3", "active"))


def test_detection_ends_where_takeover_begins():
    found = recovery_metrics(SPARE, 1, KILLED)
    assert found["detection_s"] == 12 and found["takeover_s"] == 2 and found["recovery_s"] == 14
    assert found["replay_s"] == found["rejoin_s"] == 0.5 and found["clientreplay_s"] == 0
    assert found["unserved_s"] == 0 and found["active_at_s"] == 1014


def test_all_steps_in_their_order_and_nothing_less():
    assert in_order(SPARE, 1, KILLED)
    assert not in_order(SPARE[SPARE.state != "resolve"], 1, KILLED)
    swapped = SPARE.assign(state=SPARE.state.replace({"rejoin": "reconnect", "reconnect": "rejoin"}))
    assert not in_order(swapped, 1, KILLED)
    assert not in_order(SPARE, 0, KILLED) and not in_order(SPARE[SPARE.t_s < 1014], 1, KILLED)
    more = pd.concat([SPARE, states((1013.7, "mds3", "clientreplay"), (1005, "mds2", "active laggy"))])
    assert in_order(more, 1, KILLED)


def test_a_rank_that_nobody_had_for_a_while():
    found = recovery_metrics(states((1010, None, "failed"), (1020, "mds2", "replay"),
                            (1021, "mds2", "active")), 1, KILLED)
    assert (found["detection_s"], found["unserved_s"], found["replay_s"]) == (10, 10, 1)
    assert found["takeover_s"] == 11


def test_what_did_not_happen_is_nan():
    assert all(map(math.isnan, recovery_metrics(SPARE, 0, KILLED).values()))
    found = recovery_metrics(states((1010, None, "failed")), 1, KILLED)
    assert found["detection_s"] == 10 and math.isnan(found["takeover_s"])


def test_rates_before_during_and_after():
    rows = calls(*steady(0, 10), (0, 10, 15, True, ""), *steady(25, 45))
    found = metrics_through(rows, 10, 25, settle_s=5)
    assert found["rate_before"] == pytest.approx(2) and found["rate_after"] == pytest.approx(2)
    assert found["rate_during"] == pytest.approx(1 / 15)
    assert found["longest_blocked_s"] == 15 and found["blocked_clients"] == 1
    assert found["errors"] == 0 and found["after_over_before"] == pytest.approx(1)


def test_the_rate_before_is_that_of_the_time_before_the_kill_and_not_of_the_beginning():
    """The first calls are ten times as fast."""
    rows = calls(*((0, at / 20, 0.01, True, "") for at in range(100)), *steady(5, 10), *steady(25, 45))
    found = metrics_through(rows, 10, 25, before_s=4, settle_s=5)
    assert found["rate_before"] == pytest.approx(2) and found["after_over_before"] == pytest.approx(1)
    with pytest.raises(ValueError, match="before the kill"):
        metrics_through(calls((0, 1, 1, True, "")), 10, 12, before_s=4)


def test_calls_that_never_ended():
    rows = calls(*steady(0, 10), *steady(0, 10, client=1), (0, 10, 30, False, "blocked"),
                 (1, 10, 1, False, "EIO"))
    found = metrics_through(rows, 10, math.nan)
    assert found["longest_blocked_s"] == 30 and found["blocked"] == 1 and found["errors"] == 2
    assert math.isnan(found["rate_after"]) and found["rate_during"] == 0


def test_calls_begun_long_after_are_not_blocked_by_it():
    rows = calls(*steady(0, 10), (0, 10, 2, True, ""), (0, 30, 9, True, ""))
    assert metrics_through(rows, 10, 12)["longest_blocked_s"] == 2


def test_no_calls_before_are_an_error():
    with pytest.raises(ValueError, match="before the kill"):
        metrics_through(calls((0, 11, 1, True, "")), 10, 12)


def test_a_call_that_was_waited_for_after_the_load_makes_no_rate_lower():
    """It had: calls of 30 s had been divided by 90."""
    found = metrics_through(calls(*steady(0, 10), *steady(14, 44), (1, 12, 90, False, "blocked")), 10, 14)
    assert found["rate_after"] == pytest.approx(2.0) and found["blocked"] == 1

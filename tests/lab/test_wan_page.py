"""The page of the WAN study as it is, with clouds so small and so few calls that it takes seconds: one
point of each scenario for both numbers of segments, and the traffic of each."""

import json
import re
import shlex

import pytest
from small_clouds import SMALL
from tiny_page import TinyPage

STUDY, RTT_MS, TIMES = "wan_keystone", 40, 20
CALLING_S = 8.0
SCENARIOS = ("create_user", "create_and_list_users")
NOTHING_ELSE = {f"{name}.repeats": 0 for name in (
    "crowd", "kinds", "commit", "waits", "loss", "bandwidth", "windows", "cache", "tools", "kill", "cut")}
TINY = {**{f"cloud.{name}": value for name, value in SMALL.items()}, "response.rtt_ms": [RTT_MS],
        "load.concurrency": 2, "load.times": TIMES, "warmup.concurrency": 2, "warmup.calls": 4,
        "response.repeats": 1, "response.calling_s": CALLING_S, "response.slice_s": 2.0, "traffic.repeats": 1,
        "traffic.rtt_ms": [RTT_MS], "traffic.idle_seconds": 2.0, "ceiling.repeats": 1, "writes.repeats": 1,
        "writes.rtt_ms": RTT_MS, "writes.writes": [1, 3], "writes.calling_s": CALLING_S,
        "writes.warmup_s": 1.0, "writes.counted_s": 4.0, "writes.slice_s": 1.0, **NOTHING_ELSE}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    return TinyPage.of(STUDY, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def page(untouched):
    return untouched.run(TINY)


def test_both_clouds_are_called_at_the_same_time(page):
    assert len(page.recorded("response")) == len(SCENARIOS) and len(page.recorded("ceiling")) == 2
    found = {(arm["segments"], arm["scenario"]): arm for arm in page.recorded_arms("response")}
    assert set(found) == {(segments, scenario) for segments in (1, 2) for scenario in SCENARIOS}
    for measured in found.values():
        assert measured["n"] >= 2 and not measured["errors"]
        assert measured["mean_ms"] > RTT_MS     # a write waits for the other site
    assert all(found[2, scenario]["pairs"] >= 2 for scenario in SCENARIOS)


def test_one_segment_sends_more_than_two_beyond_what_idle_clusters_send(page):
    found = {point["segments"]: point for point in page.recorded("traffic")}
    assert all((one["n"], one["errors"]) == (TIMES, 0) for one in found.values())
    assert all(0 < one["wan_net_bytes_per_call"] < one["wan_bytes_per_call"] for one in found.values())
    assert found[1]["wan_net_bytes_per_call"] > found[2]["wan_net_bytes_per_call"]


def test_a_call_of_three_transactions_takes_three_round_trips_and_more_traffic(page):
    found = {(arm["segments"], arm["writes"]): arm for arm in page.recorded_arms("writes")}
    assert len(found) == 4 and not any(arm["errors"] for arm in found.values())
    for segments in (1, 2):
        few, many = (found[segments, writes] for writes in (1, 3))
        assert few["mean_round_trips"] >= 1 and many["mean_round_trips"] >= 3
        assert many["wan_net_bytes_per_call"] > few["wan_net_bytes_per_call"] > 0


def test_each_claim_has_its_verdict_and_nothing_is_left(page, monkeypatch):
    page.assert_judged(monkeypatch)


def test_the_parameters_that_the_page_gives_for_two_real_sites(untouched):
    """Without a round trip of our own; nothing is measured."""
    cells = json.loads((untouched.checkout / "notebooks" / f"{STUDY}.ipynb").read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    arguments = shlex.split(re.search(rf"^labbook run {STUDY} (.*)$", text, re.M)[1])
    without_environment = [argument for at, argument in enumerate(arguments)
                           if "--environment" not in arguments[max(0, at - 1):at + 1]]
    assert "response.rtt_ms" in without_environment
    untouched.run({"response.repeats": 0, "traffic.repeats": 0, "ceiling.repeats": 0, "writes.repeats": 0,
                   **NOTHING_ELSE}, *without_environment)

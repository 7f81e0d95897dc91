"""The page of the elasticity study as it is, over so few data that it takes seconds a join: without
load and under reads, the donor's disk traced, several at once, one that dies and one that leaves."""

import pytest
import quick_jvm
from tiny_page import TinyPage, values_of

STUDY, DATA_MB, SHARE = "cassandra_elasticity", 16, 0.2
REPEATS = {f"{name}.repeats": 1 for name in ("size", "parallel", "priority", "dying", "leaving")}
TINY = {"cassandra.data_mb": DATA_MB, "cassandra.ring_delay_ms": 4000, "cassandra.stream_mbit": 8,
        **{f"{name}.data_mb": DATA_MB for name in ("response", "parallel", "leaving")}, "disk.share": SHARE, "disk.loads": ["none"],
        "joins.share": SHARE, "joins.clients": 1, "joins.before_s": 1.0, "joins.after_s": 0.5,
        "ceiling.calling_s": 1.0, "seek.reading_s": 0.5, "size.data_mb": [DATA_MB], "size.loads": ["none", "read"],
        "size.growth_share": SHARE, "response.joiners": 1, "response.warm_s": 1.0, "response.steady_s": 2.0,
        "response.ends_s": 60.0,
        "parallel.numbers": [2], "parallel.loads": ["none"], "parallel.ring_delay_ms": [4000],
        "priority.priorities": ["stream_first"], "dying.part": 0.1, "dying.looking_s": 30.0, "dying.between_s": 5.0,
        "dying.again_within_s": 45.0, "leaving.loads": ["none"], **REPEATS}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return TinyPage.of(STUDY, tmp_path_factory.mktemp("page")).run(TINY, PYTHONSTARTUP=quick_jvm.__file__)


def test_each_join_has_its_bytes_and_its_parts(page):
    found = {point["load"]: point for point in page.recorded("size")}
    assert set(found) == {"none", "read"}
    for point in found.values():
        assert point["received_mb"] == pytest.approx(SHARE * DATA_MB, rel=0.4)
        assert point["fixed_wait_s"] > 2 and point["streaming_s"] > 0
        assert point["join_s"] >= point["fixed_wait_s"] + point["streaming_s"]
        assert point["seek_ratio"] > 0 and point["loader_mb_per_s"] > 0
    assert "call_n" not in found["none"]
    assert found["read"]["call_n"] > 0 and found["read"]["call_errors"] == 0
    assert found["read"]["during_ms"] > 0


def test_gets_have_times_at_the_beginning_at_the_end_and_while_a_node_streams(page):
    point, = page.recorded("response")
    assert point["errors"] == 0 and point["n"] > 100
    assert 0 < point["join_starts_s"][0] < point["join_ends_s"][0] < len(point["mean_ms_per_bin"])
    assert {"beginning_ms", "end_ms", "streaming_ms", "streaming_over_before", "swing", "shared_cores_busy"} <= set(point)
    assert 0 <= point["donor_disk_before"] < 2 and 0 <= point["most_disk_after"] < 2 and point["nodes_cpus_after"] > 0


def test_requests_to_the_disk_are_of_the_stream_and_of_gets(page):
    found = {point["load"]: point for point in page.recorded("disk")}
    assert "stream" in found["none"]["request_group"]
    # Gets bring so few data into memory before they are streamed, so it is gets that the disk sees.
    traces = {values_of(*point)["load"]: point[0].series(point[1], "requests")
              for point in (*page.points("size"), *page.points("disk"))}
    gets = {load: requests["thread"].astype(str).str.startswith("ReadStage").any()
            for load, requests in traces.items()}
    assert gets == {"none": False, "read": True}
    assert found["none"]["stream_read_mb"] == pytest.approx(SHARE * DATA_MB, rel=0.5)
    assert 0 < found["none"]["stream_sequential"] <= 1 and found["none"]["stream_stretch_kb"] > 0


def test_of_several_at_once_all_have_joined(page):
    found = {point["how"]: point for point in page.recorded("parallel")}
    assert set(found) == {"together", "one_after_another"}
    assert all(point["received_2_mb"] > 0 for point in found.values())


def test_the_streaming_threads_had_a_priority_of_their_own(page):
    point, = page.recorded("priority")
    assert point["io_classes"] == 2 and point["streaming_ms"] > 0


def test_nothing_is_lost_with_a_node_that_dies_or_leaves(page):
    (died,), (left,) = page.recorded("dying"), page.recorded("leaving")
    assert died["readable"] == left["readable"] == 1 and died["joined_again"] == 1
    assert died["errors"] == 0 and left["left_over_joined"] == pytest.approx(1, rel=0.2) and left["left_mb_per_s"] > 0


def test_each_claim_has_its_verdict_and_nothing_is_left(page, monkeypatch):
    page.assert_judged(monkeypatch)

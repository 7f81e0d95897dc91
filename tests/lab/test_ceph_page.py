"""The page of the metadata study as it is, over so few files that a point takes seconds: both tools
with one metadata server and with two, what they cache, the paper's crash with no spare, twice on one
cluster, and a recovery."""

import pytest
from tiny_page import TinyPage

STUDY = "ceph_mds"
PHASES = [f"{order}_{op}" for order in ("sequential", "random") for op in ("create", "stat", "delete")]
AGAIN = [f"{order}_reread" for order in ("sequential", "random")]      # by a fresh mount
TINY = {"cluster.osds": "memory", "files": 1024, "clients.numbers": [1],
        "rates.directories": [1], "rates.tools": ["bonnie", "remount"], "rates.repeats": 1,
        "cached.directories": 2, "crash.spares": [False], "crash.ranks": [1], "crash.directories": 4, "crash.files": 10,
        "crash.loads": ["idle", "load"], "recovery.how": ["mds_fail"],
        "crash.mount_s": 20.0, "crash.look_s": 16.0, "recovery.before_s": 4.0, "recovery.after_s": 3.0}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return TinyPage.of(STUDY, tmp_path_factory.mktemp("page")).run(TINY)


def test_both_tools_measure_the_rates_of_one_server_and_of_two(page):
    found = {(point["mds"], point["tool"]): point for point in page.recorded_arms("rates")}
    assert set(found) == {(mds, tool) for mds in (1, 2) for tool in ("bonnie", "remount")}
    for (_, tool), point in found.items():
        prefix = "by_clock_" if tool == "bonnie" else ""    # which has no hole where it was fast
        assert all(point[f"{prefix}{phase}_per_s"] > 0 for phase in PHASES)
        assert point["sequential_create_asked"] == pytest.approx(1, abs=0.3)
        assert point["ceph_version"] and point["fuse_version"]
        assert 0 < point["fuse_cpu_share"] and 0 < point["up_s"] and point["rested"] == 1
        assert 0 < point["sequential_create_mds_share"] and ("create_one_mds_share" in point) == (point["mds"] == 1)
        assert point["sequential_create_per_s_limited"] == 0 and point["sequential_create_clients_share"] > 0
    own = [point for (_, tool), point in found.items() if tool == "remount"]
    assert all(point["errors"] == point["blocked"] == 0 for point in own)
    assert all(point[f"{phase}_per_s"] > 0 for point in own for phase in AGAIN)
    # No client's cache answers: what was created was cached, and through a fresh mount each name is asked for.
    assert all(point["random_stat_asked"] < 0.1 < 0.7 < point["random_reread_asked"] for point in own)


def test_cached_metadata_are_recorded_through_the_phases(page):
    point, = page.recorded("cached")
    assert point["phase_name"] == PHASES and point["phase_from_s"][0] == 0
    assert set(point["cached_rank"]) == {0, 1} and max(point["cached_inodes"]) > 2000
    assert 0.4 < point["one_has_after_create"] <= 1 and point["sequential_over_random"] > 0


def test_after_a_crash_with_no_spare_every_name_is_accounted_for_and_is_right_in_the_end(page):
    points = {point["load"]: point for point in page.recorded("crash")}
    assert {point["crash_number"] for point in points.values()} == {1, 2}
    assert all(point["unexplained"] == 0 and point["came_back"] == point["right_again"] == 1
               for point in points.values())
    point = points["load"]
    verdicts = ("right", "wrong", "missing", "unobtainable")
    assert sum(point[f"survivor_{verdict}"] for verdict in (*verdicts, "unasked")) == point["names"]
    assert 0 < point["names_on_the_dead"] < point["names"] == 1 + 4 * (1 + 10 + 2)
    for who in ("", "survivor_", "fresh_"):
        assert sum(point[f"{who}outcome_{verdict}"] for verdict in verdicts) == 1
    # All of the living server's names are had and right, but for those that wait for the dead one.
    living = point["names"] - point["names_on_the_dead"]
    assert living == 1 + 2 * (1 + 10 + 2)
    assert point["survivor_unobtainable_living"] == point["survivor_unobtainable_held"]
    assert point["survivor_right_living"] == living - point["survivor_unobtainable_held"]
    assert point["rank_unserved"] == point["map_keeps_dead"] == 1 and point["unexplained"] == 0
    assert point["ways_seen"] == point["not_as_before"] == 0
    assert 0 < point["noticed_s"] <= point["map_updated_s"] + 1
    assert point["came_back"] == point["right_again"] == point["load_went_on"] == 1
    assert point["load_names"] > 0 == point["load_off"]
    assert point["second_client"] == 0      # which the second repeat has


def test_a_recovery_is_recorded_in_its_parts(page):
    point, = page.recorded("recovery")
    assert point["how"] == "mds_fail" and point["kept"] == point["kept_fresh"] == point["came_back"] == 1
    assert point["failed_calls"] == 0
    assert point["detection_s"] >= 0 and point["takeover_s"] > 0 and point["in_order"] == 1
    assert point["longest_blocked_s"] > 0
    assert point["rate_before"] > 0 and point["rate_after"] > 0


def test_each_claim_has_its_verdict_and_nothing_is_left(page, monkeypatch):
    page.assert_judged(monkeypatch)

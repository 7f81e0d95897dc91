"""Claims have the numbers that the paper prints, and its outcomes of a crash."""

import pandas as pd
import pytest

from labbook import paths
from labbook.claims import claims
from labbook.papers.ceph_mds import crash_outcomes


def test_the_metadata_papers_claims_have_the_numbers_that_it_prints():
    printed = pd.read_csv(paths.papers("ceph_mds") / "printed.csv").set_index("what")["value"]
    known = {claim["id"]: claim for claim in claims.load("ceph_mds")}
    low, high = 1 - printed["delete_less_most"] / 100, 1 - printed["delete_less_least"] / 100
    for name in ("delete-sequential-half", "delete-random-half"):
        rule = known[name]["rule"]
        assert (rule["of"], rule["than"]) == ({"mds": 2}, {"mds": 1})
        assert [rule["low"], rule["high"]] == pytest.approx([low, high])
    rule = known["read-random-ten-times"]["rule"]
    assert (rule["low"], rule["high"]) == (printed["read_random_least"], printed["read_random_most"])
    sixteen = known["create-sixteen-over-others"]
    assert sixteen["paper"]["high"] == 1 + printed["create_sixteen_more"] / 100 < sixteen["rule"]["high"]
    assert known["read-random-falls"]["paper"]["value"] == 1 - printed["read_random_falls"] / 100
    halves = (printed["random_from"] - printed["sequential_from"]) / (printed["random_to"] - printed["random_from"])
    assert known["sequential-half-longer"]["paper"]["value"] == round(halves, 2)
    files = printed["directories_middle"] * printed["files_a_directory"]
    assert printed["migrated"] / files > known["migration-at-once"]["rule"]["value"]


def test_no_large_difference_is_less_than_what_the_paper_calls_a_fall():
    printed = pd.read_csv(paths.papers("ceph_mds") / "printed.csv").set_index("what")["value"]
    fall = 1 - printed["read_random_falls"] / 100
    margins = [claim["rule"]["margin"] for claim in claims.load("ceph_mds")
               if claim["owner"] == "paper" and claim["rule"]["name"] == "equal_within"]
    assert len(margins) == 4 and all(1 / margin > fall for margin in margins)


def test_metadata_after_a_crash_are_judged_by_the_names_of_the_dead_server():
    known = {claim["id"]: claim for claim in claims.load("ceph_mds")}
    for outcome in ("right", "unobtainable"):
        claim = known[f"crash-{outcome}-sometimes"]
        assert claim["metric"] == f"survivor_{outcome}_dead" and claim["rule"]["where"] == {"spare": False}


def test_the_metadata_papers_four_ways_are_each_judged_as_it_had_no_spare():
    ways = {claim["metric"]: claim for claim in claims.load("ceph_mds") if "way to fail" in claim["statement"]}
    assert set(ways) == set(crash_outcomes.WAYS) and len(ways) == 4
    assert all(claim["rule"]["where"]["spare"] is False for claim in ways.values())

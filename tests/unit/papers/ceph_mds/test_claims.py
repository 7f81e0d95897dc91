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
    for name in ("create-sixteen-over-eight", "create-sixteen-over-twentyfour"):
        assert known[name]["paper"]["high"] == 1 + printed["create_sixteen_more"] / 100 < known[name]["rule"]["high"]
    assert known["read-random-falls"]["paper"]["value"] == 1 - printed["read_random_falls"] / 100
    halves = (printed["random_from"] - printed["sequential_from"]) / (printed["random_to"] - printed["random_from"])
    assert known["sequential-half-longer"]["paper"]["value"] == round(halves, 2)
    files = printed["directories_middle"] * printed["files_a_directory"]
    assert printed["migrated"] / files > known["migration-at-once"]["rule"]["value"]


def test_the_metadata_papers_four_ways_are_each_judged_as_it_had_no_spare():
    ways = {claim["metric"]: claim for claim in claims.load("ceph_mds") if "way to fail" in claim["statement"]}
    assert set(ways) == set(crash_outcomes.WAYS) and len(ways) == 4
    assert all(claim["rule"]["where"] == {"spare": False} for claim in ways.values())

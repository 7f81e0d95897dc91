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
    for name in ("delete-sequential-half", "delete-random-half", "own-delete-sequential-half"):
        rule = known[name]["rule"]
        assert (rule["of"], rule["than"]) == ({"mds": 2}, {"mds": 1})
        assert [rule["low"], rule["high"]] == pytest.approx([low, high])
    for name in ("read-random-ten-times", "own-read-random-ten-times"):
        rule = known[name]["rule"]
        assert (rule["low"], rule["high"]) == (printed["read_random_least"], printed["read_random_most"])
    for name in ("create-sixteen-over-eight", "create-sixteen-over-twentyfour"):
        assert known[name]["paper"]["high"] == 1 + printed["create_sixteen_more"] / 100 < known[name]["rule"]["high"]
    assert known["read-random-falls"]["paper"]["value"] == 1 - printed["read_random_falls"] / 100
    halves = (printed["random_from"] - printed["sequential_from"]) / (printed["random_to"] - printed["random_from"])
    assert known["sequential-half-longer"]["paper"]["value"] == round(halves, 2)
    files = printed["directories_middle"] * printed["files_a_directory"]
    assert printed["migrated"] / files > known["migration-at-once"]["rule"]["value"]


def test_what_bonnie_may_be_too_fast_to_tell_of_the_paper_the_other_clients_are_judged_by_too():
    known = {claim["id"]: claim for claim in claims.load("ceph_mds")}
    rates = {name: claim for name, claim in known.items() if claim["experiment"] == "rates"
             and claim["rule"].get("where", {}).get("tool") == "bonnie"}
    own = {name: known.get(f"own-{name}") for name in rates if name not in ("delete-sequential-slower",
                                                                            "delete-random-slower")}
    assert own and all(own.values()), own
    for name, claim in own.items():
        assert claim["rule"] == rates[name]["rule"] | {"where": {"tool": "own"}}
        assert claim["metric"] == rates[name]["metric"]


def test_the_metadata_papers_four_ways_are_each_judged_as_it_had_no_spare():
    ways = {claim["metric"]: claim for claim in claims.load("ceph_mds") if "way to fail" in claim["statement"]}
    assert set(ways) == set(crash_outcomes.WAYS) and len(ways) == 4
    assert all(claim["rule"]["where"] == {"spare": False} for claim in ways.values())

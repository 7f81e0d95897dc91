"""What is committed of each paper: whole, checked against the paper's own tables, all of it used."""

import re

import pandas as pd
import pytest
from papers_in_book import PAGES, PAPERS, judged

from labbook import paths
from labbook.checks import check, load_yaml
from labbook.claims import claims
from labbook.lab.description import LabDescription
from labbook.papers.ceph_mds import crash_outcomes
from labbook.pipeline import notebooks, parameters, run

TEXT = {"type": "string"}
PAPER = {
    "type": "object", "additionalProperties": False,
    "required": ["title", "authors", "year", "venue", "text", "link", "setup"],
    "properties": {
        "title": TEXT, "translation": TEXT, "affiliation": TEXT, "venue": TEXT, "text": TEXT,
        "names": {"type": "object", "additionalProperties": TEXT},  # value -> what figures call it
        "year": {"type": "integer"}, "link": {"type": ["string", "null"]},
        "authors": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["name"], "additionalProperties": False,
            "properties": {"name": TEXT, "romanised": TEXT}}},
        "setup": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["what", "paper", "ours", "matters", "source"],
            "additionalProperties": False,
            "properties": dict.fromkeys(["what", "paper", "ours", "matters", "source"], TEXT)}},
    },
}


@pytest.fixture(params=PAPERS)
def paper(request):
    return request.param


@pytest.fixture(params=PAGES)
def page(request):
    return request.param


def test_there_are_papers():
    assert "cms_scalability" in PAGES


def test_what_the_book_lists_has_a_page():
    assert set(notebooks.in_book()) <= set(PAGES)


def test_a_papers_facts_are_whole(paper):
    file = paths.papers(paper) / "paper.yml"
    check(load_yaml(file), PAPER, file)


def test_a_labs_description_is_one(paper):
    description = LabDescription.load(paths.papers(paper) / "lab.yml")
    assert {"quick", "full"} <= set(description.needs.get("minutes", {})), (
        f"{paper}/lab.yml: needs.minutes says how long the quick and the full profile take")


def test_the_papers_tables_say_where_they_stand(paper):
    for file in sorted(paths.papers(paper).glob("*.csv")):      # a paper may print no table
        table = pd.read_csv(file)
        assert "source" in table, f"{file}: no column `source` says where each row stands in the paper"
        assert table["source"].str.len().min() > 0, f"{file}: a row has no source"
        lacking = table.isna().any(axis=1)      # a cell that the paper leaves empty says so in `cell`
        assert (lacking == (table.get("cell", "printed") != "printed")).all(), (
            f"{file}: a cell is empty; a column `cell` has what the paper prints instead, else `printed`")


def test_the_full_profile_fits_the_notebooks_parameters(page):
    parameters.chosen(page, "full")


def test_the_published_runs_parameters_fit_the_notebooks(page):
    run.parameters_of(page, run.Asked(published=True))


def test_every_claim_is_judged_on_the_page(page):
    lacking = {claim["id"] for claim in claims.load(page)} ^ set(judged(page))
    assert not lacking, f"{paths.notebook(page)} judges each claim, by study.verdicts(section): {lacking}"


def test_a_reason_is_about_the_lab_and_not_about_the_calendar(paper):
    for claim in claims.load(paper):
        reason = claim["rule"].get("reason", "")
        assert not re.search(r"\b(later|yet|issue|soon|comes with|todo|future)\b", reason, re.I), reason


def test_the_elasticity_papers_minute_is_that_of_its_sleeps():
    printed = pd.read_csv(paths.papers("cassandra_elasticity") / "printed.csv").set_index("what")["value"]
    known = {claim["id"]: claim for claim in claims.load("cassandra_elasticity")}
    assert printed["sleeps"] * printed["sleep"] == printed["least_join"]
    for version in ("old", "new"):
        claim = known[f"no-join-below-60-{version}"]
        assert claim["rule"]["low"] == claim["paper"]["low"] == printed["least_join"]
    assert known["waits-are-two-delays-old"]["paper"]["value"] == printed["least_join"]
    assert known["smaller-read-ahead-helps"]["rule"]["of"] == {"read_ahead_kb": printed["read_ahead_default"]}


def test_what_the_elasticity_paper_explains_by_seeks_needs_a_disk_that_seeks():
    needs = {claim["id"]: {need["metric"] for need in claim.get("needs", ())}
             for claim in claims.load("cassandra_elasticity")}
    for name in ("reads-lengthen-over-none", "reads-lengthen-over-writes", "scheduler-changes-join",
                 "larger-read-ahead-no-help", "smaller-read-ahead-helps", "reads-slow-the-stream"):
        assert "seek_ratio" in needs[name], name
    for name in ("reads-cut-the-stream", "reads-shorten-the-stretches", "range-proportional-none"):
        assert not needs[name], name       # can be counted on any disk


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

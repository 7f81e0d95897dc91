"""What is committed of each paper: whole, checked against the paper's own tables, all of it used."""

import re

import pandas as pd
import pytest
from papers_in_book import PAGES, PAPERS, judged

from labbook import paths
from labbook.checks import check, load_yaml
from labbook.claims import claims
from labbook.lab.description import LabDescription
from labbook.pipeline.running import run
from labbook.pipeline.sources import notebooks, parameters

TEXT = {"type": "string"}
PAPER = {
    "type": "object", "additionalProperties": False,
    "required": ["title", "authors", "year", "venue", "text", "link", "setup"],
    "properties": {
        "title": TEXT, "translation": TEXT, "claim": TEXT, "claim_ja": TEXT, "affiliation": TEXT, "venue": TEXT, "text": TEXT,
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
        has_empty_cell = table.isna().any(axis=1)      # a cell that the paper leaves empty says so in `cell`
        assert (has_empty_cell == (table.get("cell", "printed") != "printed")).all(), (
            f"{file}: a cell is empty; a column `cell` has what the paper prints instead, else `printed`")


def test_the_full_profile_fits_the_notebooks_parameters(page):
    parameters.chosen(page, "full")


def test_the_published_runs_parameters_fit_the_notebooks(page):
    run.parameters_of(page, run.Options(published=True))


def test_every_claim_is_judged_on_the_page(page):
    differing = {claim["id"] for claim in claims.load(page)} ^ set(judged(page))
    assert not differing, f"{paths.notebook(page)} judges each claim, by study.verdicts(section): {differing}"


def test_a_reason_is_about_the_lab_and_not_about_the_calendar(paper):
    for claim in claims.load(paper):
        reason = claim["rule"].get("reason", "")
        assert not re.search(r"\b(later|yet|issue|soon|comes with|todo|future)\b", reason, re.I), reason

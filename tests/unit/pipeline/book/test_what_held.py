"""The page across the papers: numbers come from verdicts, and slips in findings.yml are named."""

import pytest

from labbook import paths
from labbook.claims import claims
from labbook.errors import InputError
from labbook.pipeline.book import what_held
from labbook.pipeline.sources import notebooks

ROW = {"study": "cms", "id": "faster", "statement": "A is faster than B & C.", "owner": "paper", "headline": True,
       "verdict": "not replicated", "measured": 0.5, "unit": "times", "low": 0.4, "high": 0.6, "level": 0.95,
       "n": 6, "conditions": {}, "from_set": None, "machines": {}}
LESSONS = """answer: "A took {faster} the time of B & C ({faster:verdict})."
lessons:
  - {kind: machine, title: Disks & seeks, text: "Here {faster}."}
"""


@pytest.fixture
def study(book):
    book.study("cms", "print(1)")
    return book


def test_texts_have_the_measured_value_and_the_verdict_of_their_claims(study):
    study.write("data/papers/cms/findings.yml", LESSONS)
    page = what_held.page({"cms": [ROW]})
    assert ('A took <a href="board.html#claim-cms-faster">0.5 times</a> the time of B &amp; C '
            '(<span class="verdict verdict-not-replicated">not replicated</span>).') in page
    assert f"### {what_held.KINDS['machine']}" in page and "<dt>Disks &amp; seeks</dt>" in page
    assert "Of the 1 that are decided, 0 held and 1 did not." in page and "published</span>" not in page


def test_what_a_run_here_did_not_measure_is_marked_as_published(study):
    study.write("data/papers/cms/findings.yml", LESSONS)
    page = what_held.page({"cms": [ROW | {"from_set": "intel"}]})
    assert page.count('0.5 times</a> <span class="lb-faint">published</span>') == 2
    assert page.count('<span class="lb-faint">published</span></li>') == 1       # of the claims that did not hold


def test_what_was_not_measured_is_reported_and_no_number(study):
    study.write("data/papers/cms/findings.yml", LESSONS)
    page = what_held.page({"cms": [ROW | {"verdict": "not run", "n": 0, "measured": None}]})
    assert "(not measured)</a>" in page and "Nothing is decided yet." in page


@pytest.mark.parametrize("verdicts, said", [
    (("open", "not run"), "Nothing is decided yet."),
    (("replicated", "open"), "All decided claims of the papers held."),
    (("replicated", "not replicated"), "1 claim</summary>")])
def test_what_held_is_said_of_what_is_decided(study, verdicts, said):
    ours = ROW | {"owner": "ours", "verdict": "replicated"}
    page = what_held.page({"cms": [*(ROW | {"verdict": verdict} for verdict in verdicts), ours]})
    assert said in page and ("Nothing is decided" in page) == ("Nothing is decided" in said)


@pytest.mark.parametrize("text, named", [
    ('answer: "{fastr}"\n', "did you mean 'faster'"),
    ("answer: x\nleson: []\n", "did you mean 'lessons'"),
    ("answer: x\nlessons: [{kind: luck, title: a, text: b}]\n", "design"),
])
def test_a_slip_names_the_file_and_what_is_allowed(study, text, named):
    study.write("data/papers/cms/findings.yml", text)
    with pytest.raises(InputError, match="findings.yml") as raised:
        what_held.page({"cms": [ROW]})
    assert named in str(raised.value)


def test_a_paper_without_findings_has_its_claim_and_bar(study):
    assert "1 claim" in what_held.page({"cms": [ROW]})


@pytest.mark.parametrize("name", [name for name in notebooks.in_book() if (paths.papers(name) / "findings.yml").is_file()])
def test_the_findings_of_each_paper_name_claims_that_it_has(name):
    rows = [ROW | {"study": name, "id": claim["id"]} for claim in claims.load(name)]
    found = what_held._findings(name)
    for text in (found["answer"], *(lesson["text"] for lesson in found["lessons"])):
        assert what_held._glued(name, rows, text)

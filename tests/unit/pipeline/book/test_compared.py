"""The page of what labbook is set beside, from made-up and from the committed rounds."""

import json
import re
from xml.etree import ElementTree

import pytest
import yaml
from labbook import paths
from labbook.pipeline.book import compared

ABOUT = {"what": "a `thing`", "other": "Other <1>", "unit": "s", "better": "less", "behind": "It does more."}
ROUNDS = {"machine": "AMD EPYC, 2 cores, Linux 6.18", "date": "2026-11-25", "versions": {"other": "2.3"}}


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A checkout with one benchmark of one row; gives a function that writes its rounds."""
    folder = tmp_path / "data" / "benchmarks"
    folder.mkdir(parents=True)
    described = {"one": {"title": "One", "minutes": 1, "text": "Text.", "rows": {"row": ABOUT}}}
    (folder / "rows.yml").write_text(yaml.safe_dump(described))
    monkeypatch.setattr(paths, "checkout", lambda: tmp_path)
    return lambda row: (folder / "one.json").write_text(json.dumps({"rows": {"row": row}}))


def test_a_ratio_is_above_one_where_labbook_is_ahead():
    faster = compared.row_of(ABOUT, {**ROUNDS, "rounds": [[1, 2], [1, 3], [2, 2]]})
    assert (faster.ratio, faster.low, faster.high, faster.rounds) == (2, 1, 3, 3)
    assert compared.row_of({**ABOUT, "better": "more"}, {"rounds": [[10, 5]]}).ratio == 2
    assert compared.row_of({**ABOUT, "better": "equal"}, {"rounds": [[9.5, 10]]}).ratio == 0.95


def test_only_what_is_certain_counts_as_behind():
    def row(rounds, better="less"):
        return compared.row_of({**ABOUT, "better": better}, {"rounds": rounds})

    assert row([[2, 1], [3, 1]]).is_behind
    assert not row([[2, 1], [1, 3]]).is_behind
    assert not row([[2, 1], [2, 1], [1, 3]]).is_behind and row([[2, 1], [2, 1], [1, 3]]).seems_behind
    assert not row([[1, 2], [3, 4]]).seems_behind and not row([[100.2, 100]], "equal").seems_behind
    assert row([[95, 100], [96, 100]], "equal").is_behind
    assert not row([[100.2, 100], [101.5, 100]], "equal").is_behind
    assert not compared.row_of(ABOUT, {"absent": "no other here"}).is_behind


def test_the_summary_counts_who_is_ahead_for_certain_and_what_the_rounds_leave_open():
    ahead, behind, neither, far_ahead = ([[1, 2], [1, 3]], [[2, 1], [3, 1]], [[2, 1], [1, 3]], [[1, 9]])
    rows = [compared.row_of(ABOUT, {"rounds": rounds}) for rounds in (ahead, behind, neither, far_ahead)]
    left_out = [compared.row_of({**ABOUT, "better": "equal"}, {"rounds": [[9, 10]]}), compared.row_of(ABOUT, {})]
    assert ("Of 4 comparisons that were measured, labbook is ahead in 2, behind in 1, and in 1 the rounds say neither."
            in compared.summary(rows + left_out))


def test_the_page_has_figures_versions_and_why_it_is_behind(book):
    book({**ROUNDS, "rounds": [[2, 1], [4, 1]]})
    page = compared.page()
    assert "a <code>thing</code>" in page and "Other &lt;1&gt;" in page and "other 2.3" in page
    assert "0.375 (0.25 to 0.5)" in page and "0.375 times as good. It does more." in page
    assert "behind in 1" in page and "<svg" in page and "2 rounds, AMD EPYC, 2 cores, Linux 6.18, 2026-11-25" in page


def test_a_summary_stands_for_rounds_that_are_gone(book):
    book({**ROUNDS, "summary": {"labbook": 0.05, "other": 1, "ratio": 20, "low": 19, "high": 21, "rounds": 6}})
    assert "50 ms" in compared.page() and "20 (19 to 21)" in compared.page() and "It does more" not in compared.page()


def test_a_row_that_was_not_measured_says_why(book):
    assert "not measured yet" in compared.page()
    book({"absent": "no `cargo` here"})
    page = compared.page()
    assert "not measured, no <code>cargo</code> here" in page and "<svg" not in page


def test_a_book_without_benchmarks_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "checkout", lambda: tmp_path)
    assert compared.page() == "No benchmarks yet.\n"


def test_marks_lie_within_the_figure():
    rows = [compared.row_of(ABOUT, {"rounds": [[1, ratio]]}) for ratio in (0.02, 1, 500)]
    places = [float(x) for x in re.findall(r'cx="([^"]+)"', compared.figure(rows))]
    assert places == sorted(places) and compared.LABELS < places[0] and places[-1] < compared.WIDTH


def test_on_a_phone_the_figure_scrolls_and_its_letters_stay_large_enough():
    """They had shrunk with the page, to 5 px."""
    drawn = ElementTree.fromstring(compared.figure([compared.row_of(ABOUT, {"rounds": [[1, 2]]})]))
    svg = drawn.find("div[@class='labbook-scroll'][@tabindex='0']/svg")
    style = dict(one.split(":") for one in svg.get("style").split(";"))
    narrowest = int(style["min-width"].removesuffix("px")) / int(svg.get("viewBox").split()[2])
    assert narrowest * int(style["font-size"].removesuffix("px")) >= 11
    assert drawn.find("figcaption") is not None


def test_committed_rows_say_why_labbook_is_behind():
    missing = [(name, row.what, row.against) for name, (_, rows) in compared.read().items() for row in rows
               if row.is_behind and not row.behind]
    assert not missing


def test_committed_rounds_are_of_rows_that_are_described():
    folder = paths.checkout() / "data" / "benchmarks"
    described = yaml.safe_load((folder / "rows.yml").read_text())
    for file in folder.glob("*.json"):
        for row, measured in json.loads(file.read_text())["rows"].items():
            assert row in described[file.stem]["rows"], (file.name, row)
            assert measured.keys() & {"rounds", "summary", "absent"}, (file.name, row)

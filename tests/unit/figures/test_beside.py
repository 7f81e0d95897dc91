"""Tables of what is printed beside what was measured, and of what works and fails."""

import pandas as pd
import pytest

from labbook import figures


@pytest.fixture(autouse=True)
def names(tmp_path):
    paper = tmp_path / "names.yml"
    paper.write_text("names: {older: old, newer: new, reboot: reboot servers, quota: tell the quota}\n")
    figures.use_names(paper)


PRINTED = pd.DataFrame([
    dict(release="older", size=2, seconds=106, cell="printed"),
    dict(release="older", size=20, seconds=None, cell="* in the table"),
    dict(release="newer", size=2, seconds=131, cell="printed"),
    dict(release="newer", size=20, seconds=2160, cell="printed")])
BY = dict(by={"size": "Size, GB"}, arm="release", metric="seconds", unit="s", label="times")


def measured(*sizes):
    return pd.DataFrame([dict(release=release, size=size, repeat=i, seconds=size * i)
                         for release in ("older", "newer") for size in sizes for i in (1, 2, 3)])


def test_printed_and_measured_stand_in_one_row_and_missing_cells_as_the_paper_marks_them():
    table = figures.paper_vs_measured(PRINTED, measured(0.5, 2), **BY)
    assert table.columns == ("Size, GB", "old, paper, s", "old, here, s", "new, paper, s", "new, here, s")
    assert table.rows == (("0.5", "", "1.00 (0.500 to 1.50)", "", "1.00 (0.500 to 1.50)"),
                          ("2", "106", "4.00 (2.00 to 6.00)", "131", "4.00 (2.00 to 6.00)"),
                          ("20", "*", "", "2,160", ""))


@pytest.mark.parametrize("summary", [measured(1).iloc[:0], pd.DataFrame()])
def test_where_nothing_was_measured_what_is_printed_stands_alone(summary):
    assert figures.paper_vs_measured(PRINTED, summary, **BY).rows[1] == ("20", "*", "", "2,160", "")


def test_what_fails_is_told_with_all_that_was_seen_of_it():
    frame = pd.DataFrame([
        dict(function="reboot", release="newer", works=works, evidence=seen)
        for works, seen in ((1.0, "3 of 3"), (0.0, "1 of 3"), (0.0, "2 of 3"))]
        + [dict(function="reboot", release="older", works=1.0, evidence="3 of 3"),
           dict(function="quota", release="older", works=0.0, evidence="refused")])
    table = figures.evidence_table(frame, by="function", col="release", label="functions", head="Function")
    assert table.columns == ("Function", "old", "new")
    assert table.rows == (
        ("reboot servers", "works, 1 of 1: 3 of 3", "fails at times, 1 of 3: 1 of 3; 2 of 3"),
        ("tell the quota", "fails, 0 of 1: refused", "–"))
    nothing = figures.evidence_table(frame.iloc[:0], by="function", col="release", label="f", head="Function")
    assert nothing.rows == (("Not measured in this profile.", "–"),)

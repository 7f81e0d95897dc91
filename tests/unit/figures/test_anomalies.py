"""The table of anomalies sums over runs, and leaves out those that were not checked."""

import pandas as pd
import pytest

from labbook import figures
from labbook.figures.anomalies import COUNTS
from labbook.workloads.histories.calls import metrics


@pytest.fixture(autouse=True)
def names(tmp_path):
    paper = tmp_path / "names.yml"
    paper.write_text("title: a\nnames: {ONE: one copy, ALL: all copies}\n")
    figures.use_names(paper)


def runs(*levels, **metrics):
    return pd.DataFrame([{"level": level, "repeat": i, **dict.fromkeys(COUNTS, 1.0), **metrics}
                         for level in levels for i in (1, 2)])


def table(summary):
    return figures.anomaly_table(summary, by={"level": "Level"}, label="anomalies")


def test_a_setting_has_the_sums_of_its_runs():
    found = table(pd.concat([runs("ONE", stale_reads=3.0), runs("ALL")]))
    assert found.columns[:3] == ("Level", "Runs", "Calls checked") and len(found.columns) == 2 + len(COUNTS)
    assert found.rows == (("one copy", "2", "2", "2", "2", "6", "2", "2", "2"),
                          ("all copies", "2", "2", "2", "2", "2", "2", "2", "2"))


def test_runs_without_a_history_do_not_count():
    unchecked = runs("ONE")[["level", "repeat"]]
    assert table(unchecked).rows[0][0] == "Not measured in this profile."
    assert table(pd.concat([unchecked, runs("ONE")])).rows[0][1] == "2"
    assert table(pd.DataFrame()).rows[0][1] == "–"


def test_the_metrics_are_those_of_histories():
    assert set(COUNTS) <= set(metrics([]))

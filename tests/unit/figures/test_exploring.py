"""The chart of study.explore(): any metric over any parameter."""

import pandas as pd
import pytest

from labbook.figures.exploring import chart

ROWS = pd.DataFrame([{"clients": clients, "store": store, "sync": sync, "repeat": repeat, "mean_ms": clients + repeat}
                     for clients in (1, 10, 20) for store in ("a", None) for sync in (True, False) for repeat in (1, 2)])


@pytest.mark.parametrize("x, hue, kind, expected", [
    ("clients", "store", "Line chart", "None: 2.5"),
    ("clients", None, "Line chart", "all points: 2.5"),
    ("clients", "sync", "Line chart", "True: 2.5"),
    ("store", "clients", "Dot chart", "None, 10: 11.5"),
    ("sync", None, "Dot chart", "False, all points"),
])
def test_over_numbers_lines_over_others_dots(x, hue, kind, expected):
    text = repr(chart(ROWS, x, hue, "mean_ms"))
    assert text.startswith(kind) and expected in text


def test_a_metric_that_the_points_lack_draws_nothing():
    assert "Not measured" in chart(ROWS.assign(other=float("nan")), "clients", None, "other")._repr_html_()


def test_points_that_have_no_place_on_the_axis_are_counted():
    found = ROWS.assign(clients=ROWS.clients.where(ROWS.index > 1))
    assert "2 points without clients: left out." in chart(found, "clients", "store", "mean_ms").caption
    assert "left out" not in chart(ROWS, "clients", "store", "mean_ms").caption
    lacking = found.assign(mean_ms=found.mean_ms.where(found.index > 0))
    assert "1 point without clients: left out." in chart(lacking, "clients", "store", "mean_ms").caption

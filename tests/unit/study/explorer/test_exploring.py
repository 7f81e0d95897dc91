"""What study.explore() offers and shows."""

import builtins

import pytest

from labbook import figures
from labbook.study.explorer import exploring

GRID = {"setup": {"system": ["a", "b"]}, "vary": {"clients": [1, 2, 30], "sync": [True, None]}}


@pytest.fixture
def study(make, measure):
    study, speed = make(repeats=2, **GRID)
    measure(study, speed, lambda point: 0.01 * point.clients, metrics={"outcome": "right"})
    study.experiment("empty", vary={"clients": [1]}, repeats=0)
    return study


@pytest.fixture
def explorer(study):
    widgets = pytest.importorskip("ipywidgets")
    return exploring.Explorer(study, exploring.measured(study), widgets)


def test_what_varies_and_which_numbers_there_are(study):
    found = exploring.measured(study)
    assert list(found) == ["speed"]
    assert found["speed"].varies == {"system": ["a", "b"], "clients": [1, 2, 30], "sync": [None, True]}
    assert found["speed"].metrics[:2] == ["mean_ms", "rate_per_s"] and "outcome" not in found["speed"].metrics
    assert (found["speed"].x(), found["speed"].hue("clients")) == ("clients", "system")


def test_without_widgets_it_is_a_table(study, monkeypatch):
    real = builtins.__import__

    def without(name, *more, **named):
        if name == "ipywidgets":
            raise ImportError(name)
        return real(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    found = study.explore()
    assert repr(found).startswith("speed: 24 rows; system a, b; clients 1, 2, 30; sync None, True; metrics: mean_ms")
    assert '<th scope="row">speed</th><td data-label="Rows">24</td>' in found._repr_html_()


def test_without_measurements_it_says_so(make):
    study, _ = make()
    assert repr(study.explore()) == "nothing is measured yet" and "Nothing" in study.explore()._repr_html_()


def test_dropdowns_offer_what_the_experiment_has(explorer):
    assert (explorer.x.value, explorer.hue.value, explorer.metric.value) == ("clients", "system", "mean_ms")
    where, = explorer.where.children
    assert (where.description, [label for label, _ in where.options]) == ("sync", ["all", "None", "True"])
    explorer.hue.value = "sync"
    assert [one.description for one in explorer.where.children] == ["system"]


def test_rows_are_those_that_are_chosen(explorer):
    assert len(explorer.rows()) == 24
    explorer.where.children[0].value = 1
    assert len(explorer.rows()) == 12 and explorer.rows()["sync"].isna().all()
    explorer.where.children[0].value = 2
    assert len(explorer.rows()) == 12 and set(explorer.rows()["sync"]) == {True}


def test_the_line_below_reads_the_raw_rows(explorer, study):
    line = explorer._raw(explorer.rows())
    assert line.startswith("The raw rows of the first: study.experiments['speed'].rows(system='")
    assert len(eval(line.partition(": ")[2])) == 10


def test_a_figure_and_rows_are_shown(explorer, monkeypatch):
    displayed, show = [], type(explorer.shown).append_display_data
    monkeypatch.setattr(type(explorer.shown), "append_display_data",
                        lambda self, one: displayed.append(one) or show(self, one))
    explorer.metric.value = "rate_per_s"
    picture, rows = displayed
    assert "value of rate_per_s over clients" in repr(picture)
    assert list(rows) == ["system", "clients", "sync", "repeat", "rate_per_s"]
    assert [one["output_type"] for one in explorer.shown.outputs] == ["display_data", "display_data", "stream"]


def test_no_output_of_the_cell_is_captured_while_a_figure_is_drawn(explorer, monkeypatch):
    """An answer of nbclient's to what is captured may hide the end of the cell from it."""
    monkeypatch.setattr(type(explorer.shown), "__enter__", lambda self: pytest.fail("captured"))
    explorer.metric.value = "rate_per_s"


def test_figures_draws_for_it():
    assert exploring.chart is figures.exploring.chart

"""A point's rows in a few numbers: operations, and the steps that they are made of."""

import math

import numpy as np
import pandas as pd
import pytest

from labbook.errors import InputError
from labbook.study.summary import summarise

CALLS = [("", 0.0, 0.4, True), ("first", 0.0, 0.1, True), ("second", 0.1, 0.3, True),
         ("", 0.4, 0.6, True), ("first", 0.4, 0.2, True), ("second", 0.6, 0.4, True),
         ("", 1.0, 1.0, False), ("first", 1.0, 0.3, True), ("second", 1.3, 0.7, False)]
COLUMNS = ["step", "started_s", "seconds", "ok"]


@pytest.fixture(params=["object", "category"])
def rows(request):
    return pd.DataFrame(CALLS, columns=COLUMNS).astype({"step": request.param})


def test_steps_are_no_operations(rows):
    with_steps = summarise(rows)
    steps = {name: with_steps.pop(name) for name in ("mean_first_ms", "mean_second_ms")}
    assert with_steps == summarise(rows[rows.step == ""].drop(columns="step"))
    assert with_steps["n"] == 3 and with_steps["errors"] == 1
    assert with_steps["rate_per_s"] == 1 and with_steps["mean_ms"] == pytest.approx(500)
    assert steps == pytest.approx({"mean_first_ms": 200, "mean_second_ms": 350})  # those that came out


def test_a_step_that_never_came_out_has_no_mean(rows):
    found = summarise(rows.assign(ok=rows.ok & (rows.step != "second")))
    assert "mean_second_ms" not in found and found["mean_first_ms"] == pytest.approx(200)


def test_rows_whose_step_is_not_given_are_operations():
    rows = pd.DataFrame(CALLS, columns=COLUMNS).assign(step=None)
    assert summarise(rows) == summarise(rows.drop(columns="step"))
    assert summarise(rows)["n"] == 9


def test_steps_without_times_are_left_out():
    assert summarise(pd.DataFrame({"step": ["", "a", ""]})) == {"n": 2}
    nothing = summarise(pd.DataFrame({"step": [], "seconds": [], "ok": []}))
    assert nothing == {"n": 0, "errors": 0}
    assert not any(math.isnan(v) for v in nothing.values())


@pytest.mark.parametrize("ok", [[1.0, math.nan], [True, None], [None, None]])
@pytest.mark.parametrize("step", ["", "first"])
def test_a_row_that_does_not_say_whether_it_came_out_is_refused(ok, step):
    rows = pd.DataFrame({"step": step, "seconds": [1.0, 2.0], "ok": ok})
    with pytest.raises(InputError, match="ok: . of 2 rows do not say whether the operation came out .allowed: true or false"):
        summarise(rows)


def test_the_quantiles_are_those_of_their_names():
    """Of 1 to 1000 ms, by linear interpolation."""
    found = summarise(pd.DataFrame({"seconds": np.arange(1, 1001) / 1000, "ok": True}))
    assert found["p50_ms"] == pytest.approx(500.5)
    assert found["p95_ms"] == pytest.approx(950.05) and found["p99_ms"] == pytest.approx(990.01)
    assert (found["mean_ms"], found["max_ms"]) == (pytest.approx(500.5), pytest.approx(1000))

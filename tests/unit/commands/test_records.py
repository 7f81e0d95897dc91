"""labbook rows: raw rows as CSV, and what there is."""

import csv
import io

import pandas as pd
import pytest

from labbook import cli


@pytest.fixture
def recorded(make, root):
    """A study with records, and a notebook that the command line finds."""
    (root / "notebooks" / "demo.ipynb").write_text('{"nbformat": 4, "cells": []}')
    study, speed = make(repeats=2)
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.record([{"seconds": 0.5, "ok": True}] * point.clients,
                           series={"disk": pd.DataFrame({"at": [3]})})


def told(capsys, *words, code=0):
    assert cli.main(["rows", *words]) == code
    out = capsys.readouterr()
    return out.err if code else out.out


def test_one_points_rows_are_csv(recorded, capsys):
    rows = list(csv.DictReader(io.StringIO(told(capsys, "demo", "speed", "system=a", "clients=2", "repeat=1"))))
    assert rows == [{"seconds": "0.5", "ok": "True"}] * 2


def test_several_points_have_columns_of_what_differs(recorded, capsys):
    rows = list(csv.DictReader(io.StringIO(told(capsys, "demo", "speed", "clients=1"))))
    assert [(row["system"], row["repeat"]) for row in rows] == [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]
    assert list(rows[0]) == ["system", "repeat", "seconds", "ok"]
    assert len(told(capsys, "demo", "speed", "--series", "disk").splitlines()) == 9


def test_a_list_tells_what_is_recorded(recorded, capsys):
    everything = told(capsys, "demo")
    assert everything == told(capsys, "demo", "speed", "--list")
    assert everything.splitlines() == ["speed: 8 points", "  system: a, b", "  clients: 1, 2", "  repeat: 1, 2",
                                       "  series: disk"]


@pytest.mark.parametrize("words, said", [
    (["demo", "sped"], "did you mean 'speed'"),
    (["demo", "speed", "client=1"], "did you mean 'clients'"),
    (["demo", "speed", "clients=7"], "clients: none of 8 recorded points has 7 (allowed: 1, 2)"),
    (["demo", "speed", "clients"], "'clients' names no value (allowed: NAME=VALUE, such as clients=90)"),
    (["demo", "speed", "--series", "disc"], "did you mean 'disk'"),
    (["demo", "speed", "clients=1", "--list"], "without NAME=VALUE"),
    (["dem"], "did you mean 'demo'"),
])
def test_slips_are_named(recorded, capsys, words, said):
    assert said in told(capsys, *words, code=2)


def test_without_records_it_says_how_to_get_some(root, capsys):
    (root / "notebooks" / "demo.ipynb").write_text('{"nbformat": 4, "cells": []}')
    assert "Type: labbook run demo" in told(capsys, "demo", code=2)

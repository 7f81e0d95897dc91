"""labbook rows: raw rows as CSV, and what there is. labbook show: into which file."""

import csv
import errno
import io
import os
import subprocess

import pandas as pd
import pytest
import yaml

from labbook import cli
from labbook.figures import point_series
from labbook.study.explorer import showing
from labbook.study.records import provenance


@pytest.fixture
def recorded(make, root):
    """A study with records, and a notebook that the command line finds."""
    (root / "notebooks" / "demo.ipynb").write_text('{"nbformat": 4, "cells": []}')
    study, speed = make(repeats=2)
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.record([{"seconds": 0.5, "ok": True}] * point.clients,
                           series={"disk": pd.DataFrame({"at": [3]})})


def printed(capsys, *args, code=0):
    assert cli.main(["rows", *args]) == code
    out = capsys.readouterr()
    return out.err if code else out.out


def test_one_points_rows_are_csv(recorded, capsys):
    rows = list(csv.DictReader(io.StringIO(printed(capsys, "demo", "speed", "system=a", "clients=2", "repeat=1"))))
    assert rows == [{"seconds": "0.5", "ok": "True"}] * 2


def test_several_points_have_columns_of_what_differs(recorded, capsys):
    rows = list(csv.DictReader(io.StringIO(printed(capsys, "demo", "speed", "clients=1"))))
    assert [(row["system"], row["repeat"]) for row in rows] == [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]
    assert list(rows[0]) == ["system", "repeat", "seconds", "ok"]
    assert len(printed(capsys, "demo", "speed", "--series", "disk").splitlines()) == 9


def test_a_list_tells_what_is_recorded(recorded, capsys):
    everything = printed(capsys, "demo")
    assert everything == printed(capsys, "demo", "speed", "--list")
    assert everything.splitlines() == ["speed: 8 points", "  system: a, b", "  clients: 1, 2", "  repeat: 1, 2",
                                       "  series: disk"]


@pytest.mark.parametrize("args, message", [
    (["demo", "sped"], "did you mean 'speed'"),
    (["demo", "speed", "client=1"], "did you mean 'clients'"),
    (["demo", "speed", "clients=7"], "clients: none of 8 recorded points has 7 (allowed: 1, 2)"),
    (["demo", "speed", "clients"], "'clients' names no value (allowed: NAME=VALUE, such as clients=90)"),
    (["demo", "speed", "--series", "disc"], "did you mean 'disk'"),
    (["demo", "speed", "clients=1", "--list"], "without NAME=VALUE"),
    (["demo", "speed", "clients=1", "clients=2"], "clients is given twice"),
    (["dem"], "did you mean 'demo'"),
])
def test_slips_are_named(recorded, capsys, args, message):
    assert message in printed(capsys, *args, code=2)


def test_what_a_fleet_has_measured_is_found_by_its_name_or_its_file(recorded, root, tmp_path, capsys):
    here = printed(capsys, "demo")
    records = root / "data/records"
    (records / provenance.machine_id()).rename(records / "fleet-rack")
    assert "labbook run demo (allowed: --fleet rack)" in printed(capsys, "demo", code=2)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    (tmp_path / "known").touch()
    (root / "environments/pool.yml").write_text(yaml.safe_dump({
        "name": "rack", "user": "op", "key": str(tmp_path / "key"), "known_hosts": str(tmp_path / "known"),
        "checkout": "/home/op/labbook", "machines": {"one": {"address": "192.0.2.11"}}}))
    for name in ("rack", "environments/pool.yml"):
        assert printed(capsys, "demo", "--fleet", name) == here
    output = printed(capsys, "demo", "speed", "clients=2", "repeat=1", "system=a", "--fleet", "rack")
    assert len(output.splitlines()) == 3
    assert "no such fleet file" in printed(capsys, "demo", "--fleet", "rock", code=2)


def test_what_a_cluster_has_measured_is_found_by_its_profile(recorded, root, capsys):
    here = printed(capsys, "demo")
    records = root / "data/records"
    (records / provenance.machine_id()).rename(records / "cluster-slurm")
    assert printed(capsys, "demo", "--cluster", "slurm") == here
    assert "nothing is recorded of cluster-other" in (error := printed(capsys, "demo", "--cluster", "other", code=2))
    assert "allowed: --cluster slurm" in error


def test_without_records_it_says_how_to_get_some(root, capsys):
    (root / "notebooks" / "demo.ipynb").write_text('{"nbformat": 4, "cells": []}')
    assert "Type: labbook run demo" in printed(capsys, "demo", code=2)


@pytest.fixture
def drawn(recorded, monkeypatch):
    """What is shown of any point, without its series."""
    monkeypatch.setattr(showing, "show", lambda records, meta: meta["label"])
    monkeypatch.setattr(point_series, "page", lambda view: f"<p>{view}</p>")


POINT = ["show", "demo", "speed", "system=a", "clients=2", "repeat=1"]


def test_an_environment_is_found_from_the_working_folder_as_a_run_finds_it(drawn, root, monkeypatch, capsys):
    (root / "environments/mine.yml").write_text("provider: namespaces\n")
    monkeypatch.chdir(root / "environments")
    assert printed(capsys, "demo", "--environment", "mine.yml") == printed(capsys, "demo")
    assert cli.main([*POINT, "--environment", "mine.yml"]) == 0
    assert "no such environment file" in printed(capsys, "demo", "--environment", "other.yml", code=2)


def test_a_point_is_drawn_into_the_file_that_is_named(drawn, tmp_path, capsys):
    file = tmp_path / "made/point.html"
    assert cli.main([*POINT, "-o", str(file)]) == 0
    assert file.read_text().startswith("<p>") and str(file) in capsys.readouterr().out
    (link := tmp_path / "link.html").symlink_to(file)
    file.write_text("before")
    assert cli.main([*POINT, "-o", str(link)]) == 0 and link.is_symlink() and file.read_text().startswith("<p>")


@pytest.mark.parametrize("name", ["", "/dev/null"])
def test_what_is_no_file_is_refused_before_anything_is_read(drawn, tmp_path, monkeypatch, capsys, name):
    monkeypatch.setattr(showing, "show", lambda *_: pytest.fail("read"))
    assert cli.main([*POINT, "-o", name or str(tmp_path)]) == 2
    assert "exists and is no regular file (allowed: a file" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(drawn, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (file := tmp_path / "point.html").write_text("before")
    monkeypatch.setattr(os, "fsync", fail)
    assert cli.main([*POINT, "-o", str(file)]) == 1
    assert file.read_text() == "before" and [one.name for one in tmp_path.glob("*.html")] == ["point.html"]

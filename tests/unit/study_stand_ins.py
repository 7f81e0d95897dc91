"""Stand-ins for a lab and a checkout, for the tests of the study library."""

import json
import os
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from labbook import paths
from labbook.errors import LabError
from labbook.study.records.fingerprint import fingerprint
from labbook.study.study import Study

CLAIMS = [{
    "id": "slower", "section": "speed", "statement": "a is <slower> than b", "source": "table 1",
    "paper": {"value": 2.0, "unit": "times"}, "experiment": "speed", "metric": "mean_ms",
    "rule": {"name": "greater", "of": {"system": "a"}, "than": {"system": "b"}, "margin": 1.05},
}]


class FakeLab:
    """Counts what is done with it."""

    def __init__(self):
        self.downs, self.checks, self.short, self.full, self.broken = 0, 0, [], [], []
        self.frozen, self.freezes, self.hosts, self.awake = False, True, {}, None

    def check_links(self):
        self.checks += 1
        return [{"asked_rtt_ms": 100, "measured_rtt_ms": 101}]

    def short_of_memory(self):
        return self.short

    def short_of_space(self):
        return self.full

    def broken_disks(self):
        return self.broken

    @contextmanager
    def only(self, *awake):
        if not self.freezes:
            raise LabError("a process does not stop")
        self.frozen, self.awake = True, awake
        try:
            yield
        finally:
            self.frozen = False

    def facts(self):
        return {"hosts": {"server": {"cores": [0]}}}

    def down(self):
        self.downs += 1


class Labs:
    """A factory: the labs it has brought up, the newest last."""

    def __init__(self):
        self.made, self.errors = [], []

    def __call__(self, lab_yml, environment):
        if self.errors:
            raise self.errors.pop(0)
        self.made.append(FakeLab())
        return self.made[-1]


def checkout(root: Path, study="demo", claims=CLAIMS) -> Path:
    """A book with one study, without records."""
    folder = root / "data" / "papers" / study
    for new in (folder, root / "notebooks", root / "environments"):
        new.mkdir(parents=True, exist_ok=True)
    (root / "_toc.yml").touch()
    (root / "environments" / "local.yml").write_text("provider: namespaces\n")
    (folder / "lab.yml").write_text("sites: [lan]\nhosts: {server: {site: lan, role: db}}\n")
    (folder / "claims.yml").write_text(yaml.safe_dump(claims, sort_keys=False))
    notebook(root, study, "import labbook.lab")
    return root


def notebook(root: Path, study: str, *cells: str) -> None:
    """With no parameters."""
    found = [{"cell_type": "code", "metadata": {}, "source": c.splitlines(True)} for c in cells]
    found.insert(0, {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": []})
    (root / "notebooks" / f"{study}.ipynb").write_text(json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": found}))


def operations(count=10, seconds=0.01):
    """Rows of a workload, one failed."""
    return [{"started_s": i * seconds, "seconds": seconds, "ok": i > 0, "error": None}
            for i in range(count)]


_FOUND = {}


def known_fingerprint(study: str):
    """The fingerprint, which is computed once a process for each notebook and lab: a test of studies edits nothing else
    that it is made of."""
    files = (paths.notebook(study), paths.papers(study) / "lab.yml")
    key = (study, *(file.read_bytes() if file.is_file() else b"" for file in files))
    if key not in _FOUND:
        _FOUND[key] = fingerprint(study)
    return _FOUND[key]


MODES = ("PUBLISHED", "PLAN", "UNTIL", "REMEASURE", "PROGRESS", "PROFILE", "ASK")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_ROOT", str(tmp_path))
    monkeypatch.delenv("LABBOOK_RECORDS", raising=False)
    for name in MODES:
        monkeypatch.delenv(f"LABBOOK_{name}", raising=False)
    monkeypatch.setattr("labbook.study.noise.reference_loop", lambda: 1.0)  # a busy machine is no subject
    monkeypatch.setattr("labbook.study.study.fingerprint", known_fingerprint)
    monkeypatch.setattr(os, "fsync", lambda _: None)    # no test here pulls the plug
    return checkout(tmp_path)


@pytest.fixture
def labs():
    return Labs()


@pytest.fixture
def make(root, labs):
    """Make a study and its experiment, as a fresh process would."""
    made = []

    def study(repeats=1, claims=None, **grid):
        if claims is not None:
            checkout(root, claims=claims)
        made.append(Study("demo", bring_up=labs))
        grid = grid or {"setup": {"system": ["a", "b"]}, "vary": {"clients": [1, 2]}}
        return made[-1], made[-1].experiment("speed", **grid, repeats=repeats)

    yield study
    for one in made:
        one.close()


@pytest.fixture
def measure():
    """Measure what remains; `seconds(point)` is the time of an operation of a point."""
    def run(study, experiment, seconds=lambda point: 0.01, **recorded):
        points = []
        for point in experiment.remaining():
            points.append(point)
            with study.attempt(point) as attempt:
                assert attempt.lab
                attempt.record(operations(seconds=seconds(point)), **recorded)
        return points

    return run


def failing(study, speed, fails, error):
    """Measure; attempts number `fails` (from 0) end in `error`. The points in their order."""
    tried = []
    for point in speed.remaining():
        tried.append(point)
        with study.attempt(point) as attempt:
            assert attempt.lab
            if len(tried) - 1 in fails:
                raise error
            attempt.record([])
    return tried

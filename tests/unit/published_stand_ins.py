"""A full run, and two published sets of it as of two kinds of machine, for the tests of publishing."""

import pytest

from labbook.pipeline.publishing import publish
from labbook.study.publication import machine_kind
from labbook.study.records import provenance

HERE = machine_kind.slug(machine_kind.kind(provenance.machine()))
OTHER = "other-8-cores-linux-5.4"


@pytest.fixture(name="full")
def full_run(make, measure, monkeypatch):
    """A complete full run, and beside it points of another profile."""
    monkeypatch.setenv("LABBOOK_PROFILE", "quick")
    study, speed = make()
    measure(study, speed)
    study.complete()
    monkeypatch.setenv("LABBOOK_PROFILE", "full")
    study, speed = make(repeats=3, setup={"system": ["a", "b"]}, vary={"clients": [2, 70]})
    measure(study, speed, lambda p: 0.02 if p.system == "a" else 0.01,
            metrics={"over": [1.5, 2]}, facts={"version": "1"})
    study.complete()
    return study, speed


def other_machine():
    """A machine of another kind, as provenance describes it."""
    return {"cpu": "Other(R) CPU", "cores": 8, "kernel": "5.4.0-1-amd64"}


@pytest.fixture
def two_sets(full, monkeypatch):
    """The study of `full` with its 12 points as one set, and 4 points of another machine as another."""
    publish.export(full[0])
    monkeypatch.setattr(provenance, "machine", other_machine)
    monkeypatch.setattr(machine_kind, "of_point", lambda found: machine_kind.kind(other_machine()))
    publish.export(full[0], "quick")

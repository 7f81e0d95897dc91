"""What of a published set stays when a run is published that measured less of it."""

import json

from published_stand_ins import HERE, OTHER, other_machine

from labbook.pipeline.publishing import publish
from labbook.study.publication import machine_kind, published
from labbook.study.records import provenance
from labbook.study.records.fingerprint import Fingerprint


def test_an_experiment_that_a_run_did_not_measure_keeps_what_was_published(full, make):
    publish.export(full[0], values={"repeats": 3})
    study, _ = make(repeats=0)
    study.complete()
    for replace in ([], ["speed"]):
        publish.export(study, replace=replace)
        assert published.read_run("demo")["experiments"] == {
            "speed": {"points": 12, "parameters": ["system", "clients"]}}
        assert published.points("demo", HERE) == len(published.rows("demo", HERE, "speed")) == 12


def test_an_experiment_measured_in_part_keeps_what_was_published(full, make, measure, root, monkeypatch):
    """Issue 22: one point of a new run had replaced a whole published experiment."""
    publish.export(full[0], values={"speed": {"repeats": 3}})
    monkeypatch.setenv("LABBOOK_RECORDS", str(root / "new records"))
    study, speed = make(repeats=2, setup={"system": ["a", "b"]}, vary={"clients": [2, 70]})
    measure(study, speed)
    study.complete()
    messages = []
    assert publish.export(study, values={"speed": {"repeats": 2}}, report=messages.append) == []
    assert messages == [
        "speed: kept as it is published, since this run has fewer repeats of 4 of its 4 settings, which have 3"]
    assert published.points("demo", HERE) == 12
    assert published.read_run("demo")["parameters"] == {"speed": {"repeats": 3}}
    publish.export(study, replace=["speed"])
    assert published.points("demo", HERE) == 8


def test_an_experiment_keeps_the_parameters_of_its_group_whatever_the_groups_name(full, make, root):
    """Those of elasticity's experiment `range`, which are in the group `ranges`, had become the run's."""
    cells = [("parameters", "speeds = dict(repeats=0)\nspeed = dict(seconds=1)"),
             ("run", "study.experiment('speed', repeats=speeds['repeats'])")]
    (root / "notebooks/demo.ipynb").write_text(json.dumps({"nbformat": 4, "cells": [
        {"cell_type": "code", "source": source, "metadata": {"tags": [tag]}} for tag, source in cells]}))
    publish.export(full[0], values={"speeds": {"repeats": 3}, "speed": {"seconds": 1}})
    study, _ = make(repeats=0)
    study.experiment("other", repeats=0)
    study.complete()
    publish.export(study, values={"speeds": {"repeats": 0}, "speed": {"seconds": 2}})
    assert published.read_run("demo")["parameters"] == {"speeds": {"repeats": 3}, "speed": {"seconds": 1}}


def test_an_experiment_without_one_of_the_published_settings_keeps_what_was_published(full, make, measure):
    publish.export(full[0])
    study, speed = make(repeats=3, setup={"system": ["a", "b"]}, vary={"clients": [2]})
    measure(study, speed)
    study.complete()
    messages = []
    assert publish.export(study, report=messages.append) == [] and published.points("demo", HERE) == 12
    assert messages == [
        "speed: kept as it is published, since this run has fewer repeats of 2 of its 4 settings, which have 3"]


def test_an_experiment_with_as_many_repeats_of_further_settings_is_replaced(full, make, measure):
    publish.export(full[0])
    study, speed = make(repeats=3, setup={"system": ["a", "b"]}, vary={"clients": [2, 30, 70]})
    measure(study, speed)
    study.complete()
    messages = []
    publish.export(study, report=messages.append)
    assert messages == [] and published.points("demo", HERE) == 18


def test_what_is_kept_of_other_code_is_marked_so(full, make, measure, monkeypatch):
    """The set stands for today's code, what was measured by earlier code does not."""
    publish.export(full[0])
    today = Fingerprint("new", full[0].fingerprint.versions)
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda name: today)
    study, _ = make(repeats=0)
    other = study.experiment("other", setup={"system": ["a"]}, repeats=1)
    measure(study, other)
    study.complete()
    messages = []
    publish.export(study, report=messages.append)
    assert messages == ["speed: kept as it is published by earlier code, since this run did not measure it"]
    assert published.rows("demo", HERE, "speed")["stale"].all() and not published.rows("demo", HERE, "other")["stale"].any()


def test_a_few_points_of_another_machine_do_not_replace_its_larger_set(full, monkeypatch):
    study, _ = full
    publish.export(study)
    here, other = machine_kind.kind(provenance.machine()), machine_kind.kind(other_machine())
    monkeypatch.setattr(provenance, "machine", other_machine)
    monkeypatch.setattr(machine_kind, "of_point", lambda found: here if found["few"] else other)
    few = iter([True] + [False] * 11)
    monkeypatch.setattr(published, "provenance", lambda meta, profile: {
        **meta["provenance"], "profile": profile, "environment": "", "few": next(few)})
    publish.export(study)
    assert published.points("demo", HERE) == 12 and published.points("demo", OTHER) == 11

"""What a run is given to measure a claim that it left out."""

import json
from types import SimpleNamespace

import pytest
import yaml

from labbook.errors import InputError
from labbook.study.parameters import adding

PARAMETERS = """
speed = dict(clients=[1, 10], era="new", repeats=3)
crowd = dict(clients=30, repeats=0)
disks = dict(kinds=["fast"], repeats=0)
"""
CODE = """
def compare(name, group, **more):
    return study.experiment(name, repeats=group["repeats"], **more)

study.experiment("speed", repeats=speed["repeats"], vary=dict(concurrency=speed["clients"], era=speed["era"]))
study.experiment("crowd", repeats=crowd["repeats"], vary=dict(concurrency=crowd["clients"]))
compare("disks", disks, vary=dict(kind=disks["kinds"]))
study.experiment("fixed", repeats=2, vary=dict(concurrency=[1]))
"""


class Experiment:
    """What a study declares: a name, and points of these parameters."""

    def __init__(self, name, *params):
        self.name, self._params = name, params

    def declared(self):
        return [SimpleNamespace(arms=[one]) for one in self._params]


@pytest.fixture(autouse=True)
def study(tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_ROOT", str(tmp_path))
    for folder in ("notebooks", "data/papers/demo"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "_toc.yml").touch()
    cells = [{"cell_type": "code", "source": PARAMETERS, "metadata": {"tags": ["parameters"]}},
             {"cell_type": "code", "source": CODE, "metadata": {}}]
    (tmp_path / "notebooks/demo.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    (tmp_path / "data/papers/demo/full.yml").write_text(yaml.safe_dump(
        {"crowd": {"clients": 30, "repeats": 12}, "speed": {"clients": [1, 10, 30], "era": "old", "repeats": 6}}))


def claim(**rule):
    return {"id": "one", "metric": "mean_ms", "rule": {"name": "greater", **rule}}


def test_an_experiment_that_is_left_out_gets_its_repeats():
    assert adding.options("demo", claim(), Experiment("crowd")) == "-p crowd.repeats 12"


def test_a_group_is_found_where_a_function_takes_it_and_gets_the_first_look_without_a_full_profile():
    assert adding.options("demo", claim(), Experiment("disks")) == "-p disks.repeats 6"


def test_a_value_that_lacks_is_added_to_those_that_there_are():
    one = claim(where={"concurrency": 30, "era": "new"})
    assert adding.options("demo", one, Experiment("speed", {"concurrency": 1, "era": "new"})
                          ) == "-p speed.clients '[1, 10, 30]'"


def test_both_values_of_a_comparison_are_added():
    one = claim(of={"concurrency": 20}, than={"concurrency": 30})
    assert adding.options("demo", one, Experiment("speed", {"concurrency": 1})) == "-p speed.clients '[1, 10, 20, 30]'"


def test_a_parameter_of_one_value_gets_the_other():
    one = claim(of={"era": "old"}, than={"era": "new"})
    assert adding.options("demo", one, Experiment("speed", {"concurrency": 1, "era": "new"})) == "-p speed.era old"


def test_a_claim_along_a_parameter_of_one_value_gets_those_of_the_full_profile():
    one = claim(along="concurrency")
    assert adding.options("demo", one, Experiment("speed", {"concurrency": 1, "era": "new"})
                          ) == "-p speed.clients '[1, 10, 30]'"


def test_a_range_in_which_no_point_lies_gets_the_values_of_the_full_profile():
    """The command that the page named measured nothing of the claim."""
    one = claim(where={"concurrency": {"at_least": 20}})
    assert adding.options("demo", one, Experiment("speed", {"concurrency": 1, "era": "new"})
                          ) == "-p speed.clients '[1, 10, 30]'"


def test_along_a_parameter_only_the_points_that_the_claim_selects_count():
    one = claim(along="concurrency", where={"concurrency": {"at_least": 2}})
    each = Experiment("speed", {"concurrency": 1, "era": "new"}, {"concurrency": 10, "era": "new"})
    assert adding.options("demo", one, each) == "-p speed.clients '[1, 10, 30]'"


def test_nothing_is_reported_where_nobody_names_the_values():
    assert adding.options("demo", claim(along="kind"), Experiment("disks", {"kind": "fast"})) == ""


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "crowd:\n"])
def test_without_values_in_the_full_profile_the_first_look_is_taken(tmp_path, text):
    (tmp_path / "data/papers/demo/full.yml").write_text(text)
    assert adding.options("demo", claim(), Experiment("crowd")) == "-p crowd.repeats 6"


@pytest.mark.parametrize("text", ["- crowd\n", "crowd: 12\n"])
def test_a_full_profile_that_is_no_mapping_is_named(tmp_path, text):
    (tmp_path / "data/papers/demo/full.yml").write_text(text)
    message = r"full.yml: crowd: .* is no mapping.*allowed: crowd: \{NAME: value\} with clients, repeats"
    with pytest.raises(InputError, match=message):
        adding.options("demo", claim(), Experiment("crowd"))


def test_nothing_is_reported_of_a_value_that_the_notebook_has_and_published_points_lack():
    one = claim(where={"concurrency": 10})
    assert adding.options("demo", one, Experiment("speed", {"concurrency": 1})) == ""


def test_a_claim_of_which_the_notebook_has_all_points_is_asked_by_its_id():
    one = claim(where={"concurrency": 1})
    assert adding.options("demo", one, Experiment("speed", {"concurrency": 1})) == f"--until-decided --claims {one['id']}"


def test_nothing_is_reported_where_the_notebook_does_not_say():
    assert adding.options("demo", claim(), Experiment("fixed")) == ""
    assert adding.options("demo", claim(where={"rows": 3}), Experiment("speed", {"concurrency": 1})) == ""

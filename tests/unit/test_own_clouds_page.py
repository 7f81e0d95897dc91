"""The book's page "On your own clouds": what it tells people to write and to type is what there is."""

import re
import shlex

import pytest
import yaml

from labbook.cli import parser
from labbook.lab.environment.environment import Environment
from labbook.paths import checkout, clouds_dir
from labbook.pipeline.setup.own_clouds import standing_in
from labbook.pipeline.setup.requirements import description

PAGE = (checkout() / "book/own_clouds.md").read_text()


def written(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.mark.parametrize("line", "".join(written("bash")).splitlines())
def test_its_commands_are_the_command_lines_own(line):
    parser().parse_args(shlex.split(line)[1:])


def test_its_clouds_stand_in_for_the_studys_systems():
    text, _ = written("yaml")
    there = Environment.parse(yaml.safe_load(text), file="clouds.yml", keys=False)
    labels = {system["label"] for system in description("cloud_platforms").systems}
    assert {cloud.name for cloud in there.clouds} == labels
    assert set(standing_in("cloud_platforms", there)) == labels


def test_it_names_the_place_of_the_journal(monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    assert f"`{str(clouds_dir()).replace('/home/me', '~')}`" in PAGE


def test_it_is_in_the_book():
    assert "book/own_clouds" in (checkout() / "_toc.yml").read_text()

"""The book's page "Many machines": what it tells people to write and to type is what there is."""

import re
import shlex

import pytest
import yaml

from labbook.checks import check
from labbook.cli import parser
from labbook.paths import checkout
from labbook.pipeline.fleet.file import SCHEMA

PAGE = (checkout() / "book/many_machines.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.mark.parametrize("line", [line for block in blocks("bash") for line in block.splitlines()
                                  if line.startswith("labbook ")])
def test_its_commands_are_the_command_lines_own(line):
    parser().parse_args(shlex.split(line)[1:])


def test_its_fleet_is_one():
    written, = blocks("yaml")
    check(yaml.safe_load(written), SCHEMA, "fleet.yml")


def test_its_configuration_of_slurm_is_python():
    for block in blocks("python"):
        compile(block, "ipcluster_config.py", "exec")


def test_it_is_in_the_book():
    assert "book/many_machines" in (checkout() / "_toc.yml").read_text()

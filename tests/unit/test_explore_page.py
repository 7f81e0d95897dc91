"""The book's page "Explore in JupyterLab": what it tells people to type is what there is. tests/lab types it."""

import ast
import re
import shlex

import pytest

from labbook import paths
from labbook.cli import parser
from labbook.pipeline.sources import new

ROOT = paths.checkout()
PAGE = (ROOT / "book/explore.md").read_text()
NAME = "first_look"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def commands():
    inline = re.findall(r"`(labbook (?:up|ssh|run|rows|show|exec|capture|link|cut|heal)[^`]*)`", PAGE)
    return [line for block in blocks("bash") for line in block.splitlines()] + inline


@pytest.mark.parametrize("line", [line for line in commands() if line.startswith("labbook ") and line != "labbook run"])
def test_its_commands_are_the_command_lines_own(line):
    parser().parse_args(shlex.split(line.partition(" > ")[0])[1:])


def test_its_study_is_the_one_that_labbook_new_writes():
    places = new.texts(NAME, new.NULL)
    removed = [word for line in commands() if line.startswith("rm -r ") for word in line.split()[2:]]
    for place in places:
        assert any(place == one or place.startswith(f"{one}/") for one in removed), place
    notebook = places[f"notebooks/{NAME}.ipynb"]
    for word in ("over_clients", "response = dict(clients=[1, 8]", "seconds_at_most", "study = Study"):
        assert word in notebook


@pytest.mark.parametrize("cell", blocks("python"))
def test_its_cells_are_python(cell):
    ast.parse(cell)


def test_make_has_its_target_and_git_leaves_its_folder_alone():
    assert re.search(r"^lab:$", (ROOT / "Makefile").read_text(), re.M) and "make lab" in commands()
    assert "scratch/" in (ROOT / ".gitignore").read_text().splitlines()


def test_it_is_in_the_book():
    assert "book/explore" in (ROOT / "_toc.yml").read_text()

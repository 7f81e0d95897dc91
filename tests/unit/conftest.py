"""Fixtures of the unit tests: a small book in a scratch folder, with notebooks that need no lab."""

import json
from pathlib import Path

import pytest
from forked_notebooks import forked  # noqa: F401 (a fixture)
from published_stand_ins import full_run, two_sets  # noqa: F401 (fixtures)
from study_stand_ins import labs, make, measure, root  # noqa: F401 (fixtures)

PARAMETERS = """environment = "environments/local.yml"
clients = [1, 10]
repeats = 2
margin = 1.5
store = "mysql"
"""


class Book:
    complete = "from labbook.pipeline.executing.progress import append_event\nappend_event(event='complete')"

    def __init__(self, root: Path):
        self.root = root
        for folder in ("notebooks", "book", "environments", "data/papers"):
            (root / folder).mkdir(parents=True)
        self.write("_toc.yml", "format: jb-book\nroot: book/index\n")
        self.write("_config.yml", "title: A small book\nauthor: its tests\nexecute: {execute_notebooks: 'off'}\n")
        self.write("book/index.md", "# A small book\n")
        self.write("environments/local.yml", "provider: namespaces\n")

    def write(self, name, text) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def study(self, name, *cells, parameters=PARAMETERS, full=None, heading=None) -> Path:
        """A notebook with a heading, a parameters cell and `cells` of code, in the contents."""
        made = [_cell("markdown", heading or f"# {name.title()}"), _cell("code", parameters, "parameters")]
        made += [_cell("code", cell) for cell in cells]
        for number, cell in enumerate(made):
            cell["id"] = f"cell-{number}"
        self.write(f"data/papers/{name}/full.yml", full or "repeats: 5\n")
        path = self.write(f"notebooks/{name}.ipynb", json.dumps(
            {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}))
        names = sorted(p.stem for p in (self.root / "notebooks").glob("*.ipynb"))
        chapters = "".join(f"  - file: notebooks/{n}\n" for n in names)
        self.write("_toc.yml", f"format: jb-book\nroot: book/index\nchapters:\n{chapters}")
        return path

    def page(self, name) -> dict:
        return json.loads((self.root / "build/pages" / f"{name}.ipynb").read_text())

    def printed(self, name) -> str:
        """All that the cells of a page printed."""
        return "".join("".join(output.get("text", "")) for cell in self.page(name)["cells"]
                       for output in cell.get("outputs", []))


def _cell(kind, source, tag=None):
    metadata = {"tags": [tag]} if tag else {}
    cell = {"cell_type": kind, "metadata": metadata, "source": source}
    return cell | ({"outputs": [], "execution_count": None} if kind == "code" else {})


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_ROOT", str(tmp_path / "book"))
    monkeypatch.setenv("LABBOOK_RECORDS", str(tmp_path / "records"))
    for name in ("PUBLISHED", "PLAN", "UNTIL", "REMEASURE", "PROGRESS", "ASK"):
        monkeypatch.delenv(f"LABBOOK_{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    return Book(tmp_path / "book")


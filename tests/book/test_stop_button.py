"""A notebook that measures in JupyterLab: Run All from nothing, the stop button, and Run All again. The lab is a
stand-in; a real one is tried by tests/lab."""

import json
import time

import asked_book
import lab_in_browser
import pytest
from study_stand_ins import checkout

from labbook import paths

NAME, POINTS, STOPPED_AT = "asked", 14, 3
BORROWED = ("lib", "Makefile", ".venv", "pyproject.toml", "constraints.txt", "constraints-lab.txt",
            "constraints-test.txt")
# The point that the stop button interrupts: it waits for a file.
WAITS = f"""            attempt.lab
            log = os.environ["LABBOOK_ROOT"] + "/measured.log"
            while os.path.exists(log) and len(open(log).readlines()) == {STOPPED_AT} and not os.path.exists("go"):
                pass
"""
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


@pytest.fixture
def book(tmp_path):
    """A small book with the study, whose points are lines in measured.log."""
    root = checkout(tmp_path / "book", NAME, asked_book.CLAIMS)
    (root / f"data/papers/{NAME}/lab.yml").write_text(asked_book.LAB)
    for name in BORROWED:
        (root / name).symlink_to(paths.checkout() / name)
    cells = [_cell(asked_book.PARAMETERS, "parameters"), _cell(asked_book.SHOW)]
    cells.insert(1, _cell(asked_book.DECLARE.replace("            attempt.lab\n", WAITS)))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    (root / f"notebooks/{NAME}.ipynb").write_text(json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": KERNEL, "cells": cells}))
    return root


def _cell(source, *tags):
    return {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source, "outputs": [],
            "execution_count": None}


def test_a_run_from_nothing_stops_and_goes_on(book, tmp_path, driver):
    log = book / "measured.log"
    with lab_in_browser.server(book, tmp_path, LABBOOK_ROOT=str(book)) as (address, token):
        notebook = lab_in_browser.Notebook(driver, address, token, f"notebooks/{NAME}.ipynb")
        notebook.command("notebook:run-all-cells")
        until = time.monotonic() + 300
        while not log.exists() or len(log.read_text().splitlines()) < STOPPED_AT:
            assert time.monotonic() < until and not lab_in_browser.errors(notebook.cells())
            time.sleep(0.1)
        notebook.command("notebook:interrupt-kernel")
        notebook.wait(lab_in_browser.FAILED)
        stopped = notebook.finished()
        assert [error.partition(":")[0] for error in lab_in_browser.errors(stopped)] == ["KeyboardInterrupt"]
        assert "<progress " in str(stopped)
        assert len(log.read_text().splitlines()) == STOPPED_AT

        (book / "notebooks/go").touch()
        assert lab_in_browser.errors(notebook.run_all()) == []
        measured = log.read_text().splitlines()
        under_way = measured[STOPPED_AT - 1]    # its line is written before its record
        twice = [point for point in set(measured) if measured.count(point) > 1]
        assert len(set(measured)) == POINTS and twice in ([], [under_way]), "no finished point is measured twice"
        driver.get("about:blank")

"""Parameters of a kernel: slips and text are found as the Study is made."""

import json
import sys
from types import SimpleNamespace

import pytest

from labbook.errors import InputError
from labbook.pipeline.sources import parameters as pipeline_parameters
from labbook.study.parameters import given

CELL = '''environment = "environments/local.yml"
clients = [1, 10]
speed = dict(rtt_ms=[0, 100], rate=1.5, repeats=3)
store = "mysql"
'''


@pytest.fixture
def kernel(book, monkeypatch):
    """Runs the parameters cell and others in names like a kernel's, then the check; the names."""
    book.study("demo", parameters=CELL)

    def run(*cells, first=CELL, study="demo"):
        names = {"In": [""]}
        for cell in (first, *cells, "study = 1"):
            names["In"].append(cell)
            exec(cell, names)
        shell = SimpleNamespace(user_ns=names)
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
        given.check(study)
        return names

    return run


def by_papermill(code):
    return f"# Parameters\n{code}\n"


def test_the_notebooks_own_values_pass(kernel):
    names = kernel()
    assert names["clients"] == [1, 10] and names["speed"]["repeats"] == 3


@pytest.mark.parametrize("code, name, value", [
    ('clients = "[1, 90]"', "clients", [1, 90]),
    ('speed = "{rtt_ms: [5], rate: 2, repeats: 1}"', "speed", {"rtt_ms": [5], "rate": 2.0, "repeats": 1}),
    ('store = "1.10"', "store", "1.10"),
    ("clients = (5, 6)", "clients", (5, 6)),
])
def test_text_is_what_yaml_makes_of_it(kernel, code, name, value):
    assert kernel(by_papermill(code))[name] == value


@pytest.mark.parametrize("code, message", [
    ('clients = "many"', r"demo.ipynb: clients: 'many' is of the wrong type \(allowed: list of int, such as \[1, 10\]"),
    ('clients = "[1"', "demo.ipynb: clients: '\\[1' is not YAML"),
    ("clients = []", "demo.ipynb: clients: an empty list"),
    ("store = 0.7", "store: 0.7 is of the wrong type .allowed: str"),
    ("client = [1, 90]", "demo.ipynb: client: no such parameter, did you mean 'clients'.*environment, speed, store"),
    ("repeats = 9", "repeats: no such parameter, did you mean speed.repeats"),
    ("speed = dict(rtt=[5], rate=1.0, repeats=1)", "speed.rtt: no such parameter, did you mean 'speed.rtt_ms'"),
    ("speed = dict(repeats=1)", "speed: the group is incomplete, it lacks rtt_ms, rate"),
])
def test_slips_are_found_before_anything_starts(kernel, code, message):
    with pytest.raises(InputError, match=message):
        kernel(by_papermill(code))


def test_the_parameters_cell_may_be_edited_by_hand(kernel):
    edited = CELL.replace("[1, 10]", "[1, 90]")
    assert kernel(first=edited)["clients"] == [1, 90]
    with pytest.raises(InputError, match="did you mean 'clients'"):
        kernel(first=edited.replace("clients", "client"))
    with pytest.raises(InputError, match="clients: 90 is of the wrong type"):
        kernel(first=CELL.replace("[1, 10]", "90"))
    assert kernel(first=CELL + "sizes_of_my_own = [3]\n")["sizes_of_my_own"] == [3]


def test_a_slip_in_a_saved_notebook_is_found_by_what_the_cells_use(book, kernel):
    use = "import os as system\nshown = [one for one in clients]\n%magic\ndef f(x, *y): return x\nprint(f(shown))"
    slip = CELL.replace("clients", "client")
    book.study("demo", use, parameters=slip)
    with pytest.raises(InputError, match="client: no cell uses this parameter, did you mean 'clients'.*clients"):
        kernel(first=slip)
    book.study("demo", use, parameters=CELL)
    assert kernel(first=CELL), "a parameter that no cell uses is none"


def test_a_slip_that_was_put_right_is_none(kernel):
    """The old name stays in the kernel."""
    wrong = CELL.replace("clients", "client")
    assert kernel(CELL, first=wrong)["client"] == [1, 10]
    assert kernel("client = 5\nfor speeds in range(3): pass")["client"] == 5, "a name of another cell"


def test_a_notebook_that_is_not_the_studys_is_not_checked(kernel, book):
    assert kernel(first="clients = 3\n")["clients"] == 3
    book.write("notebooks/plain.ipynb", '{"nbformat": 4, "cells": []}')
    kernel(first="clients = 3\n", study="plain")
    kernel(first="clients = 3\n", study="no_notebook")


def test_without_a_kernel_nothing_is_checked(book, monkeypatch):
    book.study("demo", parameters=CELL)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    given.check("demo")
    monkeypatch.delitem(sys.modules, "IPython")
    given.check("demo")


def test_the_values_of_a_kernel_are_those_of_the_notebooks_parameters(kernel, monkeypatch):
    kernel(by_papermill('clients = "[1, 90]"'), "other = 3")
    assert given.values("demo") == {"environment": "environments/local.yml", "clients": [1, 90],
                                    "speed": {"rtt_ms": [0, 100], "rate": 1.5, "repeats": 3}, "store": "mysql"}
    kernel(first="clients = 3\n")
    assert given.values("demo") is None and given.values("no_notebook") is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert given.values("demo") is None


def test_what_labbook_run_passes_on_passes(kernel):
    chosen = pipeline_parameters.chosen("demo", given=[("speed.repeats", "9"), ("clients", "[7]")])
    names = kernel(by_papermill("\n".join(f"{name} = {value!r}" for name, value in chosen.items())))
    assert names["speed"]["repeats"] == 9 and names["clients"] == [7]


def test_papermill_itself(book):
    """Its `-p` gives text; a slip ends the notebook at the cell that makes the Study."""
    import papermill
    from study_stand_ins import checkout

    checkout(book.root)
    book.study("demo", "from labbook.study import Study\nstudy = Study('demo')", "print('clients', clients)",
               parameters=CELL)
    source, out = str(book.root / "notebooks/demo.ipynb"), str(book.root / "out.ipynb")
    run = {"kernel_name": "python3", "language": "python", "progress_bar": False, "cwd": str(book.root)}
    papermill.execute_notebook(source, out, parameters={"clients": "[1, 90]"}, **run)
    assert "clients [1, 90]" in (book.root / "out.ipynb").read_text()
    with pytest.raises(papermill.exceptions.PapermillExecutionError, match="did you mean 'clients'"):
        papermill.execute_notebook(source, out, parameters={"client": [1]}, **run)
    error, = [output for cell in json.loads((book.root / "out.ipynb").read_text())["cells"]
              for output in cell.get("outputs", ()) if output["output_type"] == "error"]
    assert len(error["traceback"]) == 1 and "did you mean 'clients'" in error["traceback"][0]

"""The page *Explore in JupyterLab*, typed word for word in a clean clone: its commands, and its cells at the end
of the notebook that it names. JupyterLab itself, with a lab: Run All from nothing, the stop button, and on."""

import json
import platform
import re
import shlex
import shutil
import time

import lab_in_browser
import pandas as pd
import pytest
import sparing
from browser import browser
from checkout_copy import CHECKOUT
from typed_pages import clone, type_in  # noqa: F401 (fixtures)

from labbook.lab import Lab
from labbook.study.records.record import Records

NAME = "first_look"
PAGE = (CHECKOUT / "book" / "explore.md").read_text()
BLOCK = re.compile(r"^```(?P<kind>bash|python)\n(?P<text>.*?)^```$", re.M | re.S)
OPENED = "Open `first_look.ipynb`"      # from here on, cells of the page can run
POINTS, FEW = 24, 12


def blocks(kind: str, text: str = PAGE) -> list[str]:
    return [block["text"] for block in BLOCK.finditer(text) if block["kind"] == kind]


def commands(text: str) -> list[str]:
    return [line for block in blocks("bash", text) for line in block.splitlines() if line != "make lab"]


def with_cells(notebook, sources) -> str:
    data = json.loads(notebook.read_text())
    data["cells"] += [{"cell_type": "code", "id": f"typed-{number}", "metadata": {}, "outputs": [],
                       "execution_count": None, "source": source} for number, source in enumerate(sources)]
    return json.dumps(data)


def records(clone) -> list[Records]:
    return [Records(folder) for folder in clone.glob(f"data/records/*/{NAME}/response")]


def labs_of(clone) -> list[str]:
    return [lab.id for lab in Lab.list() if lab.checkout == str(clone)]


@pytest.mark.timeout(900)
def test_its_commands_and_cells_do_what_it_says(clone, type_in):  # noqa: F811
    before, _, after = PAGE.partition(OPENED)
    for command in commands(before):
        type_in(command)
    notebook = clone / f"notebooks/{NAME}.ipynb"
    typed = clone / "build/typed.ipynb"
    typed.write_text(with_cells(notebook, blocks("python")))
    type_in(f"papermill {typed.relative_to(clone)} build/ran.ipynb --cwd notebooks -k python3 --no-progress-bar")
    cells = json.loads((clone / "build/ran.ipynb").read_text())["cells"]
    texts = ["".join(str(output.get("data", {}).get("text/plain", "")) for output in cell["outputs"])
             for cell in cells if cell["id"].startswith("typed-")]
    assert "Experiment response: 24 of 24 points recorded" in str(cells) and "VBox" in str(texts)
    assert platform.release() in str(texts)      # uname -r on a host
    assert labs_of(clone) == []

    one, = records(clone)
    assert len(one.keys()) == POINTS, "what was tried is in no record"
    assert [command for command in commands(after) if command.startswith("rm ")], "what is looked at before it goes"
    for command in commands(after):
        if command.startswith("rm "):
            frame = pd.read_csv(clone / "build/read.csv")
            assert set(frame["ok"]) == {True} and frame["client"].nunique() == 8
            assert (clone / "build/more.ipynb").exists() and len(one.keys()) > POINTS
        type_in(command)
    assert type_in("git status --porcelain") == ""


@pytest.fixture
def first_look(clone, type_in):  # noqa: F811
    """The page's study with half of its repeats, and nothing measured."""
    if not (clone / f"notebooks/{NAME}.ipynb").exists():
        type_in(f"labbook new {NAME}")
    shutil.rmtree(clone / "data/records", ignore_errors=True)
    notebook = clone / f"notebooks/{NAME}.ipynb"
    text = notebook.read_text()
    assert "repeats=6)" in text or "repeats=3)" in text
    notebook.write_text(text.replace("repeats=6)", "repeats=3)"))


@pytest.mark.timeout(900)
def test_in_jupyterlab_it_measures_stops_and_goes_on(clone, first_look, tmp_path):  # noqa: F811
    with lab_in_browser.server(
            clone, tmp_path, PYTHONPATH=str(clone / "lib"), PYTHONSTARTUP=sparing.__file__) as (address, token), browser() as driver:
        notebook = lab_in_browser.Notebook(driver, address, token, f"notebooks/{NAME}.ipynb")
        notebook.command("notebook:run-all-cells")
        until = time.monotonic() + 120
        while not any(len(one.keys()) >= 3 for one in records(clone)):
            assert time.monotonic() < until, lab_in_browser.errors(notebook.cells())
            time.sleep(0.1)
        notebook.command("notebook:interrupt-kernel")
        assert lab_in_browser.errors(notebook.finished())[0].startswith("KeyboardInterrupt")
        assert labs_of(clone) == []

        one, = records(clone)
        first = {key: one.path(key).stat().st_mtime_ns for key in one.keys()}
        assert 3 <= len(first) < FEW
        assert lab_in_browser.errors(notebook.run_all()) == []
        assert len(one.keys()) == FEW and labs_of(clone) == []
        assert first.items() <= {key: one.path(key).stat().st_mtime_ns for key in one.keys()}.items()
        assert notebook.show(".verdict")


TRY = """from labbook.study import Study
study = Study("first_look")
lab = study.lab()
print(lab.id, lab.host("server").run("echo here").stdout.strip(), study.system("null").process.alive())
study.close()"""


def test_the_lab_that_is_kept_up_is_the_one_in_hand(clone, type_in, first_look):  # noqa: F811
    type_in(f"labbook up {NAME}")
    try:
        assert type_in(f"python -c {shlex.quote(TRY)}").split() == [*labs_of(clone), "here", "True"]
        assert len(labs_of(clone)) == 1, "it stays up"
    finally:
        type_in("labbook down")
    assert labs_of(clone) == []

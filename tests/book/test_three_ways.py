"""A page is the same by `labbook run`, by plain papermill, and by Run All in JupyterLab."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

NAME = "cms_scalability"
SECONDS = 300       # at most
VERDICT = re.compile(r"^[a-z0-9-]+: (replicated|not replicated|open|not testable here|not run), ", re.MULTILINE)
PAPERMILL = ("-m", "papermill", "--no-progress-bar", "--no-request-save-on-cell-execute", "-k", "python3")
# Run All sends the cells to a kernel of the venv that works beside the notebook, as nbclient does.
RUN_ALL = ("-c", "import nbclient, nbformat, sys\n"
           "notebook = nbformat.read(sys.argv[1], 4)\n"
           "nbclient.NotebookClient(notebook, kernel_name='python3', timeout=None).execute()\n"
           "nbformat.write(notebook, sys.argv[2])")


def run(checkout, program, page: Path, *more) -> dict:
    """The page by one of these, typed in the notebooks' folder; results are read from the published
    summaries, and nothing names where the checkout is."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LABBOOK_")}
    done = subprocess.run([sys.executable, *program, f"{NAME}.ipynb", page, *more],
                          cwd=checkout / "notebooks", env={**inherited, "LABBOOK_PUBLISHED": "1"}, text=True,
                          capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(page.read_text())


def texts(page: dict) -> dict:
    """The plain texts that each code cell put out, by the cell's id; a figure's text has its numbers."""
    cells = [cell for cell in page["cells"] if cell["cell_type"] == "code"]
    found = {cell["id"]: ["".join(one["data"][kind]) for one in cell["outputs"] if "data" in one
                          for kind in sorted(one["data"]) if kind.endswith("text/plain")] for cell in cells
             if "injected-parameters" not in cell["metadata"].get("tags", ())}
    assert any(VERDICT.search(text) for of_cell in found.values() for text in of_cell)
    return found


def test_papermill_gives_the_page_of_labbook_run(checkout, tmp_path):
    """With the parameters that `labbook run` hands over: those of the published run."""
    page = json.loads((checkout / "build" / "pages" / f"{NAME}.ipynb").read_text())
    (tmp_path / "parameters.yml").write_text(json.dumps(page["metadata"]["papermill"]["parameters"]))
    again = run(checkout, PAPERMILL, tmp_path / "page.ipynb", "-f", str(tmp_path / "parameters.yml"))
    assert texts(again) == texts(page)


def test_run_all_gives_the_page_of_papermill(checkout, tmp_path):
    """With the notebook's own parameters."""
    by_hand = run(checkout, RUN_ALL, tmp_path / "by_hand.ipynb")
    assert texts(by_hand) == texts(run(checkout, PAPERMILL, tmp_path / "page.ipynb"))

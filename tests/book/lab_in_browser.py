"""JupyterLab as `make lab` starts it, on a copy of the checkout, and a browser that runs its notebooks."""

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from browser import DESK, size

from labbook import paths

OURS = {"build", ".git", "scratch"}      # of a checkout, and not of its copy
START_SECONDS = 90
APP = "window.jupyterapp"
# The notebook's cells with their outputs, as its file would have them.
CELLS = f"return {APP}.shell.currentWidget.content.model.sharedModel.toJSON().cells"
# Whether each code cell has run, or one has failed, after which none does. A cell loses its number when it is queued.
ALL_RAN = (f"const cells = {APP}.shell.currentWidget.content.model.sharedModel.toJSON().cells"
           ".filter(cell => cell.cell_type === 'code'); return cells.every(cell => cell.execution_count) || "
           "cells.some(cell => cell.outputs.some(one => one.output_type === 'error'))")
# All cells are in the document, rendered: by default those that are far away are rendered when they come near.
NOTEBOOKS = ("@jupyterlab/notebook-extension/tracker.jupyterlab-settings", {"windowingMode": "none"})
DRAWN = """const found = [...document.querySelectorAll(arguments[0])].find(
    one => one.checkVisibility({visibilityProperty: true}) && one.getBoundingClientRect().height > 0);
found?.scrollIntoView({block: 'center'});
return found"""
FAILED = CELLS + ".some(cell => (cell.outputs ?? []).some(one => one.output_type === 'error'))"
STATUS = f"return {APP}.shell.currentWidget.context.sessionContext.session.kernel.status"


def copy(folder: Path) -> Path:
    """The checkout's files by links, and its notebooks, which a test may change, as copies."""
    folder.mkdir()
    for part in paths.checkout().iterdir():
        if part.name == "notebooks":
            shutil.copytree(part, folder / part.name, ignore=shutil.ignore_patterns(".*"))
        elif part.name not in OURS:
            (folder / part.name).symlink_to(part)
    return folder


@contextmanager
def server(checkout: Path, home: Path, **variables):
    """`make lab` in a checkout, with settings of its own in `home`; (address, token)."""
    kinds = ("CONFIG", "DATA", "RUNTIME")
    own = {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in kinds}
    own["JUPYTERLAB_SETTINGS_DIR"] = str(home / "settings")
    name, settings = NOTEBOOKS
    file = home / "settings" / name
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(settings))
    inherited = {name: value for name, value in os.environ.items() if name not in ("LABBOOK_ROOT", "LABBOOK_RECORDS")}
    with open(home / "log", "w") as log:
        running = subprocess.Popen(
            ["make", "-s", "lab", "JUPYTER=--no-browser --port 0 --expose-app-in-browser"], cwd=checkout,
            env=inherited | own | variables, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            start_new_session=True)
    try:
        yield _address(home, running)
    finally:
        running.terminate()     # make passes it on; a second signal would shut the kernels down twice at once
        try:
            running.wait(60)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)


def _address(home: Path, running) -> tuple[str, str]:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and running.poll() is None:
        for file in (home / "runtime").glob("jpserver-*.json"):
            try:
                found = json.loads(file.read_text())
                return found["url"], found["token"]
            except ValueError:
                pass    # half written
        time.sleep(0.1)
    raise AssertionError((home / "log").read_text())


class Notebook:
    """A notebook that is open in the browser."""

    def __init__(self, driver, address: str, token: str, path: str):
        self.driver = driver
        size(driver, DESK)      # else the size that another test gave the page, which may be a phone's
        driver.get(f"{address}lab/tree/{path}?token={token}")
        self.wait(f"return {APP}?.shell.currentWidget?.context?.path == '{path}' && "
                  f"{APP}.shell.currentWidget.context.sessionContext.session?.kernel?.status == 'idle'")

    def wait(self, script: str, seconds: float = 60):
        """Until a script returns what is true; its value."""
        until = time.monotonic() + seconds
        while not (found := self.driver.execute_script(script)):
            assert time.monotonic() < until, f"{script}: {found!r} after {seconds} s"
            time.sleep(0.2)
        return found

    def command(self, name: str) -> None:
        self.driver.execute_script(f"{APP}.commands.execute('{name}')")

    def add(self, source: str, seconds: float = 60) -> dict:
        """Run a new cell at the end; it, with its outputs."""
        content = f"{APP}.shell.currentWidget.content"
        self.driver.execute_script(f"{content}.activeCellIndex = {content}.widgets.length - 1")
        self.command("notebook:insert-cell-below")
        self.wait(f"return {content}.activeCell?.model.sharedModel.getSource() === ''")
        self.driver.execute_script(f"{content}.activeCell.model.sharedModel.setSource(arguments[0])", source)
        self.command("notebook:change-cell-to-code")
        self.command("notebook:run-cell")
        self.wait(f"return {content}.activeCell.model.executionCount > 0", seconds)
        return self.finished(seconds)[-1]

    def run_all(self, seconds: float = 300) -> list[dict]:
        """Run all cells; the code cells with their outputs."""
        first = self.cells()[0]["execution_count"]
        self.command("notebook:run-all-cells")
        until = time.monotonic() + seconds
        while self.cells()[0]["execution_count"] in (first, None) and self.driver.execute_script(STATUS) != "busy":
            assert time.monotonic() < until, "it does not run"
            time.sleep(0.2)
        self.wait(ALL_RAN, seconds)
        return self.finished(seconds)

    def finished(self, seconds: float = 300) -> list[dict]:
        """The code cells when the kernel has nothing more to do."""
        quiet = f"{STATUS} == 'idle' && !document.querySelector('.jp-InputPrompt')?.textContent.includes('*')"
        for _ in range(3):      # idle between two cells is not the end
            self.wait(quiet, seconds)
            time.sleep(0.3)
        return self.cells()

    def cells(self) -> list[dict]:
        return [cell for cell in self.driver.execute_script(CELLS) if cell["cell_type"] == "code"]

    def show(self, selector: str, seconds: float = 60):
        """Wait until something is drawn in the notebook; it, scrolled to."""
        return self.wait(DRAWN.replace("arguments[0]", json.dumps(f".jp-Notebook {selector}")), seconds)


def errors(cells) -> list[str]:
    return [f"{output['ename']}: {output['evalue']}" for cell in cells for output in cell["outputs"]
            if output["output_type"] == "error"]

"""The small book's notebooks run in a fork of this process, in the place of papermill and a kernel, for tests of what
is made of an execution. test_run.py and test_driver.py have the real ones."""

import contextlib
import io
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from labbook.pipeline.executing import driver, execute

FORK = multiprocessing.get_context("fork")


class Forked:
    """What a Driver takes for the process that it has started."""

    def __init__(self, command, env, stdout, **_):
        self._process = FORK.Process(target=_run, args=(command[3], env, stdout.fileno()))
        self._process.start()
        self.pid = self._process.pid

    def wait(self, seconds):
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a notebook", seconds)

    @property
    def returncode(self):
        return self._process.exitcode


def _run(job_file, environment, log):
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(environment)
    job = json.loads(Path(job_file).read_text())
    os.chdir(job["cwd"])
    notebook = json.loads(Path(job["notebook"]).read_text())
    error = _execute(notebook["cells"], job["parameters"])
    notebook["metadata"]["papermill"] = {"exception": bool(error)}
    Path(job["output"]).write_text(json.dumps(notebook))
    if error:
        Path(job["error"]).write_text(json.dumps(execute._reported(error)))
        sys.exit(1)


def _execute(cells, parameters) -> Exception | None:
    """The error that the cells end with; each has what it printed as its output."""
    names = {}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec("".join(cell["source"]), names)
        except Exception as error:
            return error
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": printed.getvalue()}]
        if "parameters" in cell["metadata"].get("tags", ()):
            names |= parameters
    return None


@pytest.fixture
def forked(monkeypatch):
    monkeypatch.setattr("labbook.study.noise.reference_loop", lambda: 1.0)
    monkeypatch.setattr(driver, "subprocess", SimpleNamespace(
        Popen=Forked, DEVNULL=subprocess.DEVNULL, STDOUT=subprocess.STDOUT, TimeoutExpired=subprocess.TimeoutExpired))

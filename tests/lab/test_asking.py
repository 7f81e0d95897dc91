"""A study on a real host is asked until its claims are decided; it is interrupted, and asked again."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml

from labbook.claims import claims
from labbook.pipeline.executing import pages
from labbook.study.records.record import read_meta

HERE = Path(__file__).parent
CLAIM = {"section": "sleep", "source": "table 1", "paper": {"value": 2.0, "unit": "times"}, "experiment": "sleeps",
         "metric": "mean_ms"}
LONGER = {"name": "greater", "of": {"long": True}, "than": {"long": False}, "margin": 1.5}
CLAIMS = [{**CLAIM, "id": mode, "statement": f"a {mode} sleeper sleeps longer", "rule": {**LONGER, "where": {"mode": mode}}}
          for mode in ("steady", "wavering")]
NOTEBOOK = '''
import os
from labbook.study import Study

study = Study("tiny", environment)
sleeps = study.experiment("sleeps", setup={"mode": ["steady", "wavering"]}, vary={"long": [True, False]}, repeats=2)
for point in sleeps.remaining():
    shorter = point.mode == "wavering" and point.repeat == 3    # six repeats decide nothing
    seconds = 0.2 if point.long and not shorter else 0.05
    with study.attempt(point) as attempt:
        slept = float(attempt.lab.host("h1").run(f"sleep {seconds}; echo {seconds}").stdout)   # as asked: how
        attempt.record([{"started_s": 0, "seconds": slept, "ok": True}])   # long it took is the machine's affair
    with open(os.environ["LABBOOK_ROOT"] + "/measured.log", "a") as log:
        print(point.mode, point.long, point.repeat, file=log)
study.complete()
print(study.verdicts("sleep"))
'''


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A checkout with one study in it."""
    paper = tmp_path / "data/papers/tiny"
    for folder in (paper, tmp_path / "notebooks", tmp_path / "environments"):
        folder.mkdir(parents=True)
    (tmp_path / "_toc.yml").touch()
    cells = [{"cell_type": "code", "id": "p", "metadata": {"tags": ["parameters"]}, "outputs": [],
              "execution_count": None, "source": 'environment = "environments/local.yml"'},
             {"cell_type": "code", "id": "c", "metadata": {}, "outputs": [], "execution_count": None, "source": NOTEBOOK}]
    (tmp_path / "notebooks/tiny.ipynb").write_text(json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    (paper / "claims.yml").write_text(yaml.safe_dump(CLAIMS))
    (paper / "lab.yml").write_text("sites: [a]\nhosts: {h1: {site: a, role: db}}\n")
    shutil.copy(HERE.parents[1] / "environments/local.yml", tmp_path / "environments")
    monkeypatch.setenv("LABBOOK_ROOT", str(tmp_path))
    monkeypatch.delenv("LABBOOK_RECORDS", raising=False)
    return tmp_path


def start(root):
    return subprocess.Popen([sys.executable, "-m", "labbook.cli", "run", "tiny", "--until-decided"], cwd=root,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def measured(root) -> list[str]:
    file = root / "measured.log"
    return file.read_text().splitlines() if file.exists() else []


def test_what_was_measured_before_an_interrupt_counts_and_what_is_decided_is_left_alone(tiny):
    process, until = start(tiny), time.monotonic() + 300
    while len(measured(tiny)) < 5:
        assert process.poll() is None and time.monotonic() < until, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    stderr = process.communicate(timeout=300)[1]
    assert process.returncode == 130, stderr
    assert pages.note("tiny")["stopped"]["state"] == "interrupted"
    process = start(tiny)
    stderr = process.communicate(timeout=580)[1]
    assert process.returncode == 0 and "2 of 2 claims decided" in stderr, stderr
    assert max(Counter(measured(tiny)).values()) == 1, "a finished point was measured twice"
    files = [path for path in tiny.glob("data/records/*/tiny/sleeps/[!.]*.parquet") if ".series." not in path.name]
    assert Counter(read_meta(path)["setup"]["mode"] for path in files) == {"steady": 2 * 6, "wavering": 2 * 12}
    assert {one["id"]: one["verdict"] for one in claims.verdicts("tiny")} == dict.fromkeys(
        ("steady", "wavering"), "replicated")
    assert pages.note("tiny")["state"] == "ok" and "wavering: replicated" in pages.page("tiny").read_text()

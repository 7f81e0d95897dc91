"""Artifacts are fetched once, whole or not at all; a script stands in for `mvn`."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labbook.errors import LabError
from labbook.lab.cache.build import COMPLETE, build_once, is_whole
from labbook.systems import artifacts
from labbook.systems.artifacts import Artifact, fetch

STORE = Artifact("org.example", "store", "1.2")
# Says where it was called, writes one jar and one that it depends on.
MVN = """#!/bin/sh
echo called >> {calls}
cp pom.xml {calls}.pom
for word; do case $word in -DoutputDirectory=*) out=${{word#*=}};; esac; done
echo half > $out/store-1.2.jar
{then}
echo whole jar > $out/store-1.2.jar
echo another > $out/needed-3.jar
"""


@pytest.fixture
def maven(tmp_path, monkeypatch):
    calls = tmp_path / "calls"

    def stand_in(then=":"):
        tool = tmp_path / "bin" / "mvn"
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(MVN.format(calls=calls, then=then))
        tool.chmod(0o755)

    stand_in.calls = lambda: calls.read_text().count("called") if calls.exists() else 0
    stand_in.pom = lambda: Path(f"{calls}.pom").read_text()
    stand_in()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path / "cache"))
    return stand_in


def test_an_artifact_is_fetched_once(maven, tmp_path):
    folder = fetch(STORE)
    assert folder == tmp_path / "cache" / "artifacts" / "store-1.2"
    assert sorted(f.name for f in folder.glob("*.jar")) == ["needed-3.jar", "store-1.2.jar"]
    assert fetch(STORE) == folder and maven.calls() == 1
    assert "<artifactId>store</artifactId><version>1.2</version>" in maven.pom()
    assert str(STORE) == "org.example:store:1.2" and Artifact.parse(str(STORE)) == STORE


def test_parallel_runs_fetch_once(maven):
    maven("sleep 0.3")
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(fetch, [STORE] * 4))
    assert len(folders) == 1 and maven.calls() == 1


def test_a_killed_fetch_leaves_nothing_that_looks_whole(maven, tmp_path):
    maven(f"touch {tmp_path}/half; sleep 30")
    code = "from labbook.systems.artifacts import *; fetch(Artifact('org.example', 'store', '1.2'))"
    run = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        until = time.monotonic() + 20
        while not (tmp_path / "half").exists():
            assert time.monotonic() < until
            time.sleep(0.02)
    finally:
        mvn = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True).stdout
        for pid in (run.pid, *map(int, mvn.split())):
            os.kill(pid, signal.SIGKILL)
        run.wait()
    maven()
    folder = fetch(STORE)
    assert (folder / "store-1.2.jar").read_text() == "whole jar\n" and is_whole(folder)
    assert not any((folder.parent / ".drafts").iterdir())


@pytest.mark.parametrize("harm", [
    lambda folder: (folder / "store-1.2.jar").write_text("cut"),
    lambda folder: (folder / "needed-3.jar").unlink(),
    lambda folder: (folder / COMPLETE).unlink(),
    lambda folder: (folder / COMPLETE).write_text("{"),
])
def test_a_folder_that_is_not_whole_is_fetched_again(maven, harm):
    harm(fetch(STORE))
    assert is_whole(fetch(STORE)) and maven.calls() == 2


def test_a_failure_reports_mvns_output_and_leaves_nothing(maven, tmp_path):
    maven("echo '[ERROR] Could not find artifact'; exit 1")
    with pytest.raises(LabError, match=r"example:store:1.2: mvn ended with 1\n.*Could not find"):
        fetch(STORE)
    assert not (tmp_path / "cache" / "artifacts" / "store-1.2").exists()


def test_success_without_the_jar_is_failure(maven):
    maven("rm $out/*; exit 0")
    with pytest.raises(LabError, match="cannot fetch"):
        fetch(STORE)


def test_a_fetch_that_hangs_is_killed(maven, monkeypatch, tmp_path):
    monkeypatch.setattr(artifacts, "FETCH_SECONDS", 0.5)
    maven(f"echo $$ > {tmp_path}/pid; echo downloading; sleep 60")
    with pytest.raises(LabError, match="no result in 0.5 s\ndownloading"):
        fetch(STORE)
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_without_mvn_the_error_has_the_remedy(maven, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(LabError, match="no command mvn here. apt install maven"):
        fetch(STORE)


def test_build_once_builds_any_folder_once(maven):
    assert (build_once("thing", lambda folder: (folder / "a").write_text("1")) / "a").read_text() == "1"
    build_once("thing", lambda folder: pytest.fail("made twice"))


def test_drafts_of_killed_runs_go_and_those_of_runs_at_work_stay(maven, tmp_path):
    left = tmp_path / "cache" / "artifacts" / ".drafts" / "of-another-version" / "x"
    left.mkdir(parents=True)

    def fill(folder):
        assert not left.parent.exists()
        build_once("inner", lambda inner: (inner / "a").touch())
        (folder / "b").touch()  # its own draft is still there

    assert is_whole(build_once("outer", fill)) and is_whole(build_once("inner", fill))

"""Artifacts are fetched once, whole or not at all; a script stands in for `mvn`."""

import errno
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labbook.errors import LabError
from labbook.lab.cache import build
from labbook.lab.cache.build import COMPLETE, build_once, is_whole
from labbook.paths import cache_dir
from labbook.systems import artifacts
from labbook.systems.artifacts import Artifact, fetch

HASHES = Path(__file__).with_name("store.sha256")
STORE = Artifact("org.example", "store", "1.2", HASHES)
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
    assert str(STORE) == "org.example:store:1.2" and str(Artifact.parse(str(STORE))) == str(STORE)


def test_parallel_runs_fetch_once(maven):
    maven("sleep 0.3")
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(fetch, [STORE] * 4))
    assert len(folders) == 1 and maven.calls() == 1


def test_a_killed_fetch_leaves_nothing_that_looks_whole(maven, tmp_path):
    maven(f"touch {tmp_path}/half; sleep 30")
    code = ("from labbook.systems.artifacts import *\n"
            f"fetch(Artifact('org.example', 'store', '1.2', Path({str(HASHES)!r})))")
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
    lambda folder: (folder / "needed-3.jar").write_text("anothes\n"),    # of the same size
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
    monkeypatch.setattr(artifacts, "FETCH_SECONDS", 2)
    maven(f"echo $$ > {tmp_path}/pid; echo downloading; sleep 60")
    with pytest.raises(LabError, match="no result in 2 s\ndownloading"):
        fetch(STORE)
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_without_mvn_the_error_has_the_remedy(maven, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(LabError, match="no command mvn here. apt install maven"):
        fetch(STORE)


def test_a_build_waits_for_another_one_only_so_long_and_names_it(maven, monkeypatch, capsys):
    monkeypatch.setattr(build, "BUILD_SECONDS", 0.3)
    monkeypatch.setattr(build, "QUIET_SECONDS", 0.0)
    with build._locked(cache_dir() / "artifacts/.locks/thing"), pytest.raises(
            LabError, match=rf"waited 0.3 s for process {os.getpid()}, which builds thing"):
        build_once("thing", lambda folder: pytest.fail("made beside another"))
    assert capsys.readouterr().err.count(f"waiting for process {os.getpid()}, which builds thing") == 1
    build_once("thing", lambda folder: (folder / "a").touch())


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


@pytest.mark.parametrize("then, message", [
    ("trap 'printf other > $out/needed-3.jar' EXIT", "needed-3.jar has SHA-256 d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"
     ", pinned is "),
    ("trap 'rm $out/needed-3.jar' EXIT", "needed-3.jar did not come"),
    ("echo one more > $out/more-1.jar", "more-1.jar is not pinned"),
])
def test_another_jar_is_named_and_none_is_kept(maven, tmp_path, then, message):
    maven(then)
    with pytest.raises(LabError, match=f"^org.example:store:1.2: what came is not what store.sha256 has:\n  {message}"):
        fetch(STORE)
    cache = tmp_path / "cache" / "artifacts"
    assert not (cache / "store-1.2").exists() and not any((cache / ".drafts").iterdir())
    maven()
    assert is_whole(fetch(STORE)), "the next run begins anew"


def test_a_cache_of_before_there_were_hashes_is_checked_when_it_is_used(maven):
    def before(folder):
        (folder / "store-1.2.jar").write_text("whole jar\n")
        (folder / "needed-3.jar").write_text("forged\n")

    build_once(STORE.folder, before)
    assert (fetch(STORE) / "needed-3.jar").read_text() == "another\n" and maven.calls() == 1


def test_without_hashes_nothing_is_kept_and_the_lines_to_add_are_shown(maven, tmp_path):
    unknown = Artifact("org.example", "store", "1.2", tmp_path / "mine.sha256")
    unknown.hashes.touch()
    with pytest.raises(LabError, match="has no hashes in .*mine.sha256") as error:
        fetch(unknown)
    assert not (tmp_path / "cache" / "artifacts" / "store-1.2").exists()
    unknown.hashes.write_text(error.value.remedy.split("try again:\n")[1])
    assert is_whole(fetch(unknown))


def test_every_artifact_that_a_system_names_has_hashes():
    from labbook.systems.cassandra.config import VERSIONS
    from labbook.systems.sql import MYSQL_FILES

    named = {Artifact.parse(one) for version in VERSIONS.values() for one in version["artifacts"]} | {MYSQL_FILES}
    assert len(named) > 3
    for artifact in named:
        assert any(jar.startswith(artifact.name) for jar in artifacts.pinned(artifact)), artifact


def full(folder):
    raise OSError(errno.ENOSPC, "No space left on device", str(folder / "a"))


def full_says_a_tool(folder):
    raise LabError("cannot fetch x: mvn ended with 1\nNo space left on device")


@pytest.mark.parametrize("fill", [full, full_says_a_tool])
def test_a_full_disk_is_reported_and_leaves_what_was_there(maven, fill):
    before = build_once("thing", lambda folder: (folder / "a").write_text("1"))

    def half(folder):
        (folder / "a").write_text("half")
        fill(folder)

    with pytest.raises(LabError, match="^the disk is full: .*cache") as error:
        build_once("thing", half, lambda folder: False)
    assert "LABBOOK_CACHE" in error.value.remedy
    assert (before / "a").read_text() == "1" and not any((before.parent / ".drafts").iterdir())
    made = build_once("thing", lambda folder: (folder / "b").touch(), lambda folder: (folder / "b").exists())
    assert (made / "b").exists()

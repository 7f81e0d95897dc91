"""What benchmarks run besides labbook: pinned, checked, and left out with a reason where it cannot be had."""

import hashlib
import tarfile

import pytest
from labbook import paths
from labbook.errors import LabError
from labbook.pipeline.setup import peers

MAVEN = """#!/bin/sh
for word; do case $word in -DoutputDirectory=*) cp {file} "${{word#*=}}";; esac; done
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def tarball(tmp_path, monkeypatch):
    """A Maven that delivers a tarball, and its SHA-256."""
    (tmp_path / "thing-1").mkdir()
    (tmp_path / "thing-1/README").write_text("words")
    with tarfile.open(tmp_path / "thing-1-bin.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "thing-1", arcname="thing-1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mvn").write_text(MAVEN.format(file=tmp_path / "thing-1-bin.tar.gz"))
    (tmp_path / "bin/mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    return hashlib.sha256((tmp_path / "thing-1-bin.tar.gz").read_bytes()).hexdigest()


def test_a_tarball_is_unpacked_without_its_top_folder(tarball):
    assert (peers.Tarball("g", "thing", "1", tarball).fetch() / "README").read_text() == "words"


def test_a_tarball_that_is_not_the_pinned_one_is_not_kept(tarball):
    with pytest.raises(LabError, match="pinned is 0000"):
        peers.Tarball("g", "thing", "1", "0" * 64).fetch()
    assert not [*(paths.cache_dir() / "artifacts").glob("thing*")]


def test_a_program_that_cannot_be_built_is_left_out_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no cargo here" in peers.why_not(peers.LATTE) and "no cargo here" in peers.LATTE.why_missing()


def test_each_program_in_python_has_pins_with_hashes():
    for packages in peers.PYTHON:
        text = packages.pins.read_text()
        assert f"{packages.name}==" in text and "--hash=sha256:" in text


def test_why_a_program_failed_is_reported_wherever_it_writes_it():
    """Maven writes errors to stdout, and to stderr no more than its colours."""
    with pytest.raises(LabError) as failed:
        peers.run(["sh", "-c", r"echo no checksums; printf '\033[0m\033[0m' >&2; exit 1"], 10, "cannot fetch it")
    assert str(failed.value) == "cannot fetch it: no checksums"

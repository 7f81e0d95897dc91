"""A disk that is really full while a point is recorded: said, nothing lost, and gone on later."""

import os
import subprocess

import numpy as np
import pandas as pd
import pytest

from labbook.errors import LabError
from labbook.study.study import Study

SIZE_KIB = 1024
ROWS = 12_000   # of random numbers, about 100 KiB a point, so that some points fit


def sudo(*words):
    subprocess.run([*(["sudo", "-n"] if os.geteuid() else []), *words], check=True)


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    sudo("mount", "-t", "tmpfs", "-o", f"size={SIZE_KIB}k,mode=0777", "full-disk", str(disk))
    yield disk
    sudo("umount", str(disk))


@pytest.fixture
def study(tmp_path, small_disk, monkeypatch):
    root = tmp_path / "book"
    for folder in ("notebooks", "environments", "data/papers/demo"):
        (root / folder).mkdir(parents=True)
    (root / "_toc.yml").touch()
    (root / "environments/local.yml").write_text("provider: namespaces\n")
    monkeypatch.setenv("LABBOOK_ROOT", str(root))
    monkeypatch.setenv("LABBOOK_RECORDS", str(small_disk / "records"))
    return lambda: Study("demo")


def measure(study):
    """Measure what remains; the points that came out."""
    experiment = study.experiment("fill", vary={"number": range(30)})
    draw, done = np.random.default_rng(1), []
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            attempt.record(pd.DataFrame({"seconds": draw.random(ROWS)}))
        done.append(point.key)
    return done


def files(small_disk):
    return {p.name: p.stat().st_size for p in small_disk.rglob("*") if p.is_file()}


def test_a_full_disk_stops_the_study_and_loses_nothing(study, small_disk):
    with pytest.raises(LabError, match="disk is full.*Free some space"):
        measure(study())
    experiment = study().experiment("fill", vary={"number": range(30)})
    whole = list(experiment.summary()["point"])
    assert 3 < len(whole) < 30, "some points fitted, not all"
    assert all(len(experiment.rows(p)) == ROWS for p in experiment.points() if p.key in whole)
    assert set(files(small_disk)) == {f"{key}.parquet" for key in whole}, "no half written file"

    sudo("mount", "-o", f"remount,size={20 * SIZE_KIB}k", str(small_disk))
    again = study()
    done = measure(again)
    assert len(done) == 30 - len(whole) and not set(done) & set(whole), "no point twice"
    again.complete()


def test_a_disk_that_cannot_even_take_the_failure_says_so(study, small_disk):
    (small_disk / "filler").write_bytes(b"")
    with pytest.raises(OSError), open(small_disk / "filler", "wb") as file:
        while True:
            file.write(os.urandom(65536))
    one = study()
    point = one.experiment("fill", vary={"number": [1]}).points()[0]
    with pytest.raises(LabError, match="disk is full"):
        with one.attempt(point):
            raise ValueError("the system broke")

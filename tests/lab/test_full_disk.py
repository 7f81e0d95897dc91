"""Disks that are really full, of records and of a lab's host: reported, nothing lost, and gone on later."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_labs import backing_files, describe, new_id, small_machine  # noqa: F401 (a fixture)

from labbook.errors import LabbookError, LabError
from labbook.lab import Environment, Lab
from labbook.lab.cache.build import build_once
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
    return {p.name: p.stat().st_size for p in small_disk.rglob("*") if p.is_file() and p.name != ".writing.lock"}


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


LAB = "sites: [lan]\nhosts: {h1: {site: lan, role: db, limits: {disk: {size: 32M}}}}\n"


def write(host, mb):
    """A server that writes so much to its log, on the host's own disk, and then says that it is ready."""
    server = host.start("server", f"sh -c 'head -c {mb}M /dev/zero && echo ready && sleep 100'")
    host.wait_for(lambda: "ready" in server.log_tail(1), "the server", 30, server)
    server.kill()


def test_a_hosts_disk_that_fills_is_reported_at_its_point_and_the_lab_gives_it_back(study):
    root = Path(os.environ["LABBOOK_ROOT"])
    (root / "data/papers/demo/lab.yml").write_text(LAB)
    one, labs = study(), []
    experiment = one.experiment("fill", vary={"mb": [1, 100]})
    for point in experiment.remaining():
        with one.attempt(point) as attempt:
            labs.append(attempt.lab)
            write(attempt.lab.host("h1"), point.mb)
            attempt.record(pd.DataFrame({"seconds": [1.0] * ROWS}))
    with pytest.raises(LabbookError, match="1 point failed(.|\n)*the disk of h1 is full"):
        one.complete()
    whole, = (p for p in experiment.points() if p.key in list(experiment.summary()["point"]))
    assert whole.mb == 1 and len(experiment.rows(whole)) == ROWS
    assert labs and not any(lab.folder.exists() for lab in labs)
    backing = backing_files()
    assert not [lab.id for lab in labs if any(lab.id in path for path in backing)]


def test_what_a_host_may_have_lost_since_the_disk_below_its_own_was_full_is_no_record(study, small_machine):
    """The host's own file system sees room, and takes what is then lost when it is written back."""
    root = Path(os.environ["LABBOOK_ROOT"])
    (root / "data/papers/demo/lab.yml").write_text(LAB.replace("32M", "512M"))
    (root / "environments/local.yml").write_text(f"provider: namespaces\nstate: {small_machine}\n")
    one, free = study(), os.statvfs(small_machine).f_bavail
    experiment = one.experiment("fill", vary={"mb": [1, 200]})
    for point in experiment.remaining():
        with one.attempt(point) as attempt:
            attempt.lab.host("h1").run(f"head -c {point.mb}M /dev/urandom > data && sync || true")
            attempt.record(pd.DataFrame({"seconds": [1.0] * ROWS}))
    with pytest.raises(LabbookError, match="the disk below the one of h1 is full, so that what h1 wrote may be lost"):
        one.complete()
    whole, = (p for p in experiment.points() if p.key in list(experiment.summary()["point"]))
    assert whole.mb == 1
    assert not list(small_machine.iterdir())
    assert os.statvfs(small_machine).f_bavail >= free - 100, "the space is given back"


def test_a_program_that_finds_no_room_to_start_says_so():
    limits = {"disk": {"size": "32M"}}
    with Lab.up(describe({"h1": limits}), Environment("local"), new_id()) as lab:
        host = lab.host("h1")
        with pytest.raises(LabError, match="No space left on device"):
            host.run("head -c 100M /dev/zero > big")
        with pytest.raises(LabError, match="No space left on device"):
            host.start("server", "sleep 100")
        host.run("rm big")
        host.start("server", "sleep 100").kill()


@pytest.mark.parametrize("fill", [
    lambda folder: (folder / "jar").write_bytes(bytes(4 * SIZE_KIB << 10)),
    lambda folder: download(f"dd if=/dev/zero of={folder}/jar bs=1k count={4 * SIZE_KIB}"),
])
def test_a_download_that_fills_the_cache_leaves_what_is_there_and_goes_on_later(small_disk, monkeypatch, fill):
    monkeypatch.setenv("LABBOOK_CACHE", str(small_disk / "cache"))
    build_once("before", lambda folder: (folder / "jar").write_bytes(b"whole"))
    before = files(small_disk)
    with pytest.raises(LabError, match=f"^the disk is full: {small_disk}.*Free some space for {small_disk}/cache"):
        build_once("large", fill)
    assert {name: size for name, size in files(small_disk).items() if size} == {
        name: size for name, size in before.items() if size}, "nothing half-made takes space"
    sudo("mount", "-o", f"remount,size={20 * SIZE_KIB}k", str(small_disk))
    assert (build_once("large", fill) / "jar").stat().st_size == 4 * SIZE_KIB << 10


def download(command):
    """A tool in the place of mvn, uv or pip, and the error that labbook makes of it."""
    done = subprocess.run(command, shell=True, text=True, capture_output=True)
    if done.returncode:
        raise LabError(f"cannot fetch a jar: it ended with {done.returncode}\n{done.stderr}")

"""Records: whole or absent, with all that belongs to them; broken files are renamed."""

import errno
import json
import multiprocessing
import os
import signal
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from labbook.atomic_files import write_whole
from labbook.errors import InputError, LabError
from labbook.study import record
from labbook.study.record import Records, read_meta


@pytest.fixture
def records(tmp_path):
    return Records(tmp_path / "deep" / "speed")


def put(records, key="k", value=1, **series):
    records.write(key, pa.table({"v": [value]}), {"key": key, "value": np.float64(value)}, series)


def test_what_is_written_is_read(records):
    put(records, value=3, disk=pa.table({"sector": [1, 2]}))
    assert records.meta("k") == {"key": "k", "value": 3.0}
    assert list(records.rows("k")["v"]) == [3]
    assert list(records.series("k", "disk")["sector"]) == [1, 2]
    assert records.meta("other") is None
    with pytest.raises(InputError, match="no such record"):
        records.series("k", "net")


@pytest.mark.parametrize("damage", [
    lambda path: path.write_bytes(path.read_bytes()[:-20]),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(b"PAR1 no Parquet PAR1"),
    lambda path: pd.DataFrame({"v": [1]}).to_parquet(path),
], ids=["truncated", "empty", "nonsense", "without provenance"])
def test_a_broken_record_is_set_aside_and_said(records, damage):
    put(records)
    damage(records.path("k"))
    with pytest.warns(UserWarning, match="broken.*measured again"):
        assert records.meta("k") is None
    assert records.path("k").with_name("k.parquet.broken").exists()
    assert records.meta("k") is None


def test_a_record_under_a_wrong_name_is_no_record_of_that_point(records):
    put(records)
    os.rename(records.path("k"), records.path("other"))
    with pytest.warns(UserWarning, match="point k"):
        assert records.meta("other") is None


def test_an_older_record_is_kept_until_the_new_one_is_written(records, monkeypatch):
    put(records, value=1)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "no disk")))
        with pytest.raises(LabError, match="could not be written"):
            put(records, value=2)
    assert records.meta("k")["value"] == 1
    put(records, value=2)
    assert records.meta("k")["value"] == 2
    old, = (records.folder / "superseded").iterdir()
    assert read_meta(old)["value"] == 1


def test_a_full_disk_is_said_and_loses_nothing(records, monkeypatch):
    put(records, value=1)
    files = set(records.folder.iterdir())

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LabError, match="disk is full.*Earlier records are complete"):
        put(records, value=2)
    assert records.meta("k")["value"] == 1 and set(records.folder.iterdir()) == files


def die_half_way(folder):
    def write(file):
        file.write(b"half")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    write_whole(folder / "k.parquet", write)


def hold(folder, ready, go):
    def write(file):
        ready.set()
        go.wait(20)
        file.write(b"whole")
    write_whole(folder / "slow", write)


def test_what_a_killed_run_left_is_cleaned_and_a_live_one_is_left_alone(records):
    context = multiprocessing.get_context("fork")
    put(records, "earlier")
    killed = context.Process(target=die_half_way, args=(records.folder,))
    killed.start()
    killed.join()
    ready, go = context.Event(), context.Event()
    live = context.Process(target=hold, args=(records.folder, ready, go))
    live.start()
    assert ready.wait(20)
    assert len(list(records.folder.glob(".tmp-*"))) == 2
    records.clean()
    left, = records.folder.glob(".tmp-*")
    assert "slow" in left.name and records.meta("k") is None
    go.set()
    live.join()
    assert (records.folder / "slow").read_bytes() == b"whole"
    assert {p.name for p in records.folder.iterdir()} == {"earlier.parquet", "slow"}


def test_failures_are_told_and_forgotten(records):
    assert records.failure("k") is None
    records.write_failure("k", {"key": "k", "message": "it broke"}, "Traceback: it broke")
    told = records.failure("k")
    assert told["message"] == "it broke" and "it broke" in open(told["traceback"]).read()
    put(records)
    assert records.failure("k") is None and not os.path.exists(told["traceback"])


def test_numbers_of_numpy_and_times_become_json():
    told = {"a": np.int64(1), "b": np.array([1.5]), "c": {2, 1}, "d": pd.Timestamp(0)}
    assert json.loads(json.dumps(told, default=record.plain)) == {
        "a": 1, "b": [1.5], "c": [1, 2], "d": "1970-01-01T00:00:00"}


def test_reading_what_was_recorded_is_quick(records):
    for i in range(200):
        put(records, f"k{i}")
    start = time.process_time()
    assert all(records.meta(f"k{i}") for i in range(200))
    assert time.process_time() - start < 1

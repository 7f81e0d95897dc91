"""Records: whole or absent, with all that belongs to them; broken files are renamed."""

import errno
import json
import multiprocessing
import os
import random
import signal
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from damage import damaged

from labbook.atomic_files import write_whole
from labbook.errors import InputError, LabError
from labbook.study.records import record, sealed
from labbook.study.records.record import Records, grid_keys, grid_text, read_meta


@pytest.fixture
def records(tmp_path):
    return Records(tmp_path / "deep" / "speed")


def put(records, key="k", value=1, **series):
    records.write(key, pa.table({"v": [value]}), {"key": key, "value": np.float64(value)}, series)


def test_what_is_written_is_read(records):
    put(records, value=3, disk=pa.table({"sector": [1, 2]}))
    meta = records.meta("k")
    assert (meta["key"], meta["value"], list(meta["series"])) == ("k", 3.0, ["disk"])
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
def test_a_broken_record_is_set_aside_and_reported(records, damage):
    put(records)
    damage(records.path("k"))
    with pytest.warns(UserWarning, match="damaged.*measured again"):
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


def test_an_older_record_is_copied_where_the_file_system_has_no_hard_links(records, monkeypatch):
    put(records, value=1)
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no links here")))
    put(records, value=2)
    old, = (records.folder / "superseded").iterdir()
    assert (records.meta("k")["value"], read_meta(old)["value"]) == (2, 1)


def test_a_full_disk_is_reported_and_loses_nothing(records, monkeypatch):
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
    assert {p.name for p in records.folder.iterdir()} == {".writing.lock", "earlier.parquet", "slow"}


def test_failures_are_reported_and_forgotten(records):
    assert records.failure("k") is None
    records.write_failure("k", {"key": "k", "message": "it broke"}, "Traceback: it broke")
    failure = records.failure("k")
    assert failure["message"] == "it broke" and "it broke" in open(failure["traceback"]).read()
    put(records)
    assert records.failure("k") is None and not os.path.exists(failure["traceback"])


def test_numbers_of_numpy_and_times_become_json():
    values = {"a": np.int64(1), "b": np.array([1.5]), "c": {2, 1}, "d": pd.Timestamp(0)}
    assert json.loads(json.dumps(values, default=record.plain)) == {
        "a": 1, "b": [1.5], "c": [1, 2], "d": "1970-01-01T00:00:00"}


@pytest.fixture
def original(records):
    """A record as a study writes it: rows of numbers and text, a summary, a series; its files."""
    draw = np.random.default_rng(4)
    table = pa.Table.from_pandas(pd.DataFrame({"seconds": draw.random(60), "op": ["read", "write"] * 30}))
    meta = {"key": "k", "summary": {"mean_ms": 12.5, "n": 60}, "setup": {"system": "a"}, "repeat": 1}
    records.write("k", table, meta, {"disk": pa.table({"sector": [1, 2, 3]})})
    return {path: path.read_bytes() for path in records.folder.glob("*.parquet")}


def test_a_thousand_damages_to_a_record_or_its_series_are_all_noticed(records, original):
    draw, noticed = random.Random(12), 0
    for _ in range(1000):
        hurt = draw.choice(sorted(original))
        wrong = damaged(original[hurt], draw)
        for path, data in original.items():
            path.write_bytes(wrong if path == hurt else data)
        if wrong == original[hurt]:     # zeros over zeros
            assert records.meta("k")
            continue
        with pytest.warns(UserWarning, match="the record .*k.parquet is damaged"):
            assert records.meta("k") is None
        noticed += 1
        records.path("k").with_name("k.parquet.broken").unlink()
    assert noticed > 950 and len(records.set_aside) == noticed


@pytest.mark.parametrize("read", [lambda records: records.rows("k"), lambda records: records.series("k", "disk")],
                         ids=["rows", "series"])
@pytest.mark.parametrize("hurt", ["record", "series"])
def test_rows_and_series_of_a_damaged_record_are_not_read(records, original, read, hurt):
    assert len(read(records))
    path, = (path for path in original if ("series" in path.name) == (hurt == "series"))
    path.write_bytes(original[path].replace(b"PAR1", b"PAR2", 1))
    with pytest.warns(UserWarning, match="series disk" if hurt == "series" else "its digest"), \
            pytest.raises(InputError, match="no such record"):
        read(records)


def test_a_series_that_is_lost_or_of_another_record_damages_its_record(records, original):
    path, = (path for path in original if "series" in path.name)
    path.unlink()
    with pytest.warns(UserWarning, match="its series disk: it is missing"):
        assert records.meta("k") is None
    put(records, "k", disk=pa.table({"sector": [1]}))
    put(records, "other", disk=pa.table({"sector": [2]}))
    ours, = records.folder.glob("k.*.series.parquet")
    theirs, = records.folder.glob("other.*.series.parquet")
    os.replace(theirs, ours)
    with pytest.warns(UserWarning, match="its series disk: it is of another record"):
        assert records.meta("k") is None


def test_a_crash_between_series_and_rows_leaves_the_earlier_pair(records, monkeypatch):
    put(records, value=1, disk=pa.table({"sector": [1]}))
    with monkeypatch.context() as crash:
        crash.setattr(sealed, "write", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            put(records, value=2, disk=pa.table({"sector": [2]}))
    assert records.meta("k")["value"] == 1 and list(records.series("k", "disk")["sector"]) == [1]
    put(records, value=3, disk=pa.table({"sector": [3]}))
    assert list(records.series("k", "disk")["sector"]) == [3]
    assert len(list(records.folder.glob("*.series.parquet"))) == 1, "no series of earlier attempts stay"


def test_two_writers_of_a_point_leave_one_of_both_records_whole(records, monkeypatch):
    other, began = Records(records.folder), threading.Event()
    second = threading.Thread(target=lambda: (began.set(), put(other, value=2, disk=pa.table({"sector": [2]}))))
    write_series = Records._write_series

    def meanwhile(self, key, name, table):
        digest = write_series(self, key, name, table)
        if not began.is_set():
            second.start()
            began.wait()
            second.join(0.2)    # without a lock it would be done by now
        return digest

    monkeypatch.setattr(Records, "_write_series", meanwhile)
    put(records, value=1, disk=pa.table({"sector": [1]}))
    second.join()
    assert records.meta("k")["value"] == 2 and list(records.series("k", "disk")["sector"]) == [2]
    old, = (records.folder / "superseded").iterdir()
    assert read_meta(old)["value"] == 1, "the first writer's record was whole before the second's"


def test_records_of_earlier_versions_are_read_as_before(records):
    """They have no digest, and their series no digest in their names."""
    records.folder.mkdir(parents=True)
    old = pa.table({"v": [7]}).replace_schema_metadata({record.META: json.dumps({"key": "k", "value": 7})})
    pa.parquet.write_table(old, records.path("k"))
    pa.parquet.write_table(pa.table({"sector": [9]}), records.folder / "k.disk.series.parquet")
    assert records.meta("k") == {"key": "k", "value": 7} and list(records.rows("k")["v"]) == [7]
    assert list(records.series("k", "disk")["sector"]) == [9]
    put(records, value=8, disk=pa.table({"sector": [10]}))
    assert records.meta("k")["value"] == 8 and list(records.series("k", "disk")["sector"]) == [10]


def test_a_record_replaced_while_it_is_read_is_not_set_aside(records, monkeypatch):
    """Another process has written it anew, and removed the series of the one before."""
    put(records, value=1, disk=pa.table({"sector": [1]}))
    real, calls = Records._check_series, []

    def late(*arguments):
        if not calls:
            calls.append(1)
            put(Records(records.folder), value=2, disk=pa.table({"sector": [2]}))
        real(*arguments)

    monkeypatch.setattr(Records, "_check_series", staticmethod(late))
    assert records.meta("k")["value"] == 2 and not records.set_aside


def test_a_list_of_points_is_read_as_written_and_its_damage_is_noticed(tmp_path):
    keys, path, draw = [f"{n:020x}" for n in range(30)], tmp_path / "full.grid", random.Random(2)
    for written in (keys, []):
        path.write_text(grid_text(written))
        assert grid_keys(path) == written
    path.write_text("".join(f"{key}\n" for key in keys))
    assert grid_keys(path) == keys, "of an earlier version"
    whole = grid_text(keys).encode()
    for _ in range(300):
        wrong = damaged(whole, draw)
        if wrong.rstrip(b"\n") in (whole.rstrip(b"\n"), b""):
            continue
        path.write_bytes(wrong)
        with pytest.raises(InputError, match="list of a run's points is damaged"):
            grid_keys(path)

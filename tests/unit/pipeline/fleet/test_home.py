"""Records come home whole or not at all."""

import pandas as pd
import pyarrow as pa
import pytest

from labbook.pipeline.fleet.home import Home
from labbook.study.records.record import Records

KEY = "0" * 20


def table(value=1.0):
    return pa.Table.from_pandas(pd.DataFrame({"seconds": [value]}))


@pytest.fixture
def files(tmp_path):
    """Of a point with a series, on its machine."""
    records = Records(tmp_path / "machine")
    records.write(KEY, table(), {"key": KEY}, {"disk": table(2.0)})
    return records.files(KEY)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_RECORDS", str(tmp_path / "records"))
    return Home("fleet-rack")


def test_a_point_comes_with_its_series_and_replaces_its_failure(files, home):
    home.take_failure("s", "e", KEY, {"message": "it broke"}, "trace")
    assert home.records("s", "e").failure(KEY)["message"] == "it broke"
    assert home.take("s", "e", KEY, files) is None
    records = home.records("s", "e")
    assert records.meta(KEY)["key"] == KEY and records.failure(KEY) is None
    assert list(records.series(KEY, "disk")["seconds"]) == [2.0]
    home.take_failure("s", "e", KEY, {"message": "late"}, "trace")
    assert records.failure(KEY) is None, "it has a record meanwhile"


def test_a_failure_after_a_stale_record_comes_home_and_one_before_a_record_does_not(home):
    records = home.records("s", "e")
    records.write(KEY, table(), {"key": KEY, "provenance": {"during": {"ended": 100.0}}}, {})
    for ended, comes in ((90.0, False), (110.0, True)):
        home.take_failure("s", "e", KEY, {"message": "no", "provenance": {"during": {"ended": ended}}}, "trace")
        assert bool(records.failure(KEY)) == comes


def cut(files, of):
    name = next(name for name in files if of in name)
    return files | {name: files[name][:-20]}


@pytest.mark.parametrize("spoil", [
    lambda files: cut(files, ".series."),
    lambda files: cut(files, f"{KEY}.parquet"),
    lambda files: {name: content for name, content in files.items() if ".series." not in name},
    lambda files: {},
])
def test_of_a_damaged_point_nothing_is_written(files, home, spoil):
    assert "damaged" in home.take("s", "e", KEY, spoil(files))
    folder = home.records("s", "e").folder
    assert not folder.exists() or not list(folder.iterdir())


def test_a_record_of_another_point_is_refused(files, home):
    other = "1" * 20
    assert "damaged" in home.take("s", "e", other, {f"{other}.parquet": files[f"{KEY}.parquet"]})
    assert home.take("s", "e", "../up", files) == "'../up' is no key of a point"

"""What is published of a study as a zipped RO-Crate, with the raw rows that this machine has."""

import hashlib
import json
import zipfile

import pytest
from study_stand_ins import operations

from labbook.errors import InputError
from labbook.pipeline.publishing import archive, publish
from labbook.study.publication import published

PAPER = """title: 速さの研究
translation: A study of speed
year: 2010
authors:
  - {name: 山田 太郎, romanised: Taro Yamada}
"""


@pytest.fixture
def study(make, measure, root):
    study, speed = make(repeats=6)
    measure(study, speed, lambda point: 0.02 if point.system == "a" else 0.01)
    study.complete()
    (root / "data/papers/demo/paper.yml").write_text(PAPER)
    publish.export(study, "quick")
    return study


def packed(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_a_crate_lists_each_of_its_files_with_its_digest(study):
    files = packed(archive.archive("demo"))
    about = json.loads(files.pop(archive.METADATA))
    by_id = {one["@id"]: one for one in about["@graph"]}
    assert about["@context"] == "https://w3id.org/ro/crate/1.1/context"
    assert by_id[archive.METADATA]["about"] == {"@id": "./"}
    assert {part["@id"] for part in by_id["./"]["hasPart"]} == set(files)
    for name, data in files.items():
        assert by_id[name]["sha256"] == hashlib.sha256(data).hexdigest() and by_id[name]["contentSize"] == str(len(data))
    references = [value["@id"] for one in about["@graph"] for value in one.values() if isinstance(value, dict)]
    assert {one for one in references if not one.startswith("https:")} <= {*by_id, "LICENSE"}
    records = [one for name, one in by_id.items() if name.startswith("records/")]
    assert records and {one["name"] for one in records} == {"Raw rows of a point of speed"}
    assert by_id["#demo"]["name"] == "速さの研究" and by_id["./"]["datePublished"].count("-") == 2


def test_a_crate_has_the_published_sets_and_the_raw_rows_of_their_points(study):
    files = packed(archive.archive("demo"))
    records = [name for name in files if name.startswith("records/")]
    assert len(records) == len(study.experiments["speed"].points())
    assert any(name.startswith("published/") and name.endswith("/speed.parquet") for name in files)
    assert "paper/claims.yml" in files


def test_a_point_that_was_measured_again_is_not_the_published_one(study, measure):
    speed = study.experiments["speed"]
    point = speed.points()[0]
    name = f"records/{study.place}/speed/{point.key}.parquet"
    assert name in packed(archive.archive("demo"))
    study.records("speed").path(point.key).unlink()
    measure(study, speed, lambda point: 0.03)
    assert name not in packed(archive.archive("demo"))


def test_the_raw_rows_of_added_repeats_and_of_every_set_are_packed(study, measure, root):
    speed = study.experiments["speed"]
    for point in speed.points():
        study.records("speed").path(point.key).unlink()
    measure(study, speed, lambda point: 0.03 if point.system == "a" else 0.01)
    publish.export(study, "quick", add=True)
    assert len(published.rows("demo", published.sets("demo")[0], "speed")) == 2 * len(speed.points())
    names = [name for name in packed(archive.archive("demo")) if name.startswith("records/")]
    assert len(names) == len(speed.points()), "those that are still here, under the keys that they were measured by"


def test_points_of_one_key_that_two_places_measured_are_both_packed(study, measure, root):
    """One had taken the place of the other."""
    speed, records = study.experiments["speed"], root / "data/records"
    (records / study.place).rename(records / "fleet-rack")
    measure(study, speed, lambda point: 0.03)
    study.complete()
    publish.export(study, "quick", add=True)
    names = [name for name in packed(archive.archive("demo")) if name.startswith("records/")]
    assert len(names) == 2 * len(speed.points())
    assert {name.split("/")[1] for name in names} == {study.place, "fleet-rack"}


def test_published_repeats_that_were_measured_again_are_packed_from_where_they_lie(study, root):
    speed, key = study.experiments["speed"], study.experiments["speed"].points()[0].key
    before = study.records("speed").path(key).read_bytes()
    for _ in range(2):      # the first of these is neither published nor there
        for point in speed.points():
            with study.attempt(point) as attempt:
                attempt.record(operations())
    publish.export(study, "quick", add=True)
    (study.records("speed").folder / "superseded/damaged.parquet").write_text("no record")
    files = {name: data for name, data in packed(archive.archive("demo")).items() if name.startswith("records/")}
    old = {name: data for name, data in files.items() if name.startswith(f"records/{study.place}/speed/superseded/")}
    assert len(old) == len(speed.points()) and len(files) == 2 * len(old)
    assert before in old.values() and before not in (files[name] for name in files.keys() - old.keys())


def test_the_same_files_give_the_same_bytes(study):
    first = archive.archive("demo").read_bytes()
    assert archive.archive("demo").read_bytes() == first


def test_a_study_without_published_results_has_nothing_to_archive(make, root):
    make()
    with pytest.raises(InputError, match="nothing is published"):
        archive.archive("demo")

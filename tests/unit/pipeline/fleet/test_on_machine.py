"""A machine measures one job at a time, whoever gives it."""

import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace

import pyarrow as pa
import pytest

from labbook import paths
from labbook.pipeline.fleet import on_machine

FIRST, OTHER = "1" * 16, "2" * 16


@pytest.fixture
def begun(book, monkeypatch):
    """Processes in the place of workers: they have begun, and come no further."""
    processes = []

    def begin(command, **more):
        processes.append(subprocess.Popen(["sleep", "600"], **more))
        return processes[-1]

    monkeypatch.setattr(on_machine, "subprocess", SimpleNamespace(
        Popen=begin, DEVNULL=subprocess.DEVNULL, STDOUT=subprocess.STDOUT))
    monkeypatch.setattr(on_machine, "_workers", {})
    yield processes
    for one in processes:
        kill(one)


def kill(process):
    process.kill()
    process.wait()


def job(id):
    return {"id": id, "study": "s", "points": {}, "environment": paths.LOCAL}


def test_another_driver_begins_nothing_from_the_first_moment_of_a_job_to_its_end(begun, monkeypatch):
    assert on_machine.start(job(FIRST)) is None
    monkeypatch.setattr(on_machine, "_workers", {})     # an engine of another driver has none
    assert FIRST in on_machine.start(job(OTHER)) and on_machine.under_way() == FIRST
    kill(begun[0])
    assert on_machine.under_way() is None
    assert on_machine.poll(FIRST, {})["state"] == on_machine.KILLED
    assert on_machine.start(job(OTHER)) is None and len(begun) == 2


def test_of_two_drivers_at_the_same_moment_one_begins(begun, monkeypatch):
    look, both = on_machine.under_way, threading.Barrier(2)

    def look_and_wait_for_the_other():
        found = look()
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        return found

    monkeypatch.setattr(on_machine, "under_way", look_and_wait_for_the_other)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(on_machine.start, (job(FIRST), job(OTHER))))
    assert answers.count(None) == 1 and len(begun) == 1


def test_a_job_that_is_given_twice_is_one(begun):
    assert [on_machine.start(job(FIRST)) for _ in range(2)] == [None, None] and len(begun) == 1


def test_a_record_of_before_the_job_comes_only_once_it_has_ended_well_without_a_newer_one(begun):
    """It may be of earlier code: it had come at once, and the point that was measured again then never did."""
    older, newer = "a" * 20, "b" * 20
    of = job(FIRST) | {"points": {"e": [older, newer]}}
    records = next(records for _, _, records in on_machine._each(of))

    def write(*keys):
        for key in keys:
            records.write(key, pa.table({"seconds": [1.0]}), {"key": key}, {})

    def come(have):
        reply = on_machine.poll(FIRST, have)
        return [one["key"] for one in reply["records"]], have | {one["key"]: one["at"] for one in reply["records"]}

    write(older, newer)
    on_machine.start(of)
    assert come({}) == ([], {})
    write(newer)
    came, have = come({})
    assert came == [newer]
    kill(begun[0])
    assert come(have)[0] == [], "its process was killed"
    (on_machine._folder(FIRST) / "state.json").write_text('{"state": "failed", "error": "it broke"}')
    assert come(have)[0] == []
    (on_machine._folder(FIRST) / "state.json").write_text('{"state": "ok", "error": null}')
    assert come(have)[0] == [older]


def test_a_job_of_which_there_is_but_a_folder_never_began(begun):
    on_machine._folder(FIRST).mkdir(parents=True)       # its engine was killed just then
    assert on_machine.poll(FIRST, {})["state"] == on_machine.UNKNOWN
    assert on_machine.start(job(FIRST)) is None and len(begun) == 1


def test_the_failure_of_a_point_comes_beside_the_record_of_before_the_job_and_of_no_later_one(begun):
    """With a record of earlier code it stayed there, and nobody heard why the point was not measured."""
    key = "a" * 20
    of = job(FIRST) | {"points": {"e": [key]}}
    records = next(records for _, _, records in on_machine._each(of))
    records.write(key, pa.table({"seconds": [1.0]}), {"key": key}, {})
    on_machine.start(of)
    kill(begun[0])
    records.write_failure(key, {"message": "no"}, "trace")
    assert [one["failure"]["message"] for one in on_machine.poll(FIRST, {})["failures"]] == ["no"]
    records.write(key, pa.table({"seconds": [2.0]}), {"key": key}, {})
    records.write_failure(key, {"message": "no"}, "trace")
    assert on_machine.poll(FIRST, {})["failures"] == []

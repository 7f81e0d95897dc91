"""Clients of registers and sets of files, in a folder of this machine."""

import itertools
import os
import time

import pytest

from labbook.workloads.files import registers
from labbook.workloads.files.on_host import registers as on_host
from labbook.workloads.files.on_host.registers import (
    BLOCKED,
    FAILED,
    LIST,
    OK,
    READ,
    UNKNOWN,
    WRITE,
    NotSent,
)
from labbook.workloads.histories.calls import THERE, metrics


@pytest.fixture
def spec(tmp_path):
    for home in ("a", "b"):
        (tmp_path / "mount" / home).mkdir(parents=True)
    return dict(paths=[str(tmp_path / "mount")], folders=["a/run", "b/run"], keys=2, seed=1, clients=3,
                all_clients=3, first_client=0, calls_per_s=1000.0, seconds_at_most=60.0, call_seconds=1.0)


@pytest.fixture
def clients(spec, tmp_path):
    return [on_host.Client(spec, number, str(tmp_path / f"part.{number}"), [0]) for number in range(3)]


def steps(tmp_path, number=0, cut_s=None):
    return on_host.read_diary(str(tmp_path / f"part.{number}"), cut_s)[0]


def test_calls_on_a_file_system_that_keeps_its_word_have_a_history_without_anomaly(spec, clients, tmp_path):
    times = (float(time) for time in itertools.count())
    for count in range(200):
        for one in clients:
            one.call(count, lambda: next(times))
    history = sorted((call for number in range(3) for call in registers.calls_of(number, steps(tmp_path, number))),
                     key=lambda call: call.invoked_s)
    assert {(call.op, call.outcome) for call in history} == {(WRITE, OK), (READ, OK), (LIST, OK)}
    assert {call.key for call in history if call.op == READ} == {"0/r0", "0/r1", "1/r0", "1/r1"}
    assert {call.key for call in history if call.op == LIST} == {"0/set/", "1/set/"}
    found = metrics(history)
    assert found["checked_calls"] == 600 and not any(
        found[name] for name in ("lost_writes", "stale_reads", "phantom_values", "backward_reads"))
    (values, sets), = on_host.contents(spec)
    written = {call.key: call.value for call in history if call.op == WRITE and call.value != THERE}
    assert values == written
    assert {key for keys in sets.values() for key in keys} == {
        call.key for call in history if call.value == THERE}


def test_a_register_that_nobody_wrote_is_absent_and_a_set_empty(spec, clients):
    assert on_host.contents(spec) == [(
        {"0/r0": None, "0/r1": None, "1/r0": None, "1/r1": None}, {"0/set/": [], "1/set/": []})]


def test_a_write_certainly_had_no_effect_only_before_the_rename(tmp_path, monkeypatch):
    path, new = str(tmp_path / "r0"), str(tmp_path / "new")
    with pytest.raises(NotSent, match="FileNotFoundError"):
        on_host.replace(path, str(tmp_path / "none/new"), "1")
    monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(5, "lost")))
    with pytest.raises(OSError) as raised:
        on_host.replace(path, new, "1")
    assert on_host.outcome_of(WRITE, raised.value) == UNKNOWN
    assert on_host.outcome_of(WRITE, NotSent("")) == on_host.outcome_of(READ, raised.value) == FAILED
    assert on_host.outcome_of(WRITE, FileExistsError()) == UNKNOWN


def test_an_error_is_a_step_of_its_kind(spec, clients, tmp_path, monkeypatch):
    monkeypatch.setattr(on_host.os, "open", lambda *_, **__: (_ for _ in ()).throw(OSError(5, "lost")))
    for count in range(50):
        clients[0].call(count, lambda: 0.0)
    found = {(op, key.rpartition("/")[2][:1] == "r", outcome)
             for op, key, _, _, _, outcome, error in steps(tmp_path) if error}
    assert found == {(WRITE, True, FAILED), (WRITE, False, UNKNOWN), (READ, True, FAILED)}


def test_a_call_that_does_not_return_is_the_last_step_and_its_write_unknown(tmp_path):
    path = tmp_path / "part.0"
    diary = on_host.Diary(str(path))
    diary.begin(READ, "0/r0", None, 0.5)
    diary.end("1.1", 0.6, OK, "")
    diary.used(0.25)
    diary.begin(WRITE, "0/r0", "0.1", 1.0)
    with open(path, "a") as file:
        file.write('["end", "half a li')     # which a killed client left
    assert on_host.read_diary(str(path), 9.0) == (
        [[READ, "0/r0", "1.1", 0.5, 0.6, OK, ""], [WRITE, "0/r0", "0.1", 1.0, 9.0, UNKNOWN, BLOCKED]],
        0.25, True)


def test_clients_stop_when_they_are_told_or_their_time_is_up(spec, tmp_path):
    stopped = [0]
    one = on_host.Client(spec | {"seconds_at_most": 1.0}, 0, str(tmp_path / "part.0"), stopped)
    one.measure(time.time())
    assert steps(tmp_path)
    stopped[0] = 1
    other = on_host.Client(spec, 1, str(tmp_path / "part.1"), stopped)
    other.measure(time.time())
    assert not steps(tmp_path, 1)

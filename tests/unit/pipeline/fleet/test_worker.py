"""When a job on a machine ends before it is measured."""

import json
import os
import time
from types import SimpleNamespace

import pytest

from labbook.pipeline.fleet import worker
from labbook.pipeline.fleet.worker import Orders


@pytest.fixture
def orders(tmp_path):
    (tmp_path / "heartbeat").touch()
    return Orders(tmp_path, 60)


def test_it_goes_on_while_the_driver_is_heard_of(orders):
    assert orders.count == 0 and orders.why is None


def test_it_ends_when_it_is_told_to(orders):
    (orders.folder / "stop").touch()
    assert orders.count == 1 and orders.why == "stopped"


@pytest.mark.parametrize("silence", ["long", "never"])
def test_it_ends_without_its_driver(orders, silence):
    heartbeat = orders.folder / "heartbeat"
    if silence == "long":
        os.utime(heartbeat, (time.time() - 61,) * 2)
    else:
        heartbeat.unlink()
    assert orders.count == 1 and orders.why == "the driver was not heard of for 60 s"


def test_a_second_signal_ends_it_at_once(orders):
    orders._take()
    assert orders.count == 1
    orders._take()
    assert orders.count == 2


def test_what_a_job_starts_does_not_keep_its_lock(tmp_path, monkeypatch):
    (tmp_path / "job.json").write_text(json.dumps({"patience_s": 60}))
    lock, inheritable = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR), []
    os.set_inheritable(lock, True)      # as a process gets it that was given it
    monkeypatch.setattr(worker, "signal", SimpleNamespace(SIGINT=2, SIGTERM=15, signal=lambda *_: None))
    monkeypatch.setattr(worker, "_measure", lambda *_: inheritable.append(os.get_inheritable(lock)) or ("ok", None))
    try:
        assert worker.main(str(tmp_path), str(lock)) == 0
    finally:
        os.close(lock)
    assert inheritable == [False]
    assert json.loads((tmp_path / "state.json").read_text()) == {"state": "ok", "error": None}

"""Waits for servers: the reason of a failure comes after the failure."""

import signal
import threading
from dataclasses import replace

import pytest

from labbook.errors import LabError
from labbook.systems.cloud import waits as cloud_waits
from labbook.systems.cloud.model import ERROR, GONE, RUNNING, STARTING, Server

MOST_DIALS = 200    # about 20 s


class Api:
    """An API that reports the given states of one server in turn, and repeats the last."""

    def __init__(self, *states):
        self.states, self.looks = list(states), 0

    def servers(self, ids):
        state, fault = self.states[min(self.looks, len(self.states) - 1)]
        self.looks += 1
        return [Server(id=ids[0], name="one", state=state, fault=fault)]


def waited(api, patience, monkeypatch):
    monkeypatch.setattr(cloud_waits, "FAULT_S", patience)
    one = Server(id="1", name="one", state=STARTING)
    cloud_waits.running(api, [one], 60, 0.001)
    return replace(one, moments={})


def test_a_failed_server_is_polled_for_its_reason(monkeypatch):
    api = Api((STARTING, None), (ERROR, None), (ERROR, None), (ERROR, "No valid host was found"))
    assert waited(api, 60, monkeypatch).fault == "No valid host was found"
    assert api.looks == 4


@pytest.mark.parametrize("patience", [0, 0.01])
def test_a_cloud_without_reasons_is_polled_for_a_moment_only(patience, monkeypatch):
    seen = waited(Api((ERROR, None)), patience, monkeypatch)
    assert (seen.state, seen.fault) == (ERROR, None)


def test_a_server_that_answers_before_the_api_says_that_it_runs_did_so(monkeypatch):
    one = Server(id="1", name="one", state=STARTING, address=None)

    class Slow(Api):
        def servers(self, ids):
            seen, = super().servers(ids)
            if self.looks > 2:
                assert answered.wait(20)
            return [replace(seen, address="192.0.2.1" if self.looks > 1 else None)]

    answered = threading.Event()

    def greets(address, dial):
        assert address == "192.0.2.1"
        answered.set()
        return True

    monkeypatch.setattr(cloud_waits, "_greets", greets)
    cloud_waits.running_and_answering(Slow((STARTING, None), (STARTING, None), (RUNNING, None)), [one], None, 60, 0.001)
    assert one.moments["answers"] <= one.moments["running"]


class Refusing:
    """Dials one server, which never answers; after MOST_DIALS it is gone, so that the wait for it ends."""

    def __init__(self):
        self.server, self.dials = Server(id="1", name="one", state=RUNNING, address="192.0.2.1"), 0

    def __call__(self, *_, timeout):
        self.dials += 1
        self.server.state = RUNNING if self.dials < MOST_DIALS else GONE
        raise ConnectionRefusedError


def test_an_error_of_the_api_ends_the_wait_at_once():
    """It was reported only after the time that the servers had to answer."""
    class Broken(Api):
        def servers(self, ids):
            raise LabError("it does not answer")

    dial = Refusing()
    with pytest.raises(LabError):
        cloud_waits.running_and_answering(Broken(), [dial.server], dial, 600, 0.001)
    assert dial.dials < MOST_DIALS


def test_ctrl_c_ends_the_wait_for_answers_at_once():
    dial, main = Refusing(), threading.main_thread().ident
    threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        cloud_waits.answers([dial.server], dial, 600)
    assert dial.dials < MOST_DIALS


def test_a_server_that_fails_is_not_tried_until_the_time_is_up(monkeypatch):
    monkeypatch.setattr(cloud_waits, "FAULT_S", 0)
    one = Server(id="1", name="one", state=STARTING, address=None)
    cloud_waits.running_and_answering(Api((ERROR, "no room")), [one], None, 3600, 0.001)
    assert "answers" not in one.moments

"""When clients start: by the clock that everything of a point is compared on."""

import time
from types import SimpleNamespace

import pytest

from labbook.lab import clock
from labbook.workloads.clients.driver import Clients

HOST = SimpleNamespace(name="client", is_remote=False)


@pytest.fixture
def set_clock(monkeypatch):
    """The machine's clock is set an hour ahead after the point began."""
    clock.anchor()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600)
    yield
    monkeypatch.undo()
    clock.anchor()


def test_a_start_after_the_clock_was_set_is_a_moment_of_the_point(set_clock):
    """It was an hour after the kill that it is compared with; the hosts' programs read the clock as it is."""
    told = []
    crew = SimpleNamespace(hosts=[HOST], clock_offsets=lambda: [clock.host_offset(HOST)],
                           run=lambda function, *each, timeout: told.append(each))
    clients = Clients.__new__(Clients)
    clients._crew, clients.specs, clients.started = crew, [{"clients": 1}], None
    began = clock.now()
    clients.start()
    assert began <= clients.started < began + 60
    (at,), = told[-1]
    assert abs(at - time.time()) < 60

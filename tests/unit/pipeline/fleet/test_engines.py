"""Engines that go while they are called."""

import pytest
from ipyparallel.error import NoEnginesRegistered

from labbook.pipeline.fleet import on_machine, pool
from labbook.pipeline.fleet.engines import Engines


class Client:
    """In place of ipyparallel's, whose only engine goes once it was listed."""

    ids = [0]

    def __init__(self, error):
        self._error = error

    def __getitem__(self, engine):
        raise self._error


@pytest.fixture(params=[IndexError("No such engine: 0"), NoEnginesRegistered("Can't build targets")])
def engines(request):
    return Engines(Client(request.param))


def test_a_call_to_an_engine_that_has_gone_has_failed_and_not_on_its_machine(engines):
    call = engines.call(0, on_machine.who)
    assert call.ready()
    with pytest.raises(ConnectionError) as error:
        call.get(timeout=1)
    assert not pool._is_remote(error.value)


def test_an_engine_that_goes_while_it_is_asked_who_it_is_is_no_machine(engines):
    assert engines.look() == {}

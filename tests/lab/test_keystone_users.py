"""Keystone's clients in a lab: against the null server, which finds their ceiling."""

import time

import pytest
from small_labs import describe, new_id

from labbook.errors import InputError
from labbook.lab import Environment, Lab
from labbook.systems.null.server import NullServer
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keystone.on_host.calls import STEPS
from labbook.workloads.keystone.users import (
    SCENARIOS,
    begin_users,
    keystone_users,
    keystone_users_side_by_side,
)

LOAD = dict(concurrency=5, times=20, seconds_at_most=60)
LATE_SECONDS = 3    # beside other tests a host's clients may hear of their start a second after it
SECONDS = 2 * LATE_SECONDS


@pytest.fixture(scope="module")
def lab():
    hosts = {"server": {}, "client1": {}, "client2": {}}
    with Lab.up(describe(hosts), Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture
def null(lab):
    server = NullServer(lab.host("server"), protocol="keystone").up()
    yield server
    server.destroy()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_calls_come_from_all_client_hosts(lab, null, scenario):
    load = keystone_users(Crew.of(lab), null, scenario=scenario, **LOAD)
    calls = load.rows[load.rows.step == ""]
    assert load.rows.ok.all(), load.rows.error.unique()
    assert len(load.rows) == 20 * (1 + len(STEPS[scenario]))
    assert calls.groupby("host", observed=True).size().to_dict() == {"client1": 12, "client2": 8}
    metrics = load.metrics
    assert metrics["truncated"] == 0 and 0 < metrics["clients_cpu_share"] <= 1
    assert metrics["server_cpu_ms_per_call"] < metrics["clients_cpu_ms_per_call"]


def test_two_targets_are_called_at_the_same_time_each_from_a_host_of_its_own(lab, null):
    with pytest.raises(InputError, match="3 targets for 2 client hosts"):
        keystone_users_side_by_side(Crew.of(lab), [null] * 3, scenario="create_user", concurrency=1, seconds=1)
    loads = keystone_users_side_by_side(Crew.of(lab), [null, null], scenario="create_user", concurrency=2,
                                        seconds=SECONDS)
    for load, host in zip(loads, ("client1", "client2")):
        calls = load.rows[load.rows.step == ""]
        assert calls.ok.all() and set(calls.host) == {host} and set(calls.client) == {0, 1}
        assert len(load.metrics["issued_per_s"]) == 1
        assert calls.started_s.max() <= SECONDS + 1     # a call begins after a look at the clock
    assert loads[0].started == loads[1].started


def test_a_stream_goes_on_while_its_server_dies_and_comes_back(lab, null):
    stream = begin_users(Crew.of(lab), [null], scenario="create_user", concurrency=5,
                         seconds_at_most=60, call_seconds=5)
    time.sleep(LATE_SECONDS)
    killed = time.time() - stream.started
    null.process.kill()
    null.start()
    back = time.time() - stream.started
    time.sleep(LATE_SECONDS)
    load, = stream.end()
    calls = load.rows[load.rows.step == ""]
    ends = calls.started_s + calls.seconds
    assert calls.ok[ends < killed].all() and calls.ok[calls.started_s > back].all()
    assert not calls.ok.all() and calls.error[~calls.ok].str.contains("refused|closed|reset").all()
    assert calls.client.nunique() == 5 and calls.user[calls.ok].is_unique
    assert (calls.started_s > back).any()


def test_a_server_that_is_not_there_is_rows(lab, null):
    null.stop()
    load = keystone_users(Crew.of(lab), null_at(null), scenario="create_user", **LOAD)
    assert not load.rows.ok.any() and load.rows.error.str.contains("refused").all()
    assert load.metrics["rate_per_s"] == 0


def null_at(server):
    """The same address without a process, whose CPU cannot be asked for."""
    from types import SimpleNamespace

    return SimpleNamespace(credentials=server.credentials, protocol=server.protocol)

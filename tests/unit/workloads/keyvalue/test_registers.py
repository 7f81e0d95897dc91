"""Clients of registers: who writes what, and which calls that fail may have had an effect."""

from types import SimpleNamespace

import pytest

from labbook.errors import InputError
from labbook.targets import key_of
from labbook.workloads.histories.calls import FAILED, OK, READ, UNKNOWN, WRITE, Call, metrics
from labbook.workloads.keyvalue import protocols, registers
from labbook.workloads.keyvalue.on_host import registers as on_host
from labbook.workloads.keyvalue.protocols.thrift import idl

CLIENTS = dict(keys=2, readers=1, write_level="QUORUM", read_level="ONE", calls_per_s=50.0,
               call_seconds=3.0, seconds_at_most=20.0)
SPEC = CLIENTS | dict(protocol="thrift", addresses=["a", "b", "c"], port=1, seed=1, clients=3,
                      all_clients=3)
TIMED_OUT, UNAVAILABLE = idl().TimedOutException(), idl().UnavailableException()


class Store:
    """A replicated store at several addresses; `dead` ones take no connection, `error` is the answer
    to each call."""

    def __init__(self):
        self.values, self.dead, self.error, self.made, self.stamps = {}, set(), None, [], []

    def calls(self, spec):
        self.made.append((spec["address"], spec["consistency"]))
        return SimpleNamespace(connect=lambda: self._connect(spec["address"]), put=self._put,
                               get=self._get, close=lambda: None,
                               keeps_connection=protocols.protocol("thrift").keeps_connection)

    def _connect(self, address):
        if address in self.dead:
            raise ConnectionRefusedError(address)

    def _put(self, row, value, microseconds):
        self.values[row] = value
        self.stamps.append(microseconds)
        if self.error:
            raise self.error

    def _get(self, row):
        if self.error:
            raise self.error
        return self.values.get(row)


@pytest.fixture
def store(monkeypatch):
    found = Store()
    monkeypatch.setattr(on_host.protocols, "calls", found.calls)
    return found


def client(number: int) -> on_host.Client:
    times = iter(range(100))
    made = on_host.Client(SPEC, number, "part", [0])
    return SimpleNamespace(history=made.history, call=lambda n: made.call(n, lambda: float(next(times))))


def outcomes(client) -> list[str]:
    return [step[5] for step in client.history]


@pytest.mark.parametrize("error, of_write", [
    (TIMED_OUT, UNKNOWN), (UNAVAILABLE, UNKNOWN), (ConnectionError("closed"), UNKNOWN),
    (BlockingIOError("no answer in time"), UNKNOWN), (on_host.NotSent("refused"), FAILED)])
def test_only_a_write_that_was_not_sent_certainly_had_no_effect(error, of_write):
    assert on_host.outcome_of(WRITE, error) == of_write
    assert on_host.outcome_of(READ, error) == FAILED


def test_a_write_that_got_an_error_may_be_read_later(store):
    writer, reader = client(0), client(2)
    writer.call(0)
    for error in (UNAVAILABLE, TIMED_OUT):
        store.error = error
        writer.call(len(writer.history))
    store.error = None
    reader.call(0)
    assert outcomes(writer) == [OK, UNKNOWN, UNKNOWN] and "TimedOut" in writer.history[-1][-1]
    history = registers.calls_of(0, writer.history) + [
        call._replace(invoked_s=50.0, returned_s=51.0, key=key_of(0).decode(), value=store.values[0].decode())
        for call in registers.calls_of(2, reader.history)]
    found = metrics(history)
    assert found["phantom_values"] == found["stale_reads"] == 0 and found["unknown_calls"] == 2


def test_each_row_has_one_writer_whose_values_and_times_all_differ(store):
    writers, reader = [client(0), client(1)], client(2)
    for number in range(5):
        for one in (*writers, reader):
            one.call(number)
    for number, one in enumerate(writers):
        assert [step[:3] for step in one.history] == [
            (WRITE, number, f"{number}.{count}") for count in range(5)]
    assert {step[0] for step in reader.history} == {READ}
    assert {step[1] for step in reader.history} <= {0, 1}
    of_first = store.stamps[::2]
    assert of_first == sorted(set(of_first))
    assert store.made == [("a", "QUORUM"), ("b", "QUORUM"), ("c", "ONE")]


def test_who_loses_its_connection_calls_the_next_address(store):
    writer = client(0)
    store.dead = {"a", "b"}
    for number in range(3):
        writer.call(number)
    assert outcomes(writer) == [FAILED, FAILED, OK]
    store.error = ConnectionError("closed")
    writer.call(3)
    store.error, store.dead = None, set()
    writer.call(4)
    assert [address for address, _ in store.made] == ["a", "b", "c", "a"]
    assert outcomes(writer)[3:] == [UNKNOWN, OK]


def test_an_answer_that_is_an_error_keeps_the_connection(store):
    writer = client(0)
    store.error = UNAVAILABLE
    writer.call(0)
    writer.call(1)
    assert len(store.made) == 1


def test_a_row_that_nobody_wrote_is_absent(store):
    reader = client(2)
    reader.call(0)
    _, _, value, begun, end, outcome, error = reader.history[0]
    assert (value, begun, end, outcome, error) == (None, 0.0, 1.0, OK, "")


def test_a_last_read_of_each_row_is_at_the_level_of_all_copies():
    calls = []

    def run(function, specs, timeout):
        calls.append((function, specs[0]["consistency"], specs[0]["rows"]))
        return [["0.7", None]]

    target = SimpleNamespace(protocol="thrift", address="a", port=1)
    times = iter([5.0, 6.0])
    found = registers.last_reads(SimpleNamespace(run=run), target, 2, lambda: next(times))
    assert calls == [(on_host.values_of, "ALL", 2)]
    assert found == [Call("ALL", READ, "row000000", "0.7", 5.0, 6.0, last=True),
                     Call("ALL", READ, "row000001", None, 5.0, 6.0, last=True)]


@pytest.mark.parametrize("wrong", [
    {"keys": 0}, {"readers": 0}, {"calls_per_s": 0}, {"call_seconds": -1}, {"seconds_at_most": 0},
    {"write_level": "TWO"}, {"read_level": "ANY"}])
def test_clients_that_cannot_be_are_refused_by_name(wrong):
    registers.check_registers(**CLIENTS)
    with pytest.raises(InputError, match=next(iter(wrong))):
        registers.check_registers(**CLIENTS | wrong)


def test_a_store_without_registers_is_refused():
    with pytest.raises(InputError, match="protocol"):
        registers.begin_registers(None, SimpleNamespace(protocol="mysql", address="a", port=1),
                                  seed=1, **CLIENTS)

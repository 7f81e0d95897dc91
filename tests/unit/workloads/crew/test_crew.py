"""A crew of two engines on loopback: started, found again, failing, dying."""

import json
import os
import time
from types import SimpleNamespace

import ipyparallel
import pytest
import zmq
from here import HereLab
from zmq.utils.monitor import recv_monitor_message

from labbook.lab import clock as clock_module
from labbook.errors import LabError, SystemFailure
from labbook.workloads.crew.connection import (
    CLIENT_CHANNELS,
    CONTROLLER_FILE,
    ENGINE_CHANNELS,
    FILES,
    connection_files,
    through,
)
from labbook.workloads.crew.crew import CONTROLLER, ENGINE, Crew
from labbook.workloads.crew.on_host import engine as on_host


def shipped(function):
    """Send the code itself: the engines cannot import this file."""
    function.__module__ = "__main__"
    return function


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = HereLab(tmp_path_factory.mktemp("crew"), clients=2)
    yield lab
    Crew(lab).stop()


@shipped
def place(*given):
    import os

    return os.environ["LABBOOK_HOST"], os.getpid(), *given


def test_each_host_gets_its_own_argument_and_results_keep_the_order(lab):
    found = Crew.of(lab).run(place, ["a", "b"])
    assert [(name, given) for name, _, given in found] == [("c1", "a"), ("c2", "b")]
    assert [name for name, *_ in Crew.of(lab).run(place, ["a"])] == ["c1"]
    assert len(Crew.of(lab).run(place)) == 2


def test_a_new_kernel_finds_the_engines_of_the_old_one(lab):
    before = Crew.of(lab).run(place)
    again = Crew(lab)
    assert again.run(place) == before
    again.close()


def test_a_client_that_is_not_told_of_an_engine_is_replaced(lab, monkeypatch):
    monkeypatch.setattr("labbook.workloads.crew.crew.ASK_SECONDS", 0.05)
    before = Crew.of(lab).run(place)
    crew = Crew(lab)
    opened, open_ = [], crew._connection.open

    def deaf_at_first():
        opened.append(1)
        open_()
        if len(opened) == 1:
            crew._connection.client.close(linger=0)
            crew._connection.client = SimpleNamespace(ids=[], close=lambda linger: None)
    crew._connection.open = deaf_at_first
    assert crew.run(place) == before and len(opened) == 2
    crew.close()


def test_its_files_are_the_users_alone(lab):
    Crew.of(lab).run(place)
    root = lab.clients[0].root
    for path in (FILES.format("engine"), FILES.format("client"), CONTROLLER_FILE):
        assert os.stat(root / path).st_mode & 0o777 == 0o600
    other = lab.clients[1].root
    assert os.path.exists(other / FILES.format("engine")) and not os.path.exists(other / CONTROLLER_FILE)


@pytest.mark.parametrize("without", ["curve_serverkey", "key", None])
def test_who_lacks_the_keys_gets_no_answer(lab, without):
    """A client that knows all but one of them asks the controller for a connection; and then one that
    knows them all, which it answers."""
    Crew.of(lab).run(place)
    connection = json.loads(lab.clients[0].get(FILES.format("client")))
    if without is None:
        assert len(ipyparallel.Client(connection, timeout=20).ids) == 2
        return
    connection[without] = None if without == "curve_serverkey" else "0" * 32
    with pytest.raises(TimeoutError):
        ipyparallel.Client(connection, timeout=1)


@pytest.mark.parametrize("side", ["engine", "client"])
def test_a_plain_client_gets_no_answer(lab, side):
    """From none of the controller's ports: it ends the connection before any message."""
    Crew.of(lab).run(place)
    connection = json.loads(lab.clients[0].get(FILES.format(side)))
    channels = {*(ENGINE_CHANNELS if side == "engine" else CLIENT_CHANNELS), "registration"} - {"task"}
    context = zmq.Context()
    for channel in channels:    # nothing listens at "task"
        socket = context.socket(zmq.DEALER)
        events = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        socket.connect(f"{connection['interface']}:{connection[channel]}")
        assert events.poll(20_000), f"nothing listens at {channel}"
        assert recv_monitor_message(events)["event"] == zmq.EVENT_DISCONNECTED, channel
        socket.disable_monitor()
    context.destroy(linger=0)


@shipped
def fail(message):
    raise ValueError(message)


def test_what_a_function_raises_is_reported_with_its_host(lab):
    with pytest.raises(SystemFailure, match="c2: ValueError: two|c1: ValueError: one") as caught:
        Crew.of(lab).run(fail, ["one", "two"])
    assert "Traceback" in caught.value.log and "in fail" in caught.value.log


@shipped
def die():
    import os

    os._exit(3)


def test_a_dead_engine_is_a_failure_at_once_and_replaced(lab):
    crew = Crew.of(lab)
    with pytest.raises(SystemFailure, match="c1: the engine of the clients has died"):
        crew.run(die, timeout=10**6)        # which nobody waits for
    assert len(Crew.of(lab).run(place)) == 2


@shipped
def rest(seconds):
    import time

    time.sleep(seconds)


def test_an_engine_that_does_not_answer_in_time_is_a_failure_and_replaced(lab):
    crew = Crew.of(lab)
    with pytest.raises(SystemFailure, match="did not answer in time"):
        crew.run(rest, [30, 30], timeout=0.5)
    assert len(Crew.of(lab).run(place)) == 2


def test_stop_ends_all_its_processes(lab):
    crew = Crew.of(lab)
    crew.stop()
    assert not crew.at_work()
    for host, name in ((lab.clients[0], CONTROLLER), (lab.clients[1], ENGINE)):
        assert not host.process(name).alive()


def test_a_lab_without_clients_is_an_error():
    with pytest.raises(LabError, match="no host with the role client"):
        Crew(SimpleNamespace(id="x", role=lambda role: []))


def test_both_sides_read_the_same_controller():
    made = connection_files("10.0.0.1", "127.0.0.1", range(14))
    engine, client = (json.loads(made[FILES.format(name)]) for name in ("engine", "client"))
    assert f"b'{engine['curve_serverkey']}'" in made[CONTROLLER_FILE]
    for key in ("key", "curve_serverkey", "registration", "pack", "unpack", "signature_scheme"):
        assert engine[key] == client[key]
    ports = [engine[c] for c in ("control", "mux", "task", "iopub", "hb_ping", "hb_pong")]
    ports += [client[c] for c in ("control", "mux", "task", "iopub", "notification", "broadcast")]
    ports += engine["broadcast"] + [engine["registration"]]
    assert sorted(ports) == list(range(14))
    assert engine["interface"] == "tcp://10.0.0.1"


def test_a_client_elsewhere_finds_all_that_listens_through_ways_of_its_own():
    made = json.loads(connection_files("10.0.0.1", "127.0.0.1", range(2000, 2014))[FILES.format("client")])
    led = through(made, lambda port: port + 10000)
    assert led["interface"] == "tcp://127.0.0.1" and led["key"] == made["key"]
    for channel in {"registration", *CLIENT_CHANNELS} - {"task"}:
        assert led[channel] == made[channel] + 10000
    assert led["task"] < 1024


def test_an_outcome_is_kept_until_the_next_call():
    received = []
    first = on_host.call("one", lambda x: received.append(x) or x, 5)
    assert first.answer == 5 and on_host.again("one") == first and received == [5]
    raised = on_host.call("two", lambda: 1 / 0)
    assert raised.error == "ZeroDivisionError: division by zero" and on_host.again("two") == raised
    assert "lambda: 1 / 0" in raised.traceback
    with pytest.raises(on_host.NeverCame):
        on_host.again("one")


def test_a_clock_is_known_by_its_shortest_round_trip(lab, monkeypatch):
    crew = Crew(lab)
    crew._connection.far = True
    here, trips = [100.0], iter([(0.3, 0.1), (0.02, 0.06), (0.5, 0.0), (0.1, 0.1), (0.2, 0.2)] * 2)
    monkeypatch.setattr(clock_module, "now", lambda: here[0])

    def answers(calls, again, until, first):
        there, back = next(trips)
        here[0] += there
        clock_s = here[0] + 7
        here[0] += back
        return [clock_s]
    crew._answers = answers
    for clock in crew.clock_offsets():
        assert clock.uncertainty_s == pytest.approx(0.04)
        assert clock.offset_s == pytest.approx(7 - 0.02) and abs(clock.offset_s - 7) <= 0.04
    assert crew.clock_offsets() is crew.clock_offsets()  # no trip is left
    crew.close()


def test_hosts_of_the_labs_own_have_our_clock(lab):
    assert Crew.of(lab).clock_offsets() == [(0, 0), (0, 0)]

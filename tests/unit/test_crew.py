"""A crew of two engines on loopback: started, found again, failing, dying."""

import json
import os
import time
from types import SimpleNamespace

import pytest
from here import HereLab

from labbook.errors import LabError, SystemFailure
from labbook.workloads.crew import CONTROLLER, ENGINE, Crew
from labbook.workloads.crew_files import connection_files


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


def test_its_files_are_the_users_alone(lab):
    root = lab.clients[0].root
    for name in ("engine", "client"):
        path = f"{root}/crew/profile/security/ipcontroller-{name}.json"
        assert os.stat(path).st_mode & 0o777 == 0o600


@shipped
def fail(message):
    raise ValueError(message)


def test_what_a_function_raises_is_told_with_its_host(lab):
    with pytest.raises(SystemFailure, match="c2: ValueError: two|c1: ValueError: one"):
        Crew.of(lab).run(fail, ["one", "two"])


@shipped
def die():
    import os

    os._exit(3)


def test_a_dead_engine_is_a_failure_at_once_and_replaced(lab):
    crew = Crew.of(lab)
    begin = time.monotonic()
    with pytest.raises(SystemFailure, match="c1: the engine of the clients has died"):
        crew.run(die, timeout=60)
    assert time.monotonic() - begin < 10
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
    files = {k: json.loads(v) for k, v in connection_files("10.0.0.1", "127.0.0.1", range(14)).items()}
    engine, client = files["engine"], files["client"]
    for key in ("key", "registration", "pack", "unpack", "signature_scheme"):
        assert engine[key] == client[key]
    ports = [engine[c] for c in ("control", "mux", "task", "iopub", "hb_ping", "hb_pong")]
    ports += [client[c] for c in ("control", "mux", "task", "iopub", "notification", "broadcast")]
    ports += engine["broadcast"] + [engine["registration"]]
    assert sorted(ports) == list(range(14))

"""Several servers as one system; real ones are in tests/lab."""

import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from labbook import systems
from labbook.errors import InputError, LabError, SystemFailure
from labbook.lab.host.host import Host
from labbook.systems.base import Needs, System
from labbook.systems.cluster import Cluster, Fleet, Together, in_parallel, merged, poll, start_together
from labbook.targets import Server, Servers


class Node(System):
    """Writes down what is asked of it."""

    NAME, port, protocol = "node", 7, "toy"
    SETTINGS = {"size": {"type": "integer", "default": 1}}
    broken = None

    def __init__(self, host, log, **settings):
        self.host, self.log, self.settings = host, log, SimpleNamespace(**self.checked(settings))
        self.running = False

    def _did(self, what):
        if self.broken == (self.host.name, what):
            raise SystemFailure(f"{self.host.name}: no {what}")
        self.log.append((what, self.host.name))

    def provide(self):
        self._did("provide")

    def deploy(self):
        self._did("deploy")

    def start(self):
        self._did("start")
        self.running = True

    def stop(self):
        self._did("stop")

    def kill(self):
        self.running = False

    def destroy(self):
        self.kill()
        self._did("destroy")

    def facts(self):
        return {"system": self.NAME, "size": self.settings.size, "resident_mb": int(self.host.name[-1])}

    @property
    def process(self):
        return SimpleNamespace(name="node", host=self.host)


class Three(Cluster):
    NAME, SETTINGS = "three", Node.SETTINGS

    def make_nodes(self):
        self.log = []
        return [Node(host, self.log, size=self.settings.size) for host in self.hosts]

    def await_formed(self):
        assert all(node.running for node in self.nodes)
        self.log.append(("formed", None))

    def report(self):
        return {"log": len(self.log)}


def hosts(count=3):
    return [SimpleNamespace(name=f"db{i}", address=f"198.18.0.{i}", role="db" if i else "lb")
            for i in range(count)]


def test_up_goes_step_by_step_over_all_nodes():
    three = Three(hosts(), size=2).up()
    steps = list(dict.fromkeys(what for what, _ in three.log))
    assert steps == ["destroy", "provide", "deploy", "start", "formed"]
    assert next(name for what, name in three.log if what == "start") == "db0"
    assert sorted(three.log[:-1]) == sorted((what, f"db{i}") for what in steps[:-1] for i in range(3))


@pytest.mark.parametrize("name", ["db0", "db2"])
def test_when_one_node_does_not_start_none_is_left_running(name, monkeypatch):
    monkeypatch.setattr(Node, "broken", (name, "start"))
    three = Three(hosts())
    with pytest.raises(SystemFailure, match=f"{name}: no start"):
        three.up()
    assert not any(node.running for node in three.nodes)


def test_to_a_workload_it_is_one_target_and_so_is_a_fleet():
    three = Three(hosts())
    assert (three.address, three.port, three.protocol) == ("198.18.0.0", 7, "toy")
    assert three.addresses == ["198.18.0.0", "198.18.0.1", "198.18.0.2"]
    assert [process.host.name for process in three.processes] == ["db0", "db1", "db2"]
    fleet = Fleet(three.nodes)
    assert (fleet.addresses, fleet.port) == (three.addresses, three.port)
    wanted = {**Server.__annotations__, **Servers.__annotations__}
    assert all(hasattr(target, name) for target in (three, fleet) for name in wanted)


def test_facts_are_the_nodes_and_the_clusters():
    assert Three(hosts(), size=2).facts() == {
        "system": "node", "size": 2, "resident_mb": [0, 1, 2], "nodes": 3, "log": 0}


def test_nodes_by_name_and_hosts_by_role():
    three = Three(hosts())
    assert three.node("db1").host.name == "db1" and [h.name for h in three.of_role("lb")] == ["db0"]
    with pytest.raises(InputError, match="no node on a host 'db9'.*db0, db1, db2"):
        three.node("db9")
    with pytest.raises(InputError, match="settings of three: hosts: no hosts"):
        Three([])
    with pytest.raises(InputError, match="settings of three: sizee: .*did you mean 'size'"):
        Three(hosts(), sizee=1)
    assert systems.over_several(Three) and not systems.over_several(Node)


@pytest.mark.parametrize("whole", [Fleet, lambda nodes: Together(enumerate(nodes))])
def test_one_server_that_is_not_destroyed_leaves_no_other(whole, monkeypatch):
    log = []
    monkeypatch.setattr(Node, "broken", ("db1", "destroy"))
    with pytest.raises(SystemFailure, match="db1: no destroy"):
        whole([Node(host, log) for host in hosts()]).destroy()
    assert log == [("destroy", "db2"), ("destroy", "db0")]


def test_merged_facts():
    assert merged([{"a": 1, "b": 2}, {"a": 1, "b": 3}]) == {"a": 1, "b": [2, 3]}


def test_needs_of_several_are_each_thing_once():
    assert Needs.union(Needs(("a", "b"), commands=("ss",)), Needs(("b", "c"))) == Needs(
        ("a", "b", "c"), commands=("ss",))


def test_one_job_that_fails_ends_what_the_others_wait_for():
    ended = threading.Event()

    def start(name):
        if name == "broken":
            raise LabError("no java here")
        assert ended.wait(10), "nobody ended it"

    with pytest.raises(LabError, match="no java here"):
        in_parallel(["slow", "broken"], start, at_failure=ended.set)
    assert in_parallel([3, 1, 2], lambda n: n * n) == [9, 1, 4] and in_parallel([], None) == []


def test_what_starts_first_is_prepared_while_the_others_start():
    prepared = threading.Event()

    def slow():
        assert prepared.wait(10), "nobody prepared the other one"
        return "slow"

    def prepare(number, started):
        if started == "fast":
            prepared.set()
        return number, started

    assert start_together([slow, lambda: "fast"], prepare) == [(0, "slow"), (1, "fast")]
    assert start_together([], None) == []


def test_the_error_of_a_start_is_raised_and_nothing_prepared_in_its_place():
    prepare = Mock()
    with pytest.raises(LabError, match="no java here"):
        start_together([Mock(side_effect=LabError("no java here"))], prepare)
    prepare.assert_not_called()


HOST = SimpleNamespace(name="db0", _full=str)     # its disk is not full
HOST.wait_for = lambda *arguments: Host.wait_for(HOST, *arguments)


def test_poll_tolerates_errors_of_clients_and_reports_the_last_answer():
    answers = iter([OSError("refused"), 1, 2])

    def ask():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert poll(HOST, ask, lambda answer: answer == 2, "two", 5, interval=0) == 2
    with pytest.raises(SystemFailure, match="waited for two: .*the last answer was 1"):
        poll(HOST, lambda: 1, lambda answer: answer == 2, "two", 0, interval=0)
    with pytest.raises(AttributeError):
        poll(HOST, lambda: HOST.nothing, bool, "two", 5)

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn, point

from labbook import paths
from labbook.errors import InputError
from labbook.papers.cms_scalability import experiments, pairs
from labbook.study.paired import arm_results
from labbook.workloads.clients.warm import Warmth

LOAD = dict(op="read", clients=30, rows=1, consistency="ONE", requests=100, value_bytes=100,
            warmup_requests=5, seconds_at_most=2)
STORE = dict(era="paper", store="mysql", durability="as_shipped", small_share=0.2, large_share=0.4,
             table_rows=10, warm_rounds=2, warm_clients=16, warm_requests=50, warm_seconds=1, warm_within=0.05, warm_in_a_row=2)
WARM = dict(rows=10, value_bytes=100, rounds=2, clients=16, requests=50, seconds=1, within=0.05, in_a_row=2,
            levels=(None,))
find = experiments.find
CEILING = pd.DataFrame([
    dict(protocol=protocol, op=op, clients=30, issued_per_s=[900.0])
    for protocol in ("mysql", "thrift", "http") for op in ("read", "write")])
SECONDS = {"null": 0.002, "mysql": 0.005, "cassandra": 0.009}   # that a call takes


class Server:
    """In place of a store, a ring or a wiki; writes down what is done with it."""

    def __init__(self, log, name, host, protocol="mysql", **settings):
        self.log, self.name, self.protocol, self.host = log, name, protocol, host
        log.append((name, host.name, settings) if hasattr(host, "name") else (
            name, [one.name for one in host], settings))

    def up(self):
        self.log.append(f"{self.name} up")
        return self

    def create_table(self):
        self.log.append("table")

    def destroy(self):
        """Forgotten with the test."""

    def facts(self):
        return {"system": self.name}


@pytest.fixture
def log(monkeypatch):
    """What was done, in order, with servers and clients that do nothing."""
    done = []

    def calls(crew, target, *, seed, when_ready=lambda: None, **load):
        when_ready()
        done.append(("calls", target.name, load))
        rows = pd.DataFrame({"started_s": [0.0, 0.1, 0.291], "seconds": 3 * [SECONDS.get(target.name, 0.01)], "ok": True})
        return SimpleNamespace(rows=rows, started=50.0, metrics={
            "issued_per_s": [400.0], "clients_cpu_share": 0.3, "clients_cpu_us_per_call": 2000.0})

    def store(name):
        return type("Store", (Server,), {
            "checked": find(name).checked, "speaks": find(name).speaks,
            "__init__": lambda self, host, **settings: Server.__init__(
                self, done, name, host, find(name).speaks(**settings), **settings)})

    def ring(hosts, **settings):
        return Server(done, "ring", hosts, "thrift", **settings)

    ring.checked = experiments.Ring.checked
    monkeypatch.setattr(experiments.Crew, "of", lambda lab: "crew")
    monkeypatch.setattr(experiments, "find", store)
    monkeypatch.setattr(experiments, "Ring", ring)
    monkeypatch.setattr(experiments, "NullServer", lambda host, **settings: Server(
        done, "null", host, **settings))
    monkeypatch.setattr(experiments, "Wiki", SimpleNamespace(over=lambda host, store: Server(
        done, "wiki", host, "http")))
    monkeypatch.setattr(experiments, "Fleet", lambda servers: SimpleNamespace(
        name=f"{len(list(servers))} wikis", protocol="http", facts=dict))
    def turns(crew, targets, *, turn_seconds, seed, **load):
        done.append(("turns", [target.name for target in targets], load))
        return [calls(crew, target, seed=seed, **load) for target in targets]

    monkeypatch.setattr(experiments, "keyvalue", calls)
    monkeypatch.setattr(experiments, "in_turns", turns)
    monkeypatch.setattr(experiments, "shared_pages", lambda crew, fleet: 1.0)
    monkeypatch.setattr(experiments, "fill_and_warm", lambda crew, target, **how: done.append(
        ("warm", how)) or Warmth(2, 1.0, True, []))
    return done


@pytest.fixture
def study(log):
    hosts = {}

    def host(name):
        return hosts.setdefault(name, SimpleNamespace(name=name, limits={}, cores=None))

    def limit(name, share):
        log.append(("limit", name, share))
        host(name).limits["quota"] = share

    def only(*names):
        log.append(("only", *names))
        return nullcontext()

    lab = SimpleNamespace(host=host, limit=limit, only=only)
    return StandIn(lab, folder=paths.papers("cms_scalability"),
                   hosts={"cassandra": ["small", "large"], "mysql": ["small2", "large2"]})


@pytest.fixture
def testbed(study):
    return experiments.Layout.of(study)


def test_the_testbed_is_that_of_the_labs_description():
    testbed = experiments.Layout.of(SimpleNamespace(folder=paths.papers("cms_scalability")))
    assert testbed.protocols(["paper"]) == ["http", "mysql", "thrift"]
    assert testbed.protocols(["paper", "today"]) == ["cql", "http", "mysql", "thrift"]
    assert (testbed.version("paper", "mysql"), testbed.version("today", "mysql")) == ("5.5.9", "today")
    assert len(testbed.nodes) == 5 and len(testbed.web) == 2 and testbed.shares["idle"] is None
    assert {host for hosts in testbed.servers.values() for host in hosts} < set(testbed.shares)


def test_a_store_has_the_points_durability_and_mysql_its_engine(testbed):
    def settings(**more):
        return experiments.store_of(point(**STORE | more), testbed)[1]
    assert settings() == {"version": "5.5.9"}
    assert settings(durability="commit", engine="MyISAM") == {
        "version": "5.5.9", "durability": "commit", "engine": "MyISAM"}
    assert "engine" not in settings(store="cassandra", engine="InnoDB")


@pytest.mark.parametrize("wrong", [{"durability": "perodic"}, {"era": "papr"}])
def test_a_store_that_cannot_be_is_refused_before_a_lab(wrong):
    testbed = experiments.Layout.of(SimpleNamespace(folder=paths.papers("cms_scalability")))
    one = point(**STORE | wrong)
    both = replace(point(**{name: value for name, value in one.params.items() if name != "store"}),
                   paired={"store": ["cassandra", "mysql"]})
    for measured in (one, both):
        with pytest.raises(InputError):
            experiments.check_stores(StandIn.experiment(measured), testbed)


def test_a_load_that_cannot_be_is_refused_before_a_lab():
    with pytest.raises(InputError, match="clients"):
        experiments.check(StandIn.experiment(point(**LOAD | {"clients": 0})))


def test_a_store_is_warmed_with_all_of_its_cores_and_measured_on_its_share(study, log):
    measured = point(**STORE, **LOAD, cores=1)
    experiments.warm_store(study.lab, measured, experiments.Layout.of(study))
    assert log == [
        ("limit", "small", None), ("mysql", "small", {"version": "5.5.9"}), "mysql up", "table",
        ("warm", WARM), ("limit", "small", 0.2)]


def measured(study, **more):
    """What is recorded of a point of both stores, on large servers."""
    pair = {name: value for name, value in STORE.items() if name != "store"} | LOAD | dict(
        cores=2, slices=1, alone_seconds=0.5) | more
    both = replace(point(**pair), paired={"store": ["cassandra", "mysql"]})
    pairs.measure_stores(study, study.experiment(both), study.experiment(summary=CEILING))
    return study.recorded[0]


def test_both_stores_are_warmed_and_measured_in_turn_on_servers_of_the_points_size(study, log):
    recorded = measured(study, slices=2)
    up = [one for one in log if one[0] in ("cassandra", "mysql")]
    assert sorted(up) == [("cassandra", "large", {"version": "0.7.0"}), ("mysql", "large2", {"version": "5.5.9"})]
    limits = [one for one in log if one[0] == "limit"]
    assert limits[:2] == [("limit", "large", None), ("limit", "large2", None)]
    assert sorted(limits[2:4]) == [("limit", "large", 0.4), ("limit", "large2", 0.4)]
    assert limits[4:] == [("limit", host, share) for host in ("large", "large2", "large2", "large")
                          for share in (None, 0.4)], "clients connect and warm up without limits"
    assert [one[1:] for one in log if one[0] == "calls"] == [
        (store, LOAD) for store in ("cassandra", "mysql", "mysql", "cassandra")]
    assert [one[1:] for one in log if one[0] == "only"] == [
        ("client", host) for host in ("large", "large2", "large2", "large")]
    assert [one.arm for one in recorded["slices"]] == ["cassandra", "mysql", "mysql", "cassandra"]
    assert recorded["facts"]["mysql"] == {"system": "mysql"}
    assert not any("own_ms" in one.metrics for one in recorded["slices"])


def test_stores_start_together_are_warmed_one_after_the_other_and_measured_once_all_are_warm(study, log):
    measured(study)
    steps = [one[0] if isinstance(one, tuple) else one for one in log]
    assert steps.index("calls") > max(i for i, step in enumerate(steps) if step == "warm") and steps.count("warm") == 2


def test_stores_that_take_turns_are_up_one_after_the_other(study, log):
    study.at_once = False
    measured(study)
    steps = [one[0] if isinstance(one, tuple) else one for one in log]
    assert steps.index("calls") < max(i for i, step in enumerate(steps) if step == "warm") and steps.count("warm") == 2


def test_a_ceiling_serves_the_claims_whose_points_are_held_against_it():
    def serves(claim, **where):
        rule = {"name": "greater", "of": {}, "where": where}
        return [(one.protocol, one.op, one.clients) for one in (
            point(protocol=protocol, op=op, clients=clients) for protocol in ("thrift", "http")
            for op in ("read", "write") for clients in (20, 70))
            if experiments.serves(one, {"experiment": claim, "rule": rule})]
    assert serves("clients", op="read", clients={"at_least": 70}) == [("thrift", "read", 70)]
    assert serves("writes", op="update") == [("thrift", "write", 20), ("thrift", "write", 70)]
    assert serves("writes", op="insert") == serves("writes", op="update")
    assert serves("clients", op="read", clients=1) == serves("warmth") == serves("histories") == []
    assert len(serves("wiki")) == len(serves("nodes")) == len(serves("many")) == len(serves("stages")) == 4


def test_a_store_whose_clients_were_the_limit_in_one_slice_is_limited(study, monkeypatch):
    limits = iter([True, False, False, False])
    monkeypatch.setattr(experiments, "limited", lambda *_: next(limits))
    found = measured(study, slices=2)
    each = arm_results(found["slices"], ["cassandra", "mysql"], found["arm_metrics"])
    assert {one["value"]: one["summary"]["client_limited"] for one in each} == {"cassandra": 1, "mysql": 0}
    assert all(one["summary"]["warmed_stable"] == 1 and one["summary"]["warmed_rounds"] == 2 for one in each)


def test_with_one_client_a_stores_own_time_is_that_outside_the_client(study, log):
    recorded = measured(study, clients=1)
    load = LOAD | {"clients": 1, "seconds_at_most": 0.5}
    turns = {name: value for name, value in LOAD.items() if name != "clients"} | {"seconds_at_most": 1.0}
    assert log[-12:] == [
        ("only", "client", "large2"), ("limit", "large2", None), ("limit", "large2", 0.4), ("calls", "mysql", load),
        ("only", "client", "large", "large2"), ("limit", "large", None), ("limit", "large2", None),
        ("turns", ["cassandra", "mysql"], turns), ("calls", "cassandra", turns), ("calls", "mysql", turns),
        ("limit", "large", 0.4), ("limit", "large2", 0.4)]
    assert [one.metrics["client_ms"] for one in recorded["slices"]] == [2, 2]
    assert [one.metrics["own_ms"] for one in recorded["slices"]] == pytest.approx([7, 3])


def test_stores_that_are_not_up_at_once_are_called_alone_one_after_the_other(study, log):
    study.at_once = False
    recorded = measured(study, clients=1, slices=2)
    assert [one[1] for one in log if one[0] == "turns"] == [[one.arm] for one in recorded["slices"]]
    assert [one.metrics["own_ms"] for one in recorded["slices"]] == pytest.approx([
        {"cassandra": 7, "mysql": 3}[one.arm] for one in recorded["slices"]])


def test_a_pair_of_slices_is_called_in_turns_once_both_are_measured(study, log):
    recorded = measured(study, clients=1, slices=2)
    assert [one[1] for one in log if one[0] == "turns"] == [["cassandra", "mysql"], ["mysql", "cassandra"]]
    assert all(one.metrics["own_ms"] for one in recorded["slices"])


def test_one_client_of_a_ring_is_measured_on_its_nodes_shares_alone(study, log):
    recorded = paired(study, pairs.measure_rings, "nodes", {1: ["large"], 2: ["node1", "node2"]}, **RING | {"clients": 1})
    assert not [one for one in log if one[0] == "turns"] and len(recorded["slices"]) == 2


def test_a_store_that_takes_no_longer_than_its_client_has_the_least_own_time(study, monkeypatch):
    monkeypatch.setitem(SECONDS, "mysql", 0.001)
    assert measured(study, clients=1)["slices"][1].metrics["own_ms"] == experiments.LEAST_MS


def test_of_the_clients_core_and_ceiling_the_large_server_leaves_them_a_part():
    ceiling = StandIn.experiment(summary=CEILING)

    def limited(**metrics):
        return [experiments.limited(point(**STORE, **LOAD | {"op": op}, cores=cores), "mysql",
                                    {"issued_per_s": [100.0], "clients_cpu_share": 0.3} | metrics, ceiling)
                for cores in (1, 2) for op in ("read", "update")]
    assert limited() == 4 * [False]
    assert not experiments.limited(point(**STORE, **LOAD | {"clients": 1}), "mysql", {
        "issued_per_s": [900.0], "clients_cpu_share": 0.3}, ceiling)
    assert limited(clients_cpu_share=0.5) == limited(issued_per_s=[500.0]) == [False, False, True, True]


def test_a_cold_server_is_only_filled(study, log):
    measured = point(**STORE, **LOAD, warmed="cold")
    experiments.warm_store(study.lab, measured, experiments.Layout.of(study))
    assert log[4] == ("warm", WARM | {"rounds": 0})


NODES = dict(nodes=2, placement="hash", replication=1, version="0.7.0", node_share=0.16, table_rows=1000,
            warm_rounds=2, warm_clients=16, warm_requests=50, warm_seconds=1, warm_within=0.05, warm_in_a_row=2)


def test_a_ring_has_as_many_nodes_as_the_point_says(study, log):
    measured = point(**LOAD | NODES)
    experiments.measure_ring(study, study.experiment(measured), study.experiment(summary=CEILING))
    assert log[:2] == [("limit", "node1", None), ("limit", "node2", None)]
    assert log[2] == ("ring", ["node1", "node2"], dict(version="0.7.0", rows=1000, replication=1,
                                                       placement="hash"))
    assert log[-3:-1] == [("limit", "node1", 0.16), ("limit", "node2", 0.16)]


def test_a_ring_is_warmed_at_each_level_of_its_experiment_but_that_of_writes_alone(study, log):
    points = [point(**LOAD | NODES | dict(op="write", consistency=level)) for level in ("ANY", "QUORUM", "ALL", "ONE")]
    experiments.measure_ring(study, study.experiment(*points), study.experiment(summary=CEILING))
    assert {tuple(one[1]["levels"]) for one in log if one[0] == "warm"} == {("ALL", "ONE", "QUORUM")}


def test_a_rings_table_has_the_points_chance_of_read_repair(study, log):
    measured = point(**LOAD | NODES | dict(read_repair=0))
    experiments.measure_ring(study, study.experiment(measured), study.experiment(summary=CEILING))
    assert log[2][2]["read_repair"] == 0


def test_read_repair_that_the_version_has_not_is_refused_before_a_lab(study, log):
    todays = point(**LOAD | NODES | dict(read_repair=1, version="5.0.8"))
    with pytest.raises(InputError, match="read_repair"):
        experiments.measure_ring(study, study.experiment(todays), study.experiment(summary=CEILING))
    assert not log


def paired(study, measure, parameter, hosts, **params):
    """What is recorded of a point whose arms are the keys of `hosts`."""
    study.hosts = hosts
    warm = {name: value for name, value in STORE.items() if name.startswith(("warm_", "table"))}
    both = replace(point(**warm | LOAD | dict(large_share=0.4, slices=1, version="0.7.0") | params),
                   paired={parameter: list(hosts)})
    measure(study, study.experiment(both), study.experiment(summary=CEILING))
    return study.recorded[0]


RING = dict(placement="hash", replication=1, node_share=0.16)


def test_one_node_and_five_are_up_at_once_on_hosts_of_their_own(study, log):
    paired(study, pairs.measure_rings, "nodes", {1: ["small"], 2: ["node1", "node2"]}, **RING)
    assert sorted(one[1] for one in log if one[0] == "ring") == [["node1", "node2"], ["small"]]
    assert {one for one in log if one[0] == "limit" and one[2]} == {
        ("limit", host, 0.16) for host in ("small", "node1", "node2")}
    assert {one[1:] for one in log if one[0] == "only"} == {("client", "small"), ("client", "node1", "node2")}


@pytest.mark.parametrize("wrong, key", [({"nodes": 8}, "nodes"), ({"nodes": -1}, "nodes"), ({"nodes": 0}, "nodes"),
                                        ({"nodes": 2, "replication": 3}, "replication"), ({"version": "9"}, "version")])
def test_nodes_that_cannot_be_are_refused_before_a_lab(study, log, wrong, key):
    many = RING | dict(nodes=2, era="paper", durability="periodic") | wrong
    with pytest.raises(InputError, match=key):
        paired(study, pairs.measure_many, "servers", {"small_nodes": ["node1"], "large_mysql": ["large2"]}, **many)
    with pytest.raises(InputError, match=key):
        one = point(**LOAD | STORE | {"version": "0.7.0"} | many)
        experiments.measure_ring(study, study.experiment(one), study.experiment(summary=CEILING))
    assert not log


@pytest.mark.parametrize("wrong, key", [({}, "stage_threads"), ({"version": "9"}, "version")])
def test_threads_that_cannot_be_are_refused_before_a_lab(study, log, wrong, key):
    hosts = {1 if key == "stage_threads" else 2: ["large"], 128: ["large2"]}
    with pytest.raises(InputError, match=key):
        paired(study, pairs.measure_stages, "stage_threads", hosts, stage_samples_ms=50, **wrong)
    assert not log


def test_small_nodes_are_measured_beside_stores_on_large_servers(study, log):
    hosts = {"small_nodes": ["node1", "node2", "node3"], "large_cassandra": ["large"], "large_mysql": ["large2"]}
    recorded = paired(study, pairs.measure_many, "servers", hosts, nodes=2, era="paper", durability="periodic", **RING)
    assert sorted(one[:2] for one in log if one[0] in ("ring", "cassandra", "mysql")) == [
        ("cassandra", "large"), ("mysql", "large2"), ("ring", ["node1", "node2"])]
    assert ("mysql", "large2", {"version": "5.5.9", "durability": "periodic"}) in log
    assert set(recorded["arm_metrics"]) == set(hosts)


def test_a_set_up_gives_its_hosts_the_shares_of_each_of_its_points(study, log):
    one = SimpleNamespace(arm=2, point=point(**RING), hosts=["node1"])
    place = experiments.Place(one.point, {"node1": 0.06}, None)
    study.lab.host("node1").limits["quota"] = 0.15
    with study.attempt(point()) as attempt:
        attempt.setup = lambda make, arm, used_up: pairs.Servers({2: "ring"})
        assert pairs._servers(attempt, [one], lambda *_: place) == {2: ("ring", {"node1": 0.06})}
        assert log == [("limit", "node1", 0.06)]
        pairs._servers(attempt, [one], lambda *_: place)
    assert len(log) == 1


@pytest.mark.parametrize("warmed, used_up", [("cold", True), ("warm", False)])
def test_a_cold_server_serves_one_attempt_alone(study, log, warmed, used_up):
    one = SimpleNamespace(arm=warmed, point=point(**STORE, **LOAD, warmed=warmed), hosts=["node1"])
    with study.attempt(point()) as attempt:
        pairs._servers(attempt, [one], lambda point, hosts: experiments.Place(
            point, {"node1": 0.06}, lambda lab: Server(log, "ring", lab.host("node1"))))
    assert study.used_up == [used_up]


def test_points_of_a_set_up_may_have_fewer_arms(study, log):
    """An update has no Cassandra: MySQL's slot in the set-up is still MySQL's."""
    def slices(*arms):
        return [SimpleNamespace(arm=arm, hosts=hosts, point=point(**STORE | LOAD | dict(store=arm, cores=2)))
                for arm, hosts in study.hosts.items() if arm in arms]

    place = lambda one, hosts: pairs.store_place(one, hosts, experiments.Layout.of(study))
    for first, second in ((("cassandra", "mysql"), ("mysql",)), (("mysql",), ("cassandra", "mysql"))):
        servers = []
        for arms in (first, second):
            with study.attempt(point()) as attempt:
                attempt.setup = lambda make, arm, used_up: (
                    servers[0] if servers else servers.append(make(study.lab)) or servers[0])
                found = pairs._servers(attempt, slices(*arms), place)
            assert {arm: server.name for arm, (server, _) in found.items()} == {arm: arm for arm in arms}
    up = [one for one in log if one in ("cassandra up", "mysql up")]
    assert sorted(up) == sorted(["cassandra up", "mysql up"] * 2), "each once in a set-up"


def test_the_queues_of_stages_are_those_during_the_load(study, log, monkeypatch):
    calls = []

    def since(node, begun, first, last):
        calls.append((node.name, begun, first, last))
        return pd.DataFrame([(0.1, "ReadStage", 2, 30)], columns=list(pairs.stages.COLUMNS)), 2

    monkeypatch.setattr(pairs.stages, "begin", lambda node: "begun")
    monkeypatch.setattr(pairs.stages, "since", since)
    monkeypatch.setattr(pairs, "Cassandra", type("Node", (Server,), {
        "checked": pairs.Cassandra.checked,
        "__init__": lambda self, host, **settings: Server.__init__(self, log, "cassandra", host, "thrift", **settings)}))
    recorded = paired(study, pairs.measure_stages, "stage_threads", {2: ["large"], 128: ["large2"]}, cores=2,
                      stage_samples_ms=50)
    assert ("cassandra", "large", dict(version="0.7.0", stage_threads=2, stage_samples_ms=50)) in log
    assert calls == [("cassandra", "begun", 50.0, 50.3)] * 2
    assert [one.metrics["stage_waiting"] for one in recorded["slices"]] == [15, 15]
    assert list(recorded["series"]["stages"]["stage_threads"]) == [2, 128]


@pytest.mark.parametrize("wikis, more", [(1, {}), (2, {"shared": 1.0})])
def test_several_wikis_over_one_store_are_asked_whether_they_share_pages(study, log, wikis, more):
    measured = point(**STORE, **LOAD, wikis=wikis)
    experiments.measure_wiki(study, study.experiment(measured), study.experiment(summary=CEILING))
    assert all(("wiki", f"wiki{n + 1}", {}) in log for n in range(2))     # both run, whichever are called
    assert log[-1][:2] == ("calls", f"{wikis} wikis")
    metrics = study.recorded[0]["metrics"]
    assert {name: metrics[name] for name in metrics if name == "shared"} == more


def test_the_ceiling_is_measured_with_a_server_that_has_a_core(study, log):
    experiments.measure_ceiling(study, study.experiment(point(**LOAD, protocol="cql")))
    assert log[0] == ("null", "idle", dict(value_bytes=100)) and study.recorded[0]["facts"]

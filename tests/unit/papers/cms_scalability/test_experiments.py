from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn, point

from labbook import paths
from labbook.errors import InputError
from labbook.papers.cms_scalability import experiments

LOAD = dict(op="read", clients=30, rows=1, consistency="ONE", requests=100, value_bytes=100,
            warmup_requests=5, seconds_at_most=2)
STORE = dict(era="paper", store="mysql", durability="as_shipped", small_share=0.2, large_share=0.4,
             table_rows=10, warm_rounds=2, warm_requests=50, warm_seconds=1)
CEILING = pd.DataFrame([
    dict(protocol=protocol, server=server, op=op, clients=30, issued_per_s=[rate])
    for protocol in ("mysql", "thrift", "http") for server, rate in (("idle", 1000.0), ("large", 500.0))
    for op in ("read", "write")])


class Server:
    """In place of a store, a ring or a wiki; writes down what is done with it."""

    checked = experiments.find("mysql").checked
    speaks = experiments.find("mysql").speaks

    def __init__(self, log, name, host, protocol="mysql", **settings):
        self.log, self.name, self.protocol, self.address = log, name, protocol, host
        log.append((name, host, settings))

    def up(self):
        self.log.append(f"{self.name} up")
        return self

    def create_table(self):
        self.log.append("table")

    def facts(self):
        return {"system": self.name}


@pytest.fixture
def log(monkeypatch):
    """What was done, in order, with servers and clients that do nothing."""
    done = []

    def calls(crew, target, *, seed, **load):
        done.append(("calls", target.name, load))
        return SimpleNamespace(rows=[], metrics={"issued_per_s": [400.0], "clients_cpu_share": 0.3})

    def store(name):
        return type("Store", (Server,), {"__init__": lambda self, host, **settings: Server.__init__(
            self, done, name, host, **settings)})

    monkeypatch.setattr(experiments.Crew, "of", lambda lab: "crew")
    monkeypatch.setattr(experiments, "find", store)
    monkeypatch.setattr(experiments, "Ring", lambda hosts, **settings: Server(
        done, "ring", hosts, "thrift", **settings))
    monkeypatch.setattr(experiments, "NullServer", lambda host, **settings: Server(
        done, "null", host, **settings))
    monkeypatch.setattr(experiments, "Wiki", SimpleNamespace(over=lambda host, store: Server(
        done, "wiki", host, "http")))
    monkeypatch.setattr(experiments, "Fleet", lambda servers: SimpleNamespace(
        name=f"{len(list(servers))} wikis", protocol="http", facts=dict))
    monkeypatch.setattr(experiments, "keyvalue", calls)
    monkeypatch.setattr(experiments, "shared_pages", lambda crew, fleet: 1.0)
    monkeypatch.setattr(experiments, "fill_and_warm", lambda crew, target, **how: done.append(
        ("warm", how)))
    return done


@pytest.fixture
def study(log):
    lab = SimpleNamespace(host=lambda name: name,
                          limit=lambda host, share: log.append(("limit", host, share)))
    return StandIn(lab, folder=paths.papers("cms_scalability"))


@pytest.fixture
def testbed(study):
    return experiments.Layout.of(study)


def test_the_testbed_is_that_of_the_labs_description():
    testbed = experiments.Layout.of(SimpleNamespace(folder=paths.papers("cms_scalability")))
    assert testbed.protocols(["paper"]) == ["http", "mysql", "thrift"]
    assert testbed.protocols(["paper", "today"]) == ["cql", "http", "mysql", "thrift"]
    assert (testbed.version("paper", "mysql"), testbed.version("today", "mysql")) == ("5.5.9", "today")
    assert len(testbed.nodes) == 5 and len(testbed.web) == 2 and testbed.shares["idle"] is None


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
    with pytest.raises(InputError):
        experiments.check_stores(StandIn.experiment(point(**STORE | wrong)), testbed)


def test_a_load_that_cannot_be_is_refused_before_a_lab():
    with pytest.raises(InputError, match="clients"):
        experiments.check(StandIn.experiment(point(**LOAD | {"clients": 0})))


def test_a_store_is_warmed_with_all_of_its_cores_and_measured_on_its_share(study, log):
    measured = point(**STORE, **LOAD, cores=1)
    experiments.measure_store(study, study.experiment(measured), study.experiment(summary=CEILING))
    assert log == [
        ("mysql", "small", {"version": "5.5.9"}), ("limit", "small", None), "mysql up", "table",
        ("warm", dict(rows=10, value_bytes=100, rounds=2, requests=50, seconds=1)),
        ("limit", "small", 0.2), ("calls", "mysql", LOAD)]
    assert study.recorded[0]["metrics"]["client_limited"] == 0


def test_the_large_server_is_measured_against_the_ceiling_in_its_place(study, log):
    measured = point(**STORE, **LOAD, cores=2)      # 400 a second are more than 0.7 of 500
    experiments.measure_store(study, study.experiment(measured), study.experiment(summary=CEILING))
    assert log[0][1] == "large" and log[-2] == ("limit", "large", 0.4)
    assert study.recorded[0]["metrics"]["client_limited"] == 1


def test_of_the_clients_core_the_large_server_leaves_them_a_part():
    metrics = {"issued_per_s": [100.0], "clients_cpu_share": 0.5}
    ceiling = StandIn.experiment(summary=CEILING)
    limited = [experiments.limited(point(**STORE, **LOAD | {"op": op}, cores=cores), "mysql", metrics,
                                   ceiling) for cores in (1, 2) for op in ("read", "update")]
    assert limited == [False, False, True, True]


def test_a_cold_server_is_only_filled(study, log):
    measured = point(**STORE, **LOAD, warmed="cold")
    experiments.measure_store(study, study.experiment(measured), study.experiment(summary=CEILING))
    assert log[4] == ("warm", dict(rows=10, value_bytes=100, rounds=0, requests=50, seconds=1))


def test_a_ring_has_as_many_nodes_as_the_point_says(study, log):
    measured = point(**LOAD, nodes=2, placement="hash", replication=1, version="0.7.0", node_share=0.16,
                     table_rows=1000, warm_rounds=2, warm_requests=50, warm_seconds=1)
    experiments.measure_ring(study, study.experiment(measured), study.experiment(summary=CEILING))
    assert log[0] == ("ring", ["node1", "node2"], dict(version="0.7.0", rows=1000, replication=1,
                                                       placement="hash"))
    assert log[-3:-1] == [("limit", "node1", 0.16), ("limit", "node2", 0.16)]


@pytest.mark.parametrize("wikis, more", [(1, {}), (2, {"shared": 1.0})])
def test_several_wikis_over_one_store_are_asked_whether_they_share_pages(study, log, wikis, more):
    measured = point(**STORE, **LOAD, wikis=wikis)
    experiments.measure_wiki(study, study.experiment(measured), study.experiment(summary=CEILING))
    assert [("wiki", f"wiki{n + 1}", {}) in log for n in range(2)] == [True, wikis == 2]
    assert log[-1][:2] == ("calls", f"{wikis} wikis")
    metrics = study.recorded[0]["metrics"]
    assert {name: metrics[name] for name in metrics if name == "shared"} == more


def test_the_ceiling_is_measured_on_the_server_that_the_point_names(study, log):
    measured = point(**LOAD, protocol="cql", server="large")
    experiments.measure_ceiling(study, study.experiment(measured))
    assert log[0] == ("null", "large", dict(value_bytes=100)) and study.recorded[0]["facts"]

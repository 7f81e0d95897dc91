from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn, point

from labbook import paths
from labbook.errors import InputError
from labbook.papers.wan_keystone import experiments

CLOUD = dict(segments=2, cache=True, send_window=4, user_send_window=2, weight=1, processes=5,
             users=1000, projects=100, revocations=50)
WARMUP = dict(warmup_scenario="create_and_list_users", warmup_concurrency=3, warmup_calls=20,
              warmup_seconds_at_most=60)
LOAD = dict(scenario="create_user", concurrency=5, times=20, seconds_at_most=120)
FACTS = {"galera": {"version": "10.11", "provider": "26.4"}, "haproxy": {"version": "2.6"},
         "keystone": {"version": "22"}}
CEILING = pd.DataFrame({"scenario": ["create_user"] * 2, "issued_per_s": [[80.0], [100.0]]})


class Link:
    def __init__(self, log):
        self.log = log

    def shape(self, **shape):
        self.log.append(("shape", shape))

    def traffic(self):
        calls = 20 * self.log.count("calls")
        return {"a>b": {"bytes": 300 * calls, "packets": 3 * calls},
                "b>a": {"bytes": 100 * calls, "packets": calls}}


class Cloud:
    """In place of KeystoneCloud; writes down what is done with it."""

    SETTINGS, checked = experiments.KeystoneCloud.SETTINGS, experiments.KeystoneCloud.checked

    def __init__(self, log, settings):
        self.log, self.settings = log, settings
        self.galera = SimpleNamespace(counters=self.counters)

    def counters(self):
        calls = 20 * self.log.count("calls")
        return {"questions": 50 * calls, "cert_failures": 0, "flow_control_paused_s": 0.5,
                "replicated": calls, "replicated_bytes": 900 * calls}

    def up(self):
        self.log.append("up")
        return self

    def reset(self):
        self.log.append("reset")

    def facts(self):
        return FACTS


def rows(n=20, seconds=0.5):
    return pd.DataFrame([dict(step="", started_s=i * seconds, seconds=seconds, ok=True,
                              user=f"labbook-u{i % 2 + 1}") for i in range(n)])


@pytest.fixture
def log(monkeypatch):
    """What was done, in order, with a cloud and clients that do nothing."""
    done = []

    def users(crew, target, *, times, **load):
        done.append("calls" if times == LOAD["times"] and load["concurrency"] == 5 else
                    ("warm-up", {"times": times, **load}))
        return SimpleNamespace(rows=rows(), metrics={"issued_per_s": [10.0], "clients_cpu_share": 0.2})

    make = type("Made", (Cloud,), {"__init__": lambda self, hosts, **settings: Cloud.__init__(
        self, done, settings)})
    monkeypatch.setattr(experiments, "KeystoneCloud", make)
    monkeypatch.setattr(experiments.Crew, "of", lambda lab: "crew")
    monkeypatch.setattr(experiments, "keystone_users", users)
    monkeypatch.setattr(experiments, "rally", lambda *a, **load: done.append("rally") or SimpleNamespace(
        rows=rows(), metrics={"issued_per_s": [10.0]}))
    return done


@pytest.fixture
def study(log):
    link = Link(log)
    return StandIn(SimpleNamespace(link=lambda *sites: link, host=lambda name: name),
                   folder=paths.papers("wan_keystone"), wan_rtt_ms=100.4)


def test_a_clouds_settings_are_all_that_a_point_names_of_them():
    assert experiments.cloud_settings(point(**CLOUD, **WARMUP, rtt_ms=100)) == CLOUD


@pytest.mark.parametrize("wrong", [{"segments": 0}, {"rtt_ms": -1}, {"rate_mbit": 0}, {"scenario": "create_usr"},
                                   {"warmup_scenario": "lists"}, {"tool": "raly"}, {"concurrency": 0}, {"writes": 0},
                                   {"slice_s": 0, "calling_s": 9}, {"slice_s": 10, "calling_s": 9}])
def test_what_cannot_be_is_refused_before_a_lab(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        experiments.check(StandIn.experiment(point(**CLOUD | dict(rtt_ms=100) | wrong)))


def test_calls_go_over_the_wan_that_was_empty_while_all_was_reset(study, log):
    measured = point(**CLOUD, **WARMUP, **LOAD, rtt_ms=100, rate_mbit=None)
    experiments.measure_calls(study, study.experiment(measured), study.experiment(summary=CEILING))
    assert log == [
        ("shape", {}), "up", ("warm-up", dict(times=20, scenario="create_and_list_users",
                                              concurrency=3, seconds_at_most=60)),
        ("shape", {}), "reset", ("shape", {"rtt_ms": 100, "rate_mbit": None}), "calls"]
    metrics = study.recorded[0]["metrics"]
    assert metrics["wan_rtt_ms"] == 100.4 and metrics["client_limited"] == 0
    assert (metrics["wan_bytes_to_b_per_call"], metrics["wan_bytes_per_call"]) == (300, 400)
    assert (metrics["wan_packets_per_call"], metrics["statements_per_call"]) == (4, 50)
    assert (metrics["replicated_per_call"], metrics["flow_paused_s"]) == (1, 0)
    assert metrics["galera"] == "26.4" and study.recorded[0]["facts"] == FACTS


def test_traffic_is_net_of_what_idle_clusters_send_as_long_as_they_were_read(study, log, monkeypatch):
    """Reading the databases takes 3 s, in which clusters send 1000 bytes a second, too."""
    clock = SimpleNamespace(now=0.0)

    def wait(seconds):
        clock.now += seconds

    def traffic():
        counts = {"bytes": 1000 * clock.now + 300 * 20 * log.count("calls"), "packets": 0}
        return {"a>b": counts, "b>a": dict.fromkeys(counts, 0)}

    def read(self):
        wait(3)
        return Cloud.counters(self)

    monkeypatch.setattr(experiments, "time", SimpleNamespace(sleep=wait, monotonic=lambda: clock.now))
    monkeypatch.setattr(experiments.KeystoneCloud, "counters", read, raising=False)
    study.lab.link().traffic = traffic
    measured = point(**CLOUD, **WARMUP, **LOAD, rtt_ms=100, rate_mbit=None, idle_seconds=10)
    experiments.measure_calls(study, study.experiment(measured), study.experiment(summary=CEILING))
    assert study.recorded[0]["metrics"]["wan_net_bytes_per_call"] == pytest.approx(300)


def test_a_point_may_name_its_tool(study, log):
    measured = point(**CLOUD, **WARMUP, **LOAD, rtt_ms=0, tool="rally")
    experiments.measure_calls(study, study.experiment(measured), study.experiment(summary=CEILING))
    metrics = study.recorded[0]["metrics"]
    assert log[-1] == "rally" and metrics["client_limited"] == 0
    assert not [name for name in metrics if name.endswith("_per_call")]     # they would count Rally's own preparation


@pytest.mark.parametrize("metrics, is_limited", [
    ({"issued_per_s": [69.0]}, False), ({"issued_per_s": [71.0]}, True),
    ({"issued_per_s": [1.0], "clients_cpu_share": 0.8}, True)])
def test_the_clients_limit_by_their_highest_rate_or_by_their_processor(metrics, is_limited):
    ceiling = StandIn.experiment(summary=CEILING)
    assert experiments.limited(point(scenario="create_user"), metrics, ceiling) == is_limited


def test_traffic_that_nobody_counts_is_left_out():
    metrics = experiments.per_call(pd.Series(
        {"questions": 100.0, "cert_failures": 1.0, "flow_control_paused_s": 0.0}), calls=20)
    assert metrics == {"statements_per_call": 5, "cert_failures": 1, "flow_paused_s": 0}

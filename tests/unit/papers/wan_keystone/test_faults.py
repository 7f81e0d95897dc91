from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn, point

from labbook import paths
from labbook.errors import InputError, SystemFailure
from labbook.papers.wan_keystone import faults
from labbook.workloads.histories.calls import Call

STREAM = dict(scenario="create_user", concurrency=5, call_seconds=60, seconds_at_most=300)
FAULT = dict(bin_seconds=0.5, rtt_ms=300, before_seconds=4, after_seconds=3)
HOSTS = {1: ["db1", "db2"], 2: ["db7", "db8"]}
HISTORY = [Call("0", "write", f"labbook-u{i}", "there", -2.0, -1.0) for i in (1, 2)]


def rows(n=20, seconds=0.5):
    return pd.DataFrame([dict(step="", started_s=i * seconds, seconds=seconds, ok=True,
                              user=f"labbook-u{i % 2 + 1}") for i in range(n)])


class Cloud:
    """In place of KeystoneCloud; writes down what is done with it. Its second node lacks a user."""

    def __init__(self, log, hosts):
        self.log = log
        nodes = [self.node(SimpleNamespace(name=name)) for name in hosts]
        self.galera = SimpleNamespace(
            hosts=[node.host for node in nodes], nodes=nodes,
            synced=lambda names=None, seconds=60: log.append(f"synced {names}"),
            query_each=lambda sql: {hosts[0]: [("labbook-u1",), ("labbook-u2",)],
                                    hosts[1]: [("labbook-u1",), ("x",)]})

    def node(self, host):
        return SimpleNamespace(
            host=host, process=SimpleNamespace(kill=lambda: self.log.append(f"kill {host.name}")),
            rejoin=lambda by: self.log.append(f"rejoin {host.name} by {by}") or {"seconds": 4.0, "by": by})

    def facts(self):
        return {}


@pytest.fixture
def log(monkeypatch):
    """What was done, in order; clients call for ten seconds, and only sleeping moves the clock."""
    done, clock = [], SimpleNamespace(now=1000.0)

    def sleep(seconds):
        done.append(("sleep", seconds))
        clock.now += seconds

    def begin(crew, targets, **load):
        done.append(("begin", len(targets), load))
        started = clock.now
        loads = [SimpleNamespace(rows=rows(), metrics={}, slack_s=0.0, history=HISTORY) for _ in targets]
        return SimpleNamespace(since_start=lambda: clock.now - started, end=lambda: loads)

    monkeypatch.setattr(faults.Crew, "of", lambda lab: "crew")
    monkeypatch.setattr(faults, "new_cloud", lambda lab, point, hosts: Cloud(done, hosts))
    monkeypatch.setattr(faults, "warmed", lambda lab, point, cloud: cloud)
    monkeypatch.setattr(faults, "reset", lambda attempt, *clouds: done.append(("reset", len(clouds))))
    monkeypatch.setattr(faults, "begin_users", begin)
    monkeypatch.setattr(faults, "time", SimpleNamespace(sleep=sleep))
    return done


@pytest.fixture
def study(log):
    link = SimpleNamespace(shape=lambda: None, cut=lambda: log.append("cut"), heal=lambda: log.append("heal"))
    return StandIn(SimpleNamespace(link=lambda *sites: link), folder=paths.papers("wan_keystone"), hosts=HOSTS,
                   at_once=True)


def measured(study, cause, /, **more):
    given = point("kill", paired={"segments": [1, 2]}, **STREAM, **FAULT, **more)
    faults.measure_faults(study, study.experiment(given), cause)
    return study.recorded[-1]


@pytest.mark.parametrize("wrong", [{"fault": "kil"}, {"victim": "db9"}, {"victim": "lb"}, {"rejoin": "ISt"}])
def test_faults_that_there_are_not_are_refused_before_a_lab(study, log, wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        measured(study, faults.by_name, **{"fault": "kill", "victim": "db2", "rejoin": "SST"} | wrong)
    assert not log


def test_a_node_that_rejoins_by_another_transfer_is_no_point_of_the_one_that_was_asked_for(study, monkeypatch):
    plain = Cloud.node

    def by_copy(self, host):
        return SimpleNamespace(**vars(plain(self, host)) | {"rejoin": lambda by: {"seconds": 4.0, "by": "SST"}})

    monkeypatch.setattr(Cloud, "node", by_copy)
    with pytest.raises(SystemFailure, match="db2 was to rejoin by IST, and did by SST"):
        measured(study, faults.kill_node, victim="db2", rejoin="IST")


def test_a_node_of_each_cloud_is_killed_at_the_same_time_and_rejoins(study, log):
    recorded = measured(study, faults.kill_node, victim="db2", rejoin="SST")
    assert log[:5] == [("reset", 2), ("begin", 2, STREAM), ("sleep", 4), "kill db2", "kill db8"]
    assert log[-1] == ("sleep", 3)
    assert {"synced ['db1']", "synced ['db7']", "rejoin db2 by SST", "rejoin db8 by SST"} == set(log[5:-1])
    for metrics in recorded["arm_metrics"].values():
        assert (metrics["fault_s"], metrics["rejoin_s"], metrics["came_by"]) == (4, 4, "SST")
        assert (metrics["acknowledged"], metrics["kept"]) == (2, 0.5)
        assert (metrics["lost_writes"], metrics["checked_calls"]) == (1, 4)     # the second node lacks one
        assert metrics["bin_s"] == 0.5 and len(metrics["ok_per_bin"]) == 21
        assert "back_s" not in metrics
    history = recorded["series"]["history"]
    assert history.groupby("segments").size().to_dict() == {1: 4, 2: 4}
    assert {one.arm for one in recorded["slices"]} == {1, 2}


def test_a_point_may_name_its_fault(study, log):
    for fault, mark in (("kill", "rejoin db2 by IST"), ("cut", "heal")):
        measured(study, faults.by_name, fault=fault, cut_seconds=2, victim="db2", rejoin="IST")
        assert mark in log[-6:]


def test_a_cut_is_of_all_clouds_and_lasts_as_long_as_the_point_says(study, log):
    recorded = measured(study, faults.cut_wan, cut_seconds=2)
    assert log[2:] == [("sleep", 4), "cut", ("sleep", 2), "heal", "synced None", "synced None", ("sleep", 3)]
    for metrics in recorded["arm_metrics"].values():
        assert (metrics["fault_s"], metrics["healed_s"], metrics["back_s"]) == (4, 6, 0.5)


def test_calls_while_a_node_comes_back_are_set_beside_those_before_the_fault():
    calls = pd.concat([rows(8), rows(4, 1.5).assign(started_s=[4.0, 6.0, 7.5, 9.0])])
    found = faults.recovery(calls, {"fault_s": 4.0, "restarted_s": 6.0, "rejoined_s": 8.0})
    assert (found["before_ms"], found["rejoining_ms"], found["rejoining_times"]) == (500, 1500, 3)
    assert faults.recovery(rows(4), {"fault_s": 4, "healed_s": 6, "rejoined_s": 8}) == {"before_ms": 500}

"""A history of calls through a crash: what is done in which order, and what is recorded."""

from contextlib import contextmanager
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from paper_stand_ins import StandIn, point

from labbook import paths
from labbook.errors import InputError, SystemFailure
from labbook.papers.ceph_mds import histories
from labbook.papers.ceph_mds.clusters import TAKEOVERS
from labbook.workloads.histories.calls import Call

CLIENTS = dict(clients=2, calls_per_s=20.0, seconds_at_most=60.0, call_seconds=5.0)
POINT = CLIENTS | dict(osds="memory", replication=1, mds=2, mds_share=1.0, balance_s=10, how="standby", rank=1, keys=2, before_s=4,
                       after_s=6, noticed_within_s=10, active_within_s=60)
HISTORY = (Call("0", "write", "0/r0", "0.0", 0.0, 1.0), Call("1", "read", "0/r0", None, 2.0, 3.0))
LAST = [Call("last-c1-0", "read", "0/r0", None, 30.0, 31.0, last=True)]
STATES = pd.DataFrame([(1012.0, 1, "mds3", "replay"), (1014.0, 1, "mds3", "active")],
                      columns=["t_s", "rank", "daemon", "state"])


@pytest.fixture
def log(monkeypatch):
    """What was done, in order."""
    done, host = [], SimpleNamespace(name="c1")

    def mount(host, name):
        done.append(("mount", name))
        made = SimpleNamespace(path=f"/mnt/{name}", host=host, end=lambda: done.append(("end", name)))
        made.up = lambda: made
        return made

    ceph = SimpleNamespace(facts=dict, pin_folder=lambda mount, name, rank: f"rank{rank}/home", mount=mount,
                           kill=lambda rank: done.append(("kill", rank)) or ("mds2", 1000.0),
                           fail=lambda rank: done.append(("fail", rank)), ranks=dict, start_mds=lambda name: 1003.0,
                           fault_log=lambda since: SimpleNamespace(states=STATES))
    ceph.await_active = lambda seconds: done.append("active")

    class Registers:
        def __init__(self, crew, paths, **settings):
            done.append(("registers", paths, settings))

        @contextmanager
        def begin(self, **clients):
            done.append(("begin", clients))
            load = SimpleNamespace(rows=pd.DataFrame(), metrics={"blocked": 0.0}, history=HISTORY, slack_s=0.0)
            yield SimpleNamespace(started=996.0, since_start=lambda: 1.0, end=lambda: load)

        def last_reads(self, paths, now):
            done.append(("last reads", paths))
            return LAST

    @contextmanager
    def mounted(attempt, ceph, number):
        yield [[mount(host, f"client{i + 1}")] for i in range(number)]

    monkeypatch.setattr(histories, "Registers", Registers)
    monkeypatch.setattr(histories, "bring_up", lambda attempt: ceph)
    monkeypatch.setattr(histories, "mounted", mounted)
    monkeypatch.setattr(histories, "time", SimpleNamespace(sleep=lambda seconds: done.append(("sleep", seconds))))
    monkeypatch.setattr(histories.Crew, "of", lambda lab: "crew")
    return done


@pytest.fixture
def study():
    return StandIn(None, folder=paths.papers("ceph_mds"))


def experiment(study, **params):
    made = study.experiment(point(**POINT | params))
    made.study, made.name = study, "histories"
    return made


def test_a_server_dies_under_calls_and_the_history_is_checked(study, log):
    histories.measure_histories(experiment(study))
    assert log == [
        ("mount", "client1"), ("mount", "client2"),
        ("registers", [["/mnt/client1"], ["/mnt/client2"]],
         {"homes": ["rank0/home", "rank1/home"], "keys": 2}),
        ("begin", CLIENTS | {"seed": 7}), ("sleep", 4), ("kill", 1), "active", ("sleep", 6),
        ("mount", "fresh"), ("last reads", [["/mnt/client1", "/mnt/fresh"], ["/mnt/client2"]]), ("end", "fresh")]
    recorded, = study.recorded
    metrics = recorded["metrics"]
    assert (metrics["fault_s"], metrics["active_s"], metrics["recovery_s"]) == (4, 18, 14)
    assert (metrics["stale_reads"], metrics["lost_writes"], metrics["blocked"]) == (1, 1, 0)
    assert len(recorded["series"]["history"]) == metrics["checked_calls"] == 3


@pytest.mark.parametrize("how", TAKEOVERS)
def test_each_way_to_take_over_has_what_it_reads_of_the_point(study, log, how):
    """A restart reads for how long the monitor may take, which the study did not give it."""
    given = yaml.safe_load((paths.papers("ceph_mds") / "full.yml").read_text())["histories"]
    histories.measure_histories(experiment(study, how=how, **{
        name: given[name] for name in ("noticed_within_s", "active_within_s")}))
    assert study.recorded[0]["metrics"]["came_back"] == 1


def test_a_rank_that_does_not_come_back_is_no_history(study, log, monkeypatch):
    def killed(point, ceph, started):
        return 1000.0, {"came_back": 0.0}

    monkeypatch.setattr(histories, "kill_and_await", killed)
    with pytest.raises(SystemFailure, match="rank 1 was not active again within 60 s"):
        histories.measure_histories(experiment(study))
    assert not study.recorded


@pytest.mark.parametrize("wrong, key", [({"how": "prayer"}, "how"), ({"rank": 2}, "rank"), ({"mds": 9}, "mds")])
def test_what_cannot_be_is_refused_before_a_lab(study, log, wrong, key):
    with pytest.raises(InputError, match=key):
        histories.measure_histories(experiment(study, **wrong))
    assert not log

from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn, point

from labbook import paths
from labbook.errors import InputError
from labbook.papers.cms_scalability import histories
from labbook.workloads.histories.calls import Call

RING = dict(version="0.7.0", replication=3, durability="commit", heap_mb=256)
CLIENTS = dict(keys=2, readers=3, write_level="ONE", read_level="ALL", calls_per_s=50.0,
               call_seconds=3.0, seconds_at_most=60.0)
POINT = RING | CLIENTS | dict(nodes=3, before_seconds=4, down_seconds=10, after_seconds=5)
HISTORY = (Call("0", "write", "row000000", "0.0", 0.0, 1.0), Call("2", "read", "row000000", None, 2.0, 3.0))
LAST = [Call("ALL", "read", "row000000", None, 30.0, 31.0, last=True)]


@pytest.fixture
def log(monkeypatch):
    """What was done, in order; a clock that only sleeping moves."""
    done, clock = [], SimpleNamespace(now=0.0)

    def sleep(seconds):
        done.append(("sleep", seconds))
        clock.now += seconds

    def ring(hosts, **settings):
        nodes = [SimpleNamespace(process=SimpleNamespace(kill=lambda host=host: done.append(("kill", host))),
                                 start=lambda host=host: done.append(("start", host))) for host in hosts]
        made = SimpleNamespace(nodes=nodes, create_table=lambda: done.append("table"), facts=dict,
                               await_formed=lambda: done.append("formed"))
        made.up = lambda: done.append(("up", hosts, settings)) or made
        return made

    def begin(crew, ring, **clients):
        done.append(("begin", clients))
        load = SimpleNamespace(rows=pd.DataFrame(), metrics={}, history=HISTORY, slack_s=0.0)
        return SimpleNamespace(since_start=lambda: clock.now, end=lambda: done.append("end") or load)

    ring.checked = histories.Ring.checked
    monkeypatch.setattr(histories, "Ring", ring)
    monkeypatch.setattr(histories, "begin_registers", begin)
    monkeypatch.setattr(histories, "last_reads", lambda *_: done.append("last reads") or LAST)
    monkeypatch.setattr(histories, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(histories.Crew, "of", lambda lab: "crew")
    return done


@pytest.fixture
def study(log):
    lab = SimpleNamespace(host=lambda name: name, limit=lambda host, share: log.append(("limit", host, share)))
    return StandIn(lab, folder=paths.papers("cms_scalability"))


def test_a_node_dies_and_comes_back_under_calls_and_the_history_is_checked(study, log):
    histories.measure_histories(study, study.experiment(point(**POINT)))
    nodes = ["node1", "node2", "node3"]
    assert log == [
        *(("limit", node, None) for node in nodes), ("up", nodes, RING), "table",
        ("begin", CLIENTS | {"seed": 7}), ("sleep", 4), ("kill", "node3"), ("sleep", 10),
        ("start", "node3"), "formed", ("sleep", 5), "end", "last reads"]
    recorded, = study.recorded
    metrics = recorded["metrics"]
    assert (metrics["fault_s"], metrics["restarted_s"], metrics["rejoined_s"]) == (4, 14, 14)
    assert (metrics["stale_reads"], metrics["lost_writes"]) == (1, 1)
    assert len(recorded["series"]["history"]) == metrics["checked_calls"] == 3


@pytest.mark.parametrize("wrong, key", [({"read_level": "ANY"}, "read_level"), ({"version": "9"}, "version"),
                                        ({"nodes": 7}, "nodes"), ({"nodes": 2}, "replication")])
def test_what_cannot_be_is_refused_before_a_lab(study, log, wrong, key):
    with pytest.raises(InputError, match=key):
        histories.measure_histories(study, study.experiment(point(**POINT | wrong)))
    assert not log

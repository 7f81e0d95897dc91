from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn, point

from labbook.papers.wan_keystone import commits, experiments

SETTINGS = dict(rtt_ms=300, rate_mbit=None, concurrency=1, writes=2, value_bytes=200, warmup_s=1, calling_s=6, slice_s=3)
HOSTS = {1: ["db1"], 2: ["db7"]}
CLIENTS = [SimpleNamespace(is_remote=False, cores=[0], limits={})] * 2      # on one core
CALL_S, CALLS = 0.6, 12


def called(seconds, writes=2, calls=10):
    """Rows of one client's calls, which take so long, with their steps."""
    return pd.DataFrame([
        dict(client=0, call=number, step=step, started_s=number * seconds, seconds=seconds, ok=True)
        for number in range(calls) for step in [*["insert", "commit"] * writes, ""]])


class Link:
    """A WAN over which an idle cluster sends 100 bytes and 1 packet a reading, and each load's call 30 and 2."""

    def __init__(self, log):
        self.log, self.read = log, 0

    def shape(self, **shape):
        self.log.append(("shape", shape))

    def traffic(self):
        self.read += 1
        made = sum(calls for what, calls in self.log if what == "calls")
        one_way = {"bytes": 100 * self.read + 30 * made, "packets": self.read + 2 * made}
        return {"a>b": one_way, "b>a": dict.fromkeys(one_way, 0)}


@pytest.fixture
def log(monkeypatch):
    done = []

    def made(lab, point, hosts):
        done.append(("up", hosts))
        return SimpleNamespace(haproxy=f"proxy of {hosts[0]}", facts=lambda: {"galera": {"segments": [0]}})

    def load(crew, targets, *, seconds, **more):
        done.extend([("load", (targets, seconds, more)), ("calls", CALLS * len(targets))])
        return [SimpleNamespace(rows=called(CALL_S, calls=CALLS), metrics={"issued_per_s": [1.6], "clients_cpu_share": 0.4}) for _ in targets]

    monkeypatch.setattr(commits, "new_cloud", made)
    monkeypatch.setattr(commits, "with_table", lambda lab, point, cloud: cloud)
    monkeypatch.setattr(commits.Crew, "of", lambda lab: SimpleNamespace(hosts=CLIENTS))
    monkeypatch.setattr(commits, "commits_side_by_side", load)
    for module in (commits, experiments):
        monkeypatch.setattr(module, "time", SimpleNamespace(
            sleep=lambda seconds: done.append(("sleep", seconds)), monotonic=lambda: float(len(done))))
    return done


@pytest.fixture
def study(log):
    link = Link(log)
    return StandIn(SimpleNamespace(link=lambda *sites: link), wan_rtt_ms=300.0, hosts=HOSTS, at_once=True)


def measured(study, **more):
    given = point("commit", paired={"segments": [1, 2]}, **SETTINGS, **more)
    commits.measure_commits(study, study.experiment(given))
    return study.recorded[0]


def test_both_clouds_are_called_at_the_same_time_over_the_wan(study, log):
    recorded = measured(study)
    assert [what for what, _ in log] == ["shape", "up", "up", "shape", "load", "calls", "load", "calls"]
    targets, seconds, more = log[6][1]
    assert (set(targets), seconds) == ({"proxy of db1", "proxy of db7"}, 6)
    assert more == dict(clients=1, writes=2, value_bytes=200)
    assert {(one.arm, one.number) for one in recorded["slices"]} == {(1, 1), (1, 2), (2, 1), (2, 2)}
    for arm in (1, 2):
        assert recorded["arm_metrics"][arm]["p50_round_trips"] == pytest.approx(2)
        assert recorded["arm_metrics"][arm]["waited_longer"] == 0
        assert recorded["arm_metrics"][arm]["client_limited"] == 1      # both clients share a core: 0.8 of it
        assert "wan_net_bytes_per_call" not in recorded["arm_metrics"][arm]


def test_traffic_is_of_one_cloud_at_a_time_net_of_idle_ones(study, log):
    recorded = measured(study, counted_s=4)
    assert [(what, given) for what, given in log if what == "sleep"] == [("sleep", 4)]
    assert [given[0] for what, given in log if what == "load"][2:] in (
        [["proxy of db1"], ["proxy of db7"]], [["proxy of db7"], ["proxy of db1"]])
    # The idle second has 100 bytes; a load takes two by the clock of the log, and has 100 and those of its calls.
    for arm in (1, 2):
        assert recorded["arm_metrics"][arm]["wan_net_bytes_per_call"] == pytest.approx((100 + 30 * CALLS - 200) / CALLS)


def test_who_waits_longer_than_a_round_trip_a_transaction_is_counted():
    rows = pd.concat([called(0.3, writes=1, calls=3), called(0.45, writes=1, calls=1).assign(call=3)])
    found = commits.in_round_trips(rows, 300.0, 1)
    assert found["mean_round_trips"] == pytest.approx(1.125) and found["waited_longer"] == 0.25
    assert commits.in_round_trips(rows, 0.2, 1) == {}, "no WAN, as pings measure it"


def test_calls_that_failed_make_no_other_wait_longer():
    failed = called(0.1, writes=1, calls=3).query("step == ''").assign(ok=False)
    rows = pd.concat([called(0.31, writes=1, calls=7), failed.assign(call=[7, 8, 9])])
    assert commits.in_round_trips(rows, 300.0, 1)["waited_longer"] == 0


def test_a_link_that_nobody_counts_gives_no_traffic(study):
    study.lab.link().traffic = lambda: {"a>b": None, "b>a": None}
    assert "wan_net_bytes_per_call" not in measured(study, counted_s=4)["arm_metrics"][1]

import threading
from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn, point

from labbook import paths
from labbook.lab import LabDescription
from labbook.papers.wan_keystone import pairs
from labbook.study.paired import summaries

HOSTS = {1: ["db1"], 2: ["db7"]}
FACTS = {"galera": {"version": "10.11", "provider": "26.4"}, "haproxy": {"version": "2.6"},
         "keystone": {"version": "22"}}


class Cloud:
    def __init__(self, hosts, log):
        self.hosts, self.destroy = hosts, lambda: log.append(("destroyed", hosts))


def called(*times, seconds=1.0):
    """Rows of one client's calls that begin at these times, each with a step that begins a moment later."""
    return pd.DataFrame([dict(client=0, call=number, step=step, started_s=at + after, seconds=seconds, ok=True)
                         for number, at in enumerate(times) for step, after in (("list_users", 0.4), ("", 0.0))])


def test_a_cloud_has_six_databases_a_proxy_and_keystone_of_its_own():
    lab = LabDescription.load(paths.papers("wan_keystone") / "lab.yml")
    sets = pairs.host_sets(lab, [1, 2])
    assert sets[1] == ["db1", "db2", "db3", "db4", "db5", "db6", "lb", "keystone"]
    assert len(sets[2]) == 8 and not set(sets[1]) & set(sets[2])
    limits = [{name: limit for name, limit in lab.host(host).limits.items() if name == "memory"}
              for hosts in sets.values() for host in hosts]
    assert limits[:8] == limits[8:]


def test_calls_are_sliced_by_when_they_began_with_their_steps():
    slices = pairs.in_slices(called(0.1, 1.2, 2.9, 4.1, 5.5, 6.1), 2, seconds=3, calling_s=7)
    assert [(one.arm, one.number) for one in slices] == [(2, 1), (2, 2)]
    # The call that began at 2.9 is of the first slice, and so is its step of 3.3; the rest of a slice is no slice.
    assert [sorted(set(one.rows["call"])) for one in slices] == [[0, 1, 2], [3, 4, 5]]
    assert [summary["n"] for summary in summaries(slices)] == [3, 3]
    assert sum(len(one.rows) for one in slices) == 12


@pytest.mark.parametrize("times", [(0.0,), (0.5, 1.0)])
def test_fewer_calls_than_fill_a_slice_are_one(times):
    one, = pairs.in_slices(called(*times), 1, seconds=3, calling_s=3)
    assert one.number == 1 and set(one.rows["call"]) == set(range(len(times)))


@pytest.mark.parametrize("at_once", [True, False])
def test_clouds_that_are_measured_together_start_together(at_once):
    log, met = [], threading.Barrier(2 if at_once else 1, timeout=10)

    def start(lab, point, hosts):
        met.wait()      # nobody passes who is alone
        return Cloud(hosts, log)

    def prepare(lab, point, cloud):
        log.append((point.segments, cloud.hosts))
        return cloud

    lab = SimpleNamespace(link=lambda *sites: SimpleNamespace(shape=lambda: log.append("no delay")))
    study = StandIn(lab, hosts=HOSTS, at_once=at_once)
    with study.attempt(point(paired={"segments": [1, 2]})) as attempt:
        found = list(pairs.together(attempt, start, prepare))
    assert [{arm: cloud.hosts for arm, cloud in clouds.items()} for clouds in found] == (
        [HOSTS] if at_once else [{1: ["db1"]}, {2: ["db7"]}])
    assert log.count("no delay") == len(found) and log[0] == "no delay"
    assert sorted(log[1:3] if at_once else [log[1], log[3]]) == [(1, ["db1"]), (2, ["db7"])]


@pytest.mark.parametrize("last", [8.0, 8.9])
def test_both_arms_are_cut_alike_wherever_their_last_call_began(last):
    slices = pairs.in_slices(called(0.1, 3.2, last), 1, seconds=3, calling_s=9)
    assert [one.number for one in slices] == [1, 2, 3]


def test_each_client_keeps_its_hosts_where_the_arms_swap():
    swapped = StandIn(SimpleNamespace(link=lambda *sites: SimpleNamespace(shape=lambda: None)),
                      hosts={1: ["db7"], 2: ["db1"]}, at_once=True)
    with swapped.attempt(point(paired={"segments": [1, 2]})) as attempt:
        clouds, = pairs.together(attempt, lambda lab, point, hosts: Cloud(hosts, []), lambda lab, point, cloud: cloud)
    assert [(arm, cloud.hosts) for arm, cloud in clouds.items()] == [(2, ["db1"]), (1, ["db7"])]


def test_clouds_end_together_the_last_first():
    log = []
    pairs.Together({arm: Cloud(hosts, log) for arm, hosts in HOSTS.items()}).destroy()
    assert log == [("destroyed", ["db7"]), ("destroyed", ["db1"])]


@pytest.mark.parametrize("at_once, is_remote, limited", [(True, False, 1), (False, False, 0), (True, True, 0)])
def test_clients_limit_together_where_they_share_a_core_at_the_same_time(monkeypatch, at_once, is_remote, limited):
    """Each cloud's client uses 0.4 of its core."""
    crew = SimpleNamespace(hosts=[SimpleNamespace(is_remote=is_remote, cores=[0], limits={})] * 2)

    def calls(crew, clouds, **load):
        metrics = {"issued_per_s": [1.0], "clients_cpu_share": 0.4}
        return [SimpleNamespace(rows=called(0.1), metrics=metrics) for _ in clouds]

    for name, made in (("new_cloud", lambda lab, point, hosts: SimpleNamespace(facts=lambda: FACTS)),
                       ("warmed", lambda lab, point, cloud: cloud), ("reset", lambda attempt, *clouds: 100.0),
                       ("check", lambda experiment: None), ("keystone_users_side_by_side", calls)):
        monkeypatch.setattr(pairs, name, made)
    monkeypatch.setattr(pairs.Crew, "of", lambda lab: crew)
    looks = iter([0, 1] * 2)

    def seconds(host, cores):
        look = next(looks)
        return 3 * look * len(cores), 10 * look * len(cores)

    monkeypatch.setattr(pairs, "core_seconds", seconds)
    link = SimpleNamespace(shape=lambda: None)
    lab = SimpleNamespace(link=lambda *sites: link, hosts=dict(zip(("c1", "c2"), crew.hosts)))
    study = StandIn(lab, hosts=HOSTS, at_once=at_once)
    given = point(paired={"segments": [1, 2]}, scenario="create_user", concurrency=1, calling_s=3, slice_s=3)
    ceiling = study.experiment(summary=pd.DataFrame({"scenario": ["create_user"], "issued_per_s": [[100.0]]}))
    pairs.measure_pairs(study, study.experiment(given), ceiling)
    found = study.recorded[0]["arm_metrics"].values()
    assert [of_arm["client_limited"] for of_arm in found] == [limited] * 2
    assert [of_arm.get("machine_busy") for of_arm in found] == [0.3 if limited else None] * 2

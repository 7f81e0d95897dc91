"""Two clusters at once, without servers: their hosts, the order of slices, and what is recorded of both."""

from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn

from labbook import paths
from labbook.lab import LabDescription
from labbook.papers.ceph_mds import clusters, pairs
from labbook.papers.ceph_mds.experiments import Measured
from labbook.study.point import Point

HOSTS = {1: ["mon", "mds1"], 2: ["mon2", "mds5"]}
LAB = SimpleNamespace(hosts={})


@pytest.fixture
def lab():
    return LabDescription.load(paths.papers("ceph_mds") / "lab.yml")


def point(repeat=1, slices=2):
    return Point("rates", {"osds": "disk"}, {"slices": slices, "rest_within_s": 60}, repeat, 1, 1, 7, {"mds": [1, 2]})


def test_the_clusters_of_a_pair_have_hosts_of_their_own_that_are_alike(lab):
    sets = pairs.host_sets(lab, [1, 2])
    roles = [[lab.host(name).role for name in names] for names in sets.values()]
    assert roles[0] == roles[1] == ["mon", *["osd"] * 8, *["mds"] * 2] and not set(sets[1]) & set(sets[2])
    limits = [[lab.host(name).limits for name in names] for names in sets.values()]
    assert limits[0] == limits[1]


def test_a_cluster_that_is_alone_has_the_first_ones_hosts(lab):
    assert list(clusters.FIRST) == list(lab.systems[0]["hosts"])


def measured(monkeypatch, at_once=True, repeat=1):
    """What is recorded of a point, and what was done, in order."""
    did, study = [], StandIn(LAB, hosts=HOSTS)
    monkeypatch.setattr(pairs, "cluster_up", lambda lab, point, hosts: did.append(
        ("up", point.mds, hosts)) or SimpleNamespace(mds=point.mds))
    monkeypatch.setattr(pairs, "at_rest", lambda ceph, seconds: did.append(("rest", ceph.mds)) or ceph.mds == 1)

    def measure(run, ceph):
        assert run.point.mds == ceph.mds and run.lab is LAB
        did.append(("measure", ceph.mds))
        return Measured([{"ok": True}], {"create_per_s": 100.0 * ceph.mds}, {"version": "16"},
                        {"phases": pd.DataFrame({"phase": ["create"]})})

    one = point(repeat)
    with study.attempt(one) as attempt:
        attempt.at_once, attempt.hosts = at_once, HOSTS.get
        pairs.measure_pair(attempt, StandIn.experiment(one), measure)
    return study.recorded[0], did


def test_both_clusters_are_up_before_the_first_slice_and_at_rest_before_each(monkeypatch):
    recorded, did = measured(monkeypatch)
    assert {one[0] for one in did[:2]} == {"up"} and {one[2][0] for one in did[:2]} == {"mon", "mon2"}
    in_turn = [one[1] for one in did if one[0] == "measure"]
    assert in_turn in ([1, 2, 2, 1], [2, 1, 1, 2])
    assert len([one for one in did if one[0] == "rest"]) == 8       # both, before each of four slices
    assert [one.metrics["rested"] for one in recorded["slices"]] == [0.0] * 4   # since one was not


def test_facts_and_series_are_of_both_clusters(monkeypatch):
    recorded, _ = measured(monkeypatch)
    assert set(recorded["facts"]) == {"1", "2"}
    phases = recorded["series"]["phases"]
    assert len(phases) == 4 and set(phases["mds"]) == {1, 2} and set(phases["slice"]) == {1, 2}


def test_clusters_that_take_turns_are_up_one_after_the_other(monkeypatch):
    recorded, did = measured(monkeypatch, at_once=False)
    assert all(one[1] == did[i - 1][1] for i, one in enumerate(did) if one[0] == "measure")
    assert [one for one in did if one[0] == "rest"][0][1] == did[0][1] and len(recorded["slices"]) == 4


def test_a_pair_has_all_arms_of_the_experiment_also_those_that_a_point_leaves_out(monkeypatch):
    monkeypatch.setattr(pairs, "cluster_up", lambda lab, point, hosts: (point.mds, hosts))
    study, whole = StandIn(LAB, hosts=HOSTS), point()
    part = Point("rates", {"osds": "disk"}, {"slices": 1, "rest_within_s": 60}, 1, 1, 2, 7, {"mds": [2]})
    with study.attempt(part) as attempt:
        attempt.hosts = HOSTS.get
        found = pairs.both_up(attempt, StandIn.experiment(part, whole))
    assert found == {1: (1, HOSTS[1]), 2: (2, HOSTS[2])}

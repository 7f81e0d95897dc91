"""The donor without servers: what is loaded again, restored and set before each point."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from paper_stand_ins import point as a_point

from labbook.papers.cassandra_elasticity import donor

SETTINGS = {"version": "1.0.7", "heap_mb": 384, "stream_mbit": None, "whole_files": None, "files": "by_size",
            "coordinators": "donor", "ring_delay_ms": 3000, "data_mb": 16, "value_bytes": 16384,
            "loading_mb_per_s": 70}


class Ring:
    """Writes down what is done with it."""

    def __init__(self, did):
        self.did = did

    def __getattr__(self, name):
        def act(*given):
            self.did.append((name, *given))
            return self
        return act


class Lab:
    def __init__(self):
        self.disks = []

    def role(self, name):
        return ["node1", "node2"]

    def disk(self, name):
        return SimpleNamespace(facts=lambda: {"scheduler": "none", "read_ahead_kb": 128, "order": "elevator"},
                               in_a_hurry=nullcontext, set=lambda **wanted: self.disks.append((name, wanted)))


@pytest.fixture
def did(monkeypatch):
    done = []
    monkeypatch.setattr(donor, "ElasticRing", lambda hosts, **settings: Ring(done))
    monkeypatch.setattr(donor.Crew, "of", lambda lab: "crew")
    monkeypatch.setattr(donor, "load_pairs", lambda crew, ring, **spec: done.append(("load", spec["rows"])) or
                        SimpleNamespace(metrics={"mb_per_s": 60.0, "mb_per_s_per_client_core": 500.0}))
    return done


def attempt(lab, **params):
    return SimpleNamespace(lab=lab, point=a_point(**{**SETTINGS, "compaction": True, **params}))


def steps(did):
    found = [one[0] for one in did]
    did.clear()
    return found


BEGIN = ["up", "compaction", "snapshot"]
LOAD = ["restore", "check_room", "load", "merge", "snapshot"]
RESTORE = ["read_ahead_of_gets", "restore", "compaction"]
SHIPPED = {"scheduler": "none", "read_ahead_kb": 128, "order": "elevator", "tags": 128}


def test_data_are_loaded_once_and_restored_for_each_point_until_a_setting_of_the_ring_changes(did):
    keeper, lab = donor.Donor(["node1", "node2"]), Lab()
    keeper.restore(attempt(lab))
    assert steps(did) == BEGIN + LOAD + RESTORE and keeper.metrics["loader_mb_per_s"] == 60
    keeper.restore(attempt(lab, compaction=False))
    assert did[-1] == ("compaction", False) and steps(did) == RESTORE
    keeper.restore(attempt(lab, data_mb=32))
    assert ("load", 1953) in did and steps(did) == [*LOAD, *RESTORE]
    keeper.restore(attempt(lab))    # kept
    assert did[1] == ("restore", "16-16384-70") and steps(did) == RESTORE
    keeper.restore(attempt(lab, heap_mb=256))
    assert steps(did) == ["destroy", *BEGIN, *LOAD, *RESTORE]


def test_a_donor_without_data_is_the_empty_ring(did):
    keeper = donor.Donor(["node1", "node2"])
    keeper.restore(attempt(Lab(), data_mb=0))
    assert did[-2] == ("restore", donor.EMPTY) and steps(did) == BEGIN + RESTORE and keeper.metrics == {}


def test_snapshots_go_where_they_would_fill_the_disk(did, monkeypatch):
    monkeypatch.setattr(donor, "KEPT_MB", 40)
    keeper, lab = donor.Donor(["node1", "node2"]), Lab()
    keeper.restore(attempt(lab))
    keeper.restore(attempt(lab, data_mb=32))
    assert ("forget", "16-16384-70") in did
    steps(did)
    keeper.restore(attempt(lab))
    assert steps(did) == ["forget", *LOAD, *RESTORE]


def test_a_new_lab_has_no_ring_to_destroy(did):
    keeper = donor.Donor(["node1", "node2"])
    keeper.restore(attempt(Lab()))
    steps(did)
    keeper.restore(attempt(Lab()))
    assert steps(did) == BEGIN + LOAD + RESTORE


def test_disks_are_set_as_the_point_has_them_and_back_as_shipped_to_load_and_for_others(did):
    keeper, lab = donor.Donor(["node1", "node2"]), Lab()
    shipped = SHIPPED
    keeper.restore(attempt(lab))
    assert lab.disks == []
    keeper.restore(attempt(lab, scheduler="bfq"))
    assert lab.disks == [(node, shipped | {"scheduler": "bfq"}) for node in ("node1", "node2")]
    lab.disks.clear()
    keeper.restore(attempt(lab, scheduler="bfq", data_mb=32))
    assert lab.disks == [(node, wanted) for wanted in (shipped, shipped | {"scheduler": "bfq"})
                         for node in ("node1", "node2")]
    lab.disks.clear()
    keeper.restore(attempt(lab, data_mb=32, disk_order="fcfs", tags=4))
    assert lab.disks[0] == ("node1", shipped | {"order": "fcfs", "tags": 4})
    lab.disks.clear()
    keeper.restore(attempt(lab, data_mb=32, read_ahead_kb=1024))
    assert lab.disks[0] == ("node1", shipped | {"read_ahead_kb": 1024})


def test_after_a_failed_load_the_data_are_loaded_again(did, monkeypatch):
    keeper, lab = donor.Donor(["node1", "node2"]), Lab()
    keeper.restore(attempt(lab))

    def fails(*_, **__):
        raise RuntimeError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(donor, "load_pairs", fails)
        with pytest.raises(RuntimeError):
            keeper.restore(attempt(lab, data_mb=32))
    steps(did)
    keeper.restore(attempt(lab, data_mb=32))
    assert steps(did) == LOAD + RESTORE

"""Rates over numbers of directories, and what is off their trend."""

from contextlib import contextmanager
from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn, point

from labbook.papers.ceph_mds import sweep


def test_all_numbers_are_measured_in_an_order_of_the_point():
    found = sweep.in_turn(point(least=8, most=24, step=4))
    assert sorted(found) == [8, 12, 16, 20, 24] and found == sweep.in_turn(point(least=8, most=24, step=4))


def test_a_number_off_the_trend_of_all_others_has_a_residual():
    rates = {number: 1000 * number**-0.2 for number in (8, 12, 16, 20, 24)}
    found = sweep.sweep_metrics(rates)
    assert found["create_residual_16"] == pytest.approx(1) and found["create_per_s_8"] == rates[8]
    assert found["create_most_over_least"] == pytest.approx(3**-0.2)
    assert found["create_per_s_beyond"] == pytest.approx((rates[20] + rates[24]) / 2)
    found = sweep.sweep_metrics(rates | {16: 1.27 * rates[16]})
    assert found["create_residual_16"] == pytest.approx(1.27) and found["create_residual_12"] < 1


def test_calls_are_held_against_the_journals_writes_since_the_beginning():
    counted = iter([{"avgcount": 10, "sum": 1.0}, {"avgcount": 30, "sum": 2.0}])
    ceph = SimpleNamespace(ranks=lambda: {0: SimpleNamespace(name="mds1")},
                           ask=lambda name, prefix: {"mds_log": {"jlat": next(counted)}})
    written = sweep.Journal(ceph).mean_s()
    assert written == pytest.approx(0.05)
    rows = pd.DataFrame({"seconds": [0.002, 0.002, 9.0], "ok": [True, True, False]})
    assert sweep.against_journal([rows, rows], written) == pytest.approx(
        {"create_median_ms": 2, "journal_ms": 50, "create_over_journal": 0.04})


class Watched:
    """No ceph-fuse: 0.2 of the core in any window."""

    def __init__(self, processes):
        self.processes = processes

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def used(self, from_s, to_s):
        return 0.2 * (to_s - from_s)


@pytest.mark.parametrize("rests, rested", [([True] * 5, 1), ([False, *[True] * 4], 0)])
def test_each_number_has_a_mount_of_its_own_on_one_cluster(monkeypatch, rests, rested):
    counted = iter([{"avgcount": 0, "sum": 0.0}, {"avgcount": 10, "sum": 2.0}])
    mounts, ceph = [], SimpleNamespace(
        facts=lambda: {"version": "16"}, ranks=lambda: {0: SimpleNamespace(name="mds1")},
        ask=lambda name, prefix: {"mds_log": {"jlat": next(counted)}})

    @contextmanager
    def mounted(attempt, of, number, cache_inodes):
        mounts.append((of, number, cache_inodes))
        yield [[SimpleNamespace(path="/mnt", host="c1", process="fuse")]]

    def metadata(crew, paths, *, pattern, directories, **_):
        assert pattern == "creates" and paths == [["/mnt"]]
        rate = 1000.0 * (1.27 if directories == 16 else 1)
        return SimpleNamespace(
            rows=pd.DataFrame({"started_s": [0.0], "seconds": [0.1], "ok": [True]}), started=1000.0,
            metrics={"sequential_create_per_s": rate, "clients_cpu_s": 0.1},
            phases=pd.DataFrame({"phase": ["sequential_create"], "started_s": [0.0], "ended_s": [2.0], "operations": [9]}))

    for name, made in (("bring_up", lambda attempt: ceph), ("at_rest", lambda of, seconds: rests.pop(0)), ("mounted", mounted),
                       ("metadata", metadata), ("CpuWatch", Watched), ("cpus_together", len),
                       ("check_points", lambda experiment: None)):
        monkeypatch.setattr(sweep, name, made)
    monkeypatch.setattr(sweep.Crew, "of", lambda lab: SimpleNamespace(hosts=["c1"]))
    study = StandIn(None)
    experiment = study.experiment(point(least=8, most=24, step=4, files=64, cache_inodes=16384, rest_within_s=60,
                                        seconds_at_most=60))
    experiment.study = study
    sweep.measure_sweep(experiment, study.experiment(summary=pd.DataFrame()))
    found, = study.recorded
    assert mounts == [(ceph, 1, 16384)] * 5 and sorted(found["rows"]["directories"]) == [8, 12, 16, 20, 24]
    assert found["metrics"]["create_residual_16"] == pytest.approx(1.27)
    assert found["metrics"]["create_over_journal"] == pytest.approx(0.5)
    assert found["metrics"]["client_limited"] == 0 and found["metrics"]["rested"] == rested

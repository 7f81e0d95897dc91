from contextlib import contextmanager
from types import SimpleNamespace

import pandas as pd
import pytest

from labbook.papers.ceph_mds import server_load

PHASES = pd.DataFrame({"phase": ["sequential_create", "random_stat"], "from_s": [10.0, 20.0], "to_s": [14.0, 22.0]})


def using(cores: float):
    """A watch of a server that uses so many cores all the time."""
    return SimpleNamespace(used=lambda from_s, to_s: cores * (to_s - from_s))


def test_the_share_is_that_of_the_busiest_server_in_each_phase():
    early = SimpleNamespace(used=lambda from_s, to_s: 0.8 if from_s < 20 else 0.0)
    found = server_load.server_shares({"mds1": early, "mds2": using(0.1)}, PHASES, share=0.2)
    assert found == pytest.approx({"sequential_create_mds_share": 1.0, "random_stat_mds_share": 0.5,
                                   "mds_share_used": 1.0})
    assert server_load.server_shares({}, PHASES, share=0.2) == {}


def test_one_servers_share_is_that_of_the_order_in_which_it_does_less():
    """By this claims know whether one server was the bottleneck; two have no such number."""
    phases = PHASES.assign(phase=["sequential_create", "random_create"])
    early = SimpleNamespace(used=lambda from_s, to_s: (0.8 if from_s < 20 else 0.1))
    found = server_load.server_shares({"mds1": early}, phases, share=0.2)
    assert found["create_one_mds_share"] == pytest.approx(0.1 / 2 / 0.2)
    assert "create_one_mds_share" not in server_load.server_shares({"mds1": early, "mds2": early}, phases, share=0.2)
    assert server_load.of_one_server({"delete_mds_share": 0.5, "mkdir_mds_share": 0.1}) == {
        "delete_one_mds_share": 0.5, "mkdir_one_mds_share": 0.1}


def test_only_servers_with_a_rank_are_sampled(monkeypatch):
    begun = []

    @contextmanager
    def watch(processes, between_s):
        begun.append((processes, between_s))
        yield using(0.1)

    monkeypatch.setattr(server_load, "CpuWatch", watch)
    mdss = {name: SimpleNamespace(process=f"process of {name}") for name in ("mds1", "mds2", "mds3")}
    ceph = SimpleNamespace(mdss=mdss, ranks=lambda: {0: SimpleNamespace(name="mds2"), 1: SimpleNamespace(name="mds3")})
    with server_load.servers_watched(ceph, 0.25) as watches:
        assert list(watches) == ["mds2", "mds3"]
    assert begun == [(["process of mds2"], 0.25), (["process of mds3"], 0.25)]

"""How busy disks and cores are before and after nodes join, from what made-up hosts count."""

from types import SimpleNamespace

import pytest

from labbook.papers.cassandra_elasticity import bottleneck


class Lab:
    """Two nodes on cores 0 and 1; `count` is how much each counter grows by in a window of 10 s."""

    def __init__(self, cores=((0, 1), (1,))):
        self.now, self.cores = 0.0, dict(zip(("node1", "node2"), cores))

    def host(self, name):
        return SimpleNamespace(name=name, cores=self.cores[name])

    def disk(self, name):
        return SimpleNamespace(busy_s=lambda: self.now * {"node1": 0.9, "node2": 0.3}[name])


@pytest.fixture
def asked():
    """The cores that were looked at."""
    return []


@pytest.fixture
def windows(monkeypatch, asked):
    def of(**given):
        lab = Lab(**given)
        asked.clear()
        ring = SimpleNamespace(joined=["node1"], nodes=[
            SimpleNamespace(host=SimpleNamespace(name=name)) for name in ("node1", "node2")])
        monkeypatch.setattr(bottleneck, "server_cpu", lambda ring: lab.now * 0.5 * len(ring.joined))
        monkeypatch.setattr(bottleneck, "core_seconds", lambda host, cores: (
            asked.append(cores) or 0.6 * lab.now * len(ring.joined) / 2, lab.now))
        monkeypatch.setattr(bottleneck.time, "monotonic", lambda: lab.now)
        monkeypatch.setattr(bottleneck.time, "sleep", lambda seconds: setattr(lab, "now", lab.now + seconds))
        return bottleneck.Windows(lab, ring), ring
    return of


def test_the_first_and_the_last_window_are_reported_with_all_nodes_of_the_ring(windows):
    look, ring = windows()
    look.rest(10)
    ring.joined = ["node1", "node2"]
    look.rest(10)
    found = look.metrics()
    assert found["donor_disk_before"] == found["most_disk_before"] == pytest.approx(0.9)
    assert found["most_disk_after"] == pytest.approx(0.9)
    assert found["nodes_cpus_before"] == pytest.approx(0.5) and found["cores_before"] == pytest.approx(0.3)
    assert found["shared_cores_busy"] == found["cores_before"] < found["cores_after"]


def test_cores_of_ones_own_are_not_shared(windows):
    look, _ = windows(cores=((0,), (1,)))
    look.rest(10)
    assert look.metrics()["shared_cores_busy"] == 0


@pytest.mark.parametrize("cores, wanted", [(((0, 1), (1,)), {0, 1}), (((), None), None)])
def test_other_cores_of_the_machine_do_not_count(windows, asked, cores, wanted):
    look, _ = windows(cores=cores)
    look.rest(10)
    assert asked == [wanted] * 2

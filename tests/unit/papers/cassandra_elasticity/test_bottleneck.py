"""How busy disks and cores are before and after nodes join, from what made-up hosts count."""

from types import SimpleNamespace

import pytest

from labbook.papers.cassandra_elasticity import bottleneck


class Lab:
    """Two nodes on cores 0 and 1; `count` is how much each counter grows by in a window of 10 s."""

    def __init__(self, cores=((0, 1), (1,))):
        self.now, self.cores = 0.0, dict(zip(("node1", "node2"), cores))

    def host(self, name):
        tick = [int(self.now * 40), 0, int(self.now * 20), int(self.now * 30), int(self.now * 10), 0, 0, 0]
        return SimpleNamespace(name=name, cores=self.cores[name], run=lambda _: SimpleNamespace(
            stdout="cpu " + " ".join(map(str, tick if self.now else [0] * 8))))

    def disk(self, name):
        return SimpleNamespace(busy_s=lambda: self.now * {"node1": 0.9, "node2": 0.3}[name])


@pytest.fixture
def windows(monkeypatch):
    def of(**given):
        lab = Lab(**given)
        ring = SimpleNamespace(joined=["node1"], nodes=[
            SimpleNamespace(host=SimpleNamespace(name=name)) for name in ("node1", "node2")])
        monkeypatch.setattr(bottleneck, "server_cpu", lambda ring: lab.now * 0.5 * len(ring.joined))
        monkeypatch.setattr(bottleneck, "cpu_ticks", lambda host: (100 * lab.now, 60 * lab.now * len(ring.joined) / 2))
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


def test_ticks_are_all_and_those_not_idle():
    host = SimpleNamespace(run=lambda _: SimpleNamespace(stdout="cpu 40 0 20 130 10 0 0 0"))
    assert bottleneck.cpu_ticks(host) == (200, 60)

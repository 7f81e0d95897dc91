"""What is noted of the machine, and which records belong together."""

import time

import pytest

from labbook.study import provenance


def test_the_machine_is_described():
    machine = provenance.machine()
    assert machine["cores"] >= 1 and machine["memory_gib"] > 0
    assert all(machine[k] for k in ("cpu", "kernel", "system", "python"))
    assert machine["id"] == provenance.machine_id() and len(machine["id"]) == 10


def test_another_cpu_is_another_machine(monkeypatch):
    ids = set()
    for cpu in ("one", "another"):
        provenance.machine_id.cache_clear()
        monkeypatch.setattr(provenance, "_cpu_model", lambda cpu=cpu: cpu)
        ids.add(provenance.machine_id())
    provenance.machine_id.cache_clear()
    assert len(ids) == 2


def test_hosts_elsewhere_are_a_place_of_their_own(tmp_path):
    local = tmp_path / "local.yml"
    local.write_text("provider: namespaces\n")
    assert provenance.place(local) == provenance.machine_id()
    hosts = tmp_path / "rack.yml"
    places = set()
    for address in ("10.0.0.1", "10.0.0.2"):
        hosts.write_text(f"provider: ssh\nhosts: {{a: {address}}}\n")
        places.add(provenance.place(hosts))
    assert len(places) == 2 and all(p.startswith("rack-") for p in places)


def test_what_the_machine_did_meanwhile(monkeypatch):
    ticks = iter([[100, 0, 0, 100, 0, 0, 0, 0], [130, 0, 0, 150, 0, 0, 0, 20]])
    stalls = iter([{"cpu": 0, "io": 5}, {"cpu": 500_000, "io": 5}])
    monkeypatch.setattr(provenance, "_cpu_ticks", lambda: next(ticks))
    monkeypatch.setattr(provenance, "_stalls", lambda: next(stalls))
    start = provenance.before() | {"time": time.time() - 1}
    found = provenance.during(start)
    assert found["steal"] == pytest.approx(0.2)
    assert found["pressure"] == {"cpu": pytest.approx(0.5, abs=0.05), "io": 0}
    assert found["ended"] - found["started"] == pytest.approx(1, abs=0.2)


def test_a_kernel_without_pressure_is_fine(monkeypatch):
    real = provenance._text
    monkeypatch.setattr(provenance, "_text",
                        lambda path: "" if path.startswith("/proc/pressure") else real(path))
    assert provenance.during(provenance.before())["pressure"] == {}


def test_outside_of_git_there_is_no_commit(root):
    provenance.code.cache_clear()
    assert provenance.code() == {"commit": None, "changed": None}
    provenance.code.cache_clear()

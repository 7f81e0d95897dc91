"""What is noted of the machine, and which records belong together."""

import time
from types import SimpleNamespace

import pytest

from labbook.study.records import provenance


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


RACK = """provider: ssh
user: op
key: /home/me/.ssh/lab
known_hosts: /home/me/.ssh/known
root: /home/op/labs
jumps: {gate: {address: gate.example.org, user: jay}}
hosts:
  rack1: {address: 192.0.2.1, data: 10.0.0.1, roles: [db]}
  rack2: {address: 192.0.2.11, data: 10.0.0.11, roles: [client], jump: gate}
"""


def place_of(folder, text, name="rack.yml"):
    (folder / name).write_text(text)
    return provenance.place(folder / name)


def test_hosts_elsewhere_are_a_place_of_their_own(tmp_path):
    assert place_of(tmp_path, "provider: namespaces\n", "local.yml") == provenance.machine_id()
    place = place_of(tmp_path, RACK)
    assert place.startswith("rack-") and place != provenance.machine_id()


@pytest.mark.parametrize("old, new", [
    ("rack1:", "rack3:"), ("192.0.2.1,", "192.0.2.2,"), ("10.0.0.1,", "10.0.0.2,"),
    ("[db]", "[db, web]"), ("[db]", "[db], site: b")])
def test_other_hosts_are_another_place(tmp_path, old, new):
    assert old in RACK and place_of(tmp_path, RACK.replace(old, new)) != place_of(tmp_path, RACK)


@pytest.mark.parametrize("old, new", [
    ("user: op", "user: me"), ("/.ssh/lab", "/.ssh/other"), (", jump: gate", ""),
    ("root: /home/op/labs", "root: /srv/lab/s"), ("[db]", "[db], allow: [limits], python: python3.12")])
def test_the_way_to_the_same_hosts_does_not_matter(tmp_path, old, new):
    assert old in RACK and place_of(tmp_path, RACK.replace(old, new)) == place_of(tmp_path, RACK)


def test_addresses_users_and_keys_are_not_reported(tmp_path):
    (tmp_path / "rack.yml").write_text(RACK)
    redact = provenance.redactor(tmp_path / "rack.yml")
    redacted = redact({"op@10.0.0.1": ["jay@gate.example.org: refused", "/10.0.0.11:9160", 7, None],
                       "log": ("key /home/me/.ssh/lab of /home/me/.ssh/known", "/home/op/labs/ab1/db/log"),
                       "also": "192.0.2.1 and 192.0.2.11, port 22; 192.0.2.1."})
    assert redacted == {"rack1": ["gate: refused", "/rack2:9160", 7, None],
                        "log": ("key KEY of KNOWN_HOSTS", "ROOT/ab1/db/log"),
                        "also": "rack1 and rack2, port 22; rack1."}
    assert redact("\x1b[31m10.0.0.1\x1b[0m") == "\x1b[31mrack1\x1b[0m"
    assert redact("rack1 is in use: lab ab12 of jay@desk (0a1b2c) has it") == (
        "rack1 is in use: lab ab12 of another user has it")
    unlike = "10.0.0.111 110.0.0.1 10.0.0.1.2 opera@home my192.0.2.1"
    assert redact(unlike) == unlike


def test_nothing_is_veiled_of_this_machine(tmp_path):
    (tmp_path / "local.yml").write_text("provider: namespaces\n")
    data = {"a": "198.18.0.1"}
    assert provenance.redactor(tmp_path / "local.yml")(data) is data


def test_what_the_machine_did_meanwhile(monkeypatch):
    ticks = iter([[100, 0, 0, 100, 0, 0, 0, 0], [130, 0, 0, 150, 0, 0, 0, 20]])
    stalls = iter([{"cpu": 0, "io": 5}, {"cpu": 500_000, "io": 5}])
    monkeypatch.setattr(provenance, "_cpu_ticks", lambda: next(ticks))
    monkeypatch.setattr(provenance, "_stalls", lambda: next(stalls))
    monkeypatch.setattr(provenance, "clock", SimpleNamespace(anchor=lambda: None, now=iter([1000.0, 1001.0]).__next__))
    found = provenance.during(provenance.before())
    assert found["steal"] == pytest.approx(0.2)
    assert found["pressure"] == {"cpu": pytest.approx(0.5), "io": 0}
    assert (found["started"], found["ended"]) == (1000, 1001)


def test_a_kernel_without_pressure_is_fine(monkeypatch):
    real = provenance._text
    monkeypatch.setattr(provenance, "_text",
                        lambda path: "" if path.startswith("/proc/pressure") else real(path))
    assert provenance.during(provenance.before())["pressure"] == {}


def test_outside_of_git_there_is_no_commit(root):
    provenance.code.cache_clear()
    assert provenance.code() == {"commit": None, "changed": None}
    provenance.code.cache_clear()


def test_a_clock_that_is_set_back_meanwhile_changes_no_length_and_no_share(make, monkeypatch):
    real, stalls = time.time, iter([{"cpu": 0}, {"cpu": 1}])
    monkeypatch.setattr(provenance, "_stalls", lambda: next(stalls, {"cpu": 1}))
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            monkeypatch.setattr(time, "time", lambda: real() - 7200)
            attempt.record(metrics={"x": 1})
        break
    meta = study.records("speed").meta(point.key)
    during = meta["provenance"]["during"]
    assert 0 <= during["ended"] - during["started"] < 600 and 0 <= meta["took_s"] < 600
    assert 0 <= during["pressure"]["cpu"] <= 1

"""`labbook run` on foreign hosts, whole: two stores and their clients, a user who is not root, one
host behind a jump host. What comes out names no address, user nor key, and the hosts are as before."""

import json
import subprocess
import time

import pytest
from foreign import foreign_hosts
from real_labs import Checkout, as_before

from labbook.study.records.record import Records

STORES = [{"name": "mysql", "host": "server", "settings": {"version": "5.5.9"}},
          {"name": "cassandra", "host": "server", "settings": {"version": "0.7.0"}}]
LAB = {"sites": ["lan"],
       "hosts": {"server": {"site": "lan", "role": "db",
                            "limits": {"cores": 1, "quota": 0.9, "memory": "1500M"}},
                 "client[1-2]": {"site": "lan", "role": "client"}},
       "systems": STORES, "needs": {"memory": "2G", "disk": "500M"}}
PARAMETERS = '''environment = "environments/hosts.yml"
stores = ["mysql", "cassandra"]
requests = 40
'''
CODE = '''from labbook.study import Study
from labbook.systems import find
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue.contents import fill
from labbook.workloads.keyvalue.load import keyvalue

study = Study("stores", environment)
versions = {"mysql": "5.5.9", "cassandra": "0.7.0"}
load = dict(rows=3, value_bytes=60, consistency="ONE")
measured = study.experiment("calls", setup=dict(store=stores),
                            vary=dict(op=["read", "write"], clients=[4], requests=[requests]))


def ready(lab, name):
    store = find(name)(lab.host("server"), version=versions[name]).up()
    store.create_table()
    fill(Crew.of(lab), store, **load)
    return store


for point in measured.remaining():
    with study.attempt(point) as attempt:
        store = attempt.setup(lambda lab: ready(lab, point.store))
        calls = keyvalue(Crew.of(attempt.lab), store, op=point.op, clients=point.clients,
                         requests=point.requests, warmup_requests=5, seed=point.seed,
                         seconds_at_most=30, **load)
        attempt.record(calls.rows, calls.metrics, facts=store.facts())
study.complete()
'''
SHOW = "measured.summary()[['store', 'op', 'requests']]"


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["h1", "h2", "h3"], jump="bastion") as made:
        yield made


@pytest.fixture
def book(place, tmp_path):
    made = Checkout(tmp_path)
    made.paper("stores", LAB)
    cells = [{"cell_type": "code", "id": f"c{i}", "outputs": [], "execution_count": None,
              "metadata": {"tags": ["parameters"]} if text is PARAMETERS else {}, "source": text}
             for i, text in enumerate((PARAMETERS, CODE, SHOW))]
    (tmp_path / "notebooks" / "stores.ipynb").write_text(json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    place.environment(tmp_path / "environments" / "hosts.yml", roles={
        "h1": ["db"], "h2": ["client"], "h3": ["client"]}, allow=["software"],
        hosts={"h1": {"allow": ["software", "limits"]}})
    yield made
    made.labbook("down")


def test_a_study_runs_whole_though_it_is_killed_and_connections_break(place, book):
    """Killed after the first record; the next run measures the rest, and loses its connections once."""
    command = ["run", "stores", "-p", "requests", "20"]
    with as_before(place):
        press = book.start("-m", "labbook.cli", *command, stderr=subprocess.DEVNULL)
        until(lambda: records(book), press)
        press.kill()
        press.wait()
        before = len(records(book))
        press = book.start("-m", "labbook.cli", *command, stderr=subprocess.PIPE)
        until(lambda: len(records(book)) > before, press)
        for name in place.addresses:
            place.hang_up(name)
        _, stderr = press.communicate(timeout=300)
        assert press.returncode == 0, stderr
        assert "4 of 4 points" in stderr and f"{4 - before} of them measured now" in stderr, stderr
        assert book.standing() == []
    check_records(book)
    check_nothing_private(place, book)
    code, output = book.labbook(*command)
    assert code == 0 and "up to date" in output


def records(book):
    return [path for path in book.folder.glob("data/records/*/stores/calls/[!.]*.parquet")
            if ".series." not in path.name]


def until(true, process, limit=200):
    end = time.monotonic() + limit
    while not true():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)


def check_records(book):
    metas = [Records(path.parent).meta(path.stem) for path in records(book)]
    assert sorted((m["setup"]["store"], m["vary"]["op"]) for m in metas) == [
        ("cassandra", "read"), ("cassandra", "write"), ("mysql", "read"), ("mysql", "write")]
    for meta in metas:
        assert (meta["summary"]["n"], meta["summary"]["errors"]) == (4 * 20, 0), meta["summary"]
        assert meta["provenance"]["lab"]["provider"] == "ssh"


def check_nothing_private(place, book):
    """In the records and pages, which people publish."""
    private = ["/home/op", "op@", "foreign_key", "foreign_known_hosts",
               *(a for nets in place.addresses.values() for a in nets.values())]
    files = [f for top in ("data", "build", "notebooks") for f in (book.folder / top).rglob("*")
             if f.is_file() and "logs" not in f.parts]
    assert any(f.suffix == ".parquet" for f in files)
    assert any(f.parts[-2:] == ("pages", "stores.ipynb") for f in files)
    found = [f"{f}: {word}" for f in files for word in private if word.encode() in f.read_bytes()]
    assert found == []

"""Many large rows into real Cassandra: all there and right, and streams of calls on them."""

import time
from types import SimpleNamespace

import pytest
from small_labs import describe, new_id

from labbook.errors import SystemFailure
from labbook.lab import Environment, Lab
from labbook.systems.cassandra.node import Cassandra
from labbook.systems.null.server import NullServer
from labbook.workloads.clients.on_host import engine
from labbook.workloads.clients.outage import over_time
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue import loading
from labbook.workloads.keyvalue.load import begin_pairs, keyvalue
from labbook.workloads.keyvalue.loading import load_pairs
from labbook.workloads.keyvalue.on_host.contents import visit

LARGE = dict(rows=1024, value_bytes=16384)  # 16 MB
PAIRS = dict(**LARGE, values="random")
STREAM = dict(clients=5, seed=3, seconds_at_most=60, **PAIRS)
# And the heap, MB: as fast as clients can write, 1.0.7 once had more in memory than 256.
VERSIONS = {"1.0.7": 512, "5.0.8": 512}


@pytest.fixture(scope="module")
def lab():
    description = describe({"server": {"memory": "2G"}, "client1": {}, "client2": {}})
    with Lab.up(description, Environment("local"), new_id()) as lab:
        Crew.of(lab)  # starts while the store does
        yield lab


@pytest.fixture(scope="module", params=VERSIONS)
def loaded(lab, request):
    node = Cassandra(lab.host("server"), version=request.param, heap_mb=VERSIONS[request.param])
    node.up()
    node.create_table()
    load = load_pairs(Crew.of(lab), node, **LARGE, seed=1)
    yield SimpleNamespace(node=node, load=load)
    node.destroy()


def test_the_load_reports_what_it_did(loaded):
    rows, metrics = loaded.load.rows, loaded.load.metrics
    assert rows.rows.sum() == 1024 and set(rows.host) == {"client1", "client2"}
    assert metrics["mb_per_s"] * metrics["seconds"] == pytest.approx(16.8, abs=0.1)
    assert metrics["sampled"] >= 200 and metrics["server_cpu_s"] > 0


def test_every_row_is_there_and_right(lab, loaded):
    spec = dict(protocol=loaded.node.protocol, addresses=[str(loaded.node.address)],
                port=loaded.node.port, consistency="ONE", call_seconds=10, **PAIRS)
    Crew.of(lab).run(visit, [spec], ["read"], [range(1024)])
    with pytest.raises(SystemFailure, match="no such row|NotFound"):
        Crew.of(lab).run(visit, [spec], ["read"], [[1024]])
    with pytest.raises(SystemFailure, match="WrongValue"):
        Crew.of(lab).run(visit, [spec | {"values": "dots"}], ["read"], [[0]])


@pytest.mark.parametrize("op", ["read", "write"])
def test_a_stream_is_begun_and_ended(lab, loaded, op):
    stream = begin_pairs(Crew.of(lab), loaded.node, op=op, **STREAM)
    time.sleep(3)   # beside other tests clients may hear of their start a second after it
    load = stream.end()
    rows = load.rows
    assert rows.ok.all(), rows.error.unique()
    assert rows.groupby("host", observed=True).client.nunique().to_dict() == {
        "client1": 3, "client2": 2}
    assert rows.started_s.min() > -0.1 and load.metrics["truncated"] == 0
    assert over_time(rows, 0.5).calls.sum() == len(rows)
    again = keyvalue(Crew.of(lab), loaded.node, op="read", clients=2, requests=100, warmup_requests=0,
                     seed=1, seconds_at_most=60, **PAIRS)
    assert again.rows.ok.all()  # what was written over is right


def test_a_rate_is_kept(lab, loaded):
    """Five clients, 50 calls a second."""
    stream = begin_pairs(Crew.of(lab), loaded.node, op="read", **STREAM, rate_per_s=50)
    time.sleep(4)
    load = stream.end()
    assert len(load.rows) <= 1 + 50 * (time.time() - load.started) and load.rows.ok.all()
    # At least a quarter of what fell due: one host's clients may begin late. Clients that wait for more than
    # their times make far fewer.
    assert len(load.rows) >= 50


def test_a_node_killed_while_it_loads_is_its_failure(lab, loaded, monkeypatch):
    if loaded.node.protocol != "thrift":
        pytest.skip("once is enough")
    monkeypatch.setattr(loading, "TRIES", 2)
    crew = Crew.of(lab)
    run = crew.run

    def run_and_kill(function, *arguments, **more):
        found = run(function, *arguments, **more)
        if function is engine.start:
            loaded.node.process.kill()
        return found

    monkeypatch.setattr(crew, "run", run_and_kill)
    with pytest.raises(SystemFailure, match="refused|closed|reset") as caught:
        load_pairs(crew, loaded.node, rows=100_000, value_bytes=16384)
    assert caught.value.log
    monkeypatch.undo()
    loaded.node.start()


@pytest.mark.parametrize("protocol", ["thrift", "cql"])
@pytest.mark.parametrize("op", ["read", "write"])
def test_the_clients_ceiling_of_large_values(lab, protocol, op):
    server = NullServer(lab.host("server"), protocol=protocol, value_bytes=16384,
                        values="random").up()
    try:
        load = keyvalue(Crew.of(lab), server, op=op, clients=4, requests=1000, warmup_requests=5,
                        seed=1, seconds_at_most=60, **PAIRS)
        bulk = load_pairs(Crew.of(lab), server, **LARGE)
    finally:
        server.destroy()
    assert load.rows.ok.all() and bulk.metrics["again"] == 0
    assert load.metrics["rate_per_s"] > 0 and load.metrics["server_cpu_us_per_call"] > 0

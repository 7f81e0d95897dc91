"""Clients in a lab against real stores: rows, values, the server's own count, a server killed."""

import threading
import time

import pytest
from listeners import check_listeners
from small_labs import describe, new_id

from labbook.lab import Environment, Lab
from labbook.systems.cassandra.node import Cassandra
from labbook.systems.null.server import NullServer
from labbook.systems.sql import MySQL
from labbook.targets import password
from labbook.workloads.clients.on_host import engine
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.contents import fill
from labbook.workloads.keyvalue.load import keyvalue

ROWS = dict(rows=3, value_bytes=60)
LOAD = dict(clients=7, requests=40, warmup_requests=5, seed=1, seconds_at_most=20, **ROWS)
SYSTEMS = {"thrift": (Cassandra, {}), "cql": (Cassandra, {"version": "5.0.8"}),
           "mysql": (MySQL, {})}


@pytest.fixture(scope="module")
def lab():
    description = describe({"server": {"memory": "3G"}, "client1": {}, "client2": {}})
    with Lab.up(description, Environment("local"), new_id()) as lab:
        Crew.of(lab)  # starts while the first store does
        yield lab


@pytest.fixture(scope="module", params=SYSTEMS)
def store(lab, request):
    system, settings = SYSTEMS[request.param]
    system = system(lab.host("server"), **settings).up()
    system.create_table()
    fill(Crew.of(lab), system, **ROWS)
    yield system
    system.destroy()


@pytest.mark.parametrize("op", ["read", "write", "update", "insert"])
def test_all_calls_are_rows_and_right(lab, store, op):
    if op not in protocols.protocol(store.protocol).OPS:
        pytest.skip("no such call")
    load = keyvalue(Crew.of(lab), store, op=op, **LOAD)
    assert load.rows.ok.all(), load.rows.error.unique()
    assert load.rows.groupby("client").size().tolist() == [40] * 7
    assert load.rows.groupby("host", observed=True).client.nunique().to_dict() == {
        "client1": 4, "client2": 3}
    assert load.metrics["start_spread_s"] > 0
    assert load.metrics["server_cpu_us_per_call"] >= 0  # known to 10 ms, more than some take
    assert 0 < load.metrics["clients_cpu_share"] <= 1


def test_the_server_counts_the_same_calls(lab, store):
    if store.protocol != "mysql":
        pytest.skip("Cassandra counts for JMX only")

    def count(kind):
        return int(dict(store.query(f"SHOW GLOBAL STATUS LIKE '{kind}'"))[kind])

    for op, kind in (("read", "Com_select"), ("write", "Com_replace"),
                     ("insert", "Com_insert"), ("update", "Handler_update")):  # which counts rows that were changed
        before = count(kind)
        keyvalue(Crew.of(lab), store, op=op, **LOAD)
        assert count(kind) - before == 7 * (40 + 5)


def test_inserted_rows_are_taken_out_again(lab, store):
    if store.protocol != "mysql":
        pytest.skip("no such call")

    def rows():
        return store.query("SELECT NAME, VALUE FROM pairs ORDER BY NAME", "labbook")

    before = rows()
    for _ in range(2):      # the same clients and seed: no key comes again
        assert keyvalue(Crew.of(lab), store, op="insert", **LOAD).rows.ok.all()
        assert rows() == before
    tables = store.query("SHOW TABLES", "labbook"), store.query("SHOW CREATE TABLE pairs", "labbook")
    assert tables[0] == (("pairs",),) and "UNIQUE KEY `NAME` (`NAME`)" in tables[1][0][1]


def test_a_filled_row_can_be_read_and_holds_its_value(lab, store):
    fill(Crew.of(lab), store, rows=1000, value_bytes=60)
    load = keyvalue(Crew.of(lab), store, op="read", **LOAD | {"rows": 1000})
    assert load.rows.ok.all(), load.rows.error.unique()


def test_a_missing_row_is_an_error_row(lab, store):
    load = keyvalue(Crew.of(lab), store, op="read", **LOAD | {"rows": 100_000})
    failed = load.rows[~load.rows.ok]
    assert len(failed) > 200
    assert failed.error.str.contains("NotFoundException|WrongValue: no such row").all()


def test_a_server_killed_under_load_is_rows_not_a_crash(lab, store):
    crew = Crew.of(lab)
    run = crew.run

    def run_and_kill(function, *arguments, timeout):
        if function is engine.run:
            threading.Timer(arguments[0][0] + 2 - time.time(), store.process.kill).start()
        return run(function, *arguments, timeout=timeout)

    crew.run = run_and_kill
    try:
        load = keyvalue(crew, _without_process(store), op="read",
                        **LOAD | {"requests": 300_000, "seconds_at_most": 12})
    finally:
        crew.run = run
    # On a busy machine a kill takes seconds; a client that is done before it has had all of its calls come out.
    of_client = load.rows.groupby("client").ok
    met = ~of_client.all()
    assert load.rows.ok.any() and met.any() and not of_client.last()[met].any()


def _without_process(system):
    """A target whose CPU is not asked for: the process is to die."""
    from types import SimpleNamespace

    return SimpleNamespace(address=system.address, port=system.port, protocol=system.protocol,
                           password=password(system))


@pytest.mark.parametrize("protocol", ["thrift", "cql", "mysql"])
def test_the_null_server_answers_cheaper_than_a_client_asks(lab, protocol):
    server = NullServer(lab.host("server"), protocol=protocol, value_bytes=60).up()
    check_listeners(lab.hosts.values(), "null", crew=True)
    try:
        load = keyvalue(Crew.of(lab), server, op="read",
                       **LOAD | {"clients": 10, "requests": 2000})
    finally:
        server.destroy()
    assert load.rows.ok.all()
    assert load.metrics["server_cpu_us_per_call"] < load.metrics["clients_cpu_us_per_call"]

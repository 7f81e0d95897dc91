"""Real Cassandra nodes on a lab host: up, used, looked at, stopped, and dead at start."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from listeners import check_listeners
from small_labs import describe, new_id

from labbook.errors import SystemFailure
from labbook.lab import Environment, Lab
from labbook.systems.cassandra import config as cassandra_config
from labbook.systems.cassandra import stages
from labbook.systems.cassandra.node import Cassandra
from labbook.systems.cassandra.on_host.idl import idl


@pytest.fixture(scope="module")
def lab():
    description = describe({"server": {"memory": "1G"}})
    with Lab.up(description, Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture
def host(lab):
    yield lab.host("server")
    Cassandra(lab.host("server")).destroy()


def store(node, key: bytes, value: bytes, level="ONE"):
    types = idl()
    with node.client() as client:
        client.set_keyspace("labbook")
        client.insert(key, types.ColumnParent("pairs"), types.Column(b"value", value, 1),
                      getattr(types.ConsistencyLevel, level))


def stored(node, key: bytes, level="ONE") -> bytes:
    types = idl()
    with node.client() as client:
        client.set_keyspace("labbook")
        found = client.get(key, types.ColumnPath("pairs", b"value"),
                           getattr(types.ConsistencyLevel, level))
    return found.column.value


@pytest.mark.parametrize("version, api", [("0.7.0", "19.4.0"), ("1.0.7", "19.20.0")])
def test_a_node_from_up_to_destroy(host, version, api):
    node = Cassandra(host, version=version, durability="commit", heap_mb=256).up()
    check_listeners([host], "cassandra")
    node.create_table()
    store(node, b"name", b"a value")
    assert stored(node, b"name") == b"a value"
    with pytest.raises(idl().NotFoundException):
        stored(node, b"another name")
    types = idl()
    with node.client() as client:
        client.set_keyspace("labbook")
        found = client.multiget_slice([b"name", b"none"], types.ColumnParent("pairs"),
                                      types.SlicePredicate([b"value"]), types.ConsistencyLevel.ONE)
    assert {k: [c.column.value for c in v] for k, v in found.items()} == {
        b"name": [b"a value"], b"none": []}

    facts = node.facts()
    assert facts["version"] == version and facts["thrift_api"] == api and facts["java"]
    assert facts["heap_mb"] == 256 and 50 < facts["resident_mb"] < 600 and facts["threads"] > 20

    node.stop()
    assert not node.process.alive()
    node.start()
    assert stored(node, b"name") == b"a value"
    node.destroy()
    assert host.run(f"test -e {node.home}", check=False).exit_code == 1


def test_durable_commits_outlive_a_kill(host):
    node = Cassandra(host, durability="commit", heap_mb=256).up()
    node.create_table()
    store(node, b"name", b"kept")
    node.process.kill()
    node.stop()  # waits for it
    node.start()
    assert stored(node, b"name") == b"kept"


def test_70_rows_by_clients_at_once(host):
    node = Cassandra(host, heap_mb=256).up()
    node.create_table()
    with ThreadPoolExecutor(9) as pool:  # through one SSH connection, which has its own most
        list(pool.map(lambda i: store(node, b"%d" % i, b"value %d" % i), range(70)))
    assert [stored(node, b"%d" % i) for i in range(70)] == [b"value %d" % i for i in range(70)]


def test_a_sampled_node_writes_how_many_tasks_work_and_wait(host):
    node = Cassandra(host, heap_mb=256, stage_threads=2, stage_samples_ms=1).up()
    check_listeners([host], "cassandra")
    node.create_table()
    begun, first = stages.begin(node), time.time()

    def seen():
        with ThreadPoolExecutor(9) as pool:
            list(pool.map(lambda i: store(node, b"%d" % i, b"value"), range(200)))
        frame, samples = stages.since(node, begun, first, time.time())
        return frame[frame["stage"] == "MutationStage"]["active"] if samples > 100 else []

    host.wait_for(lambda: len(seen()) > 0, "a sample of the stage of writes", timeout=60)
    assert 1 <= seen().max() <= 2


def test_a_node_that_falls_silent_is_an_error(host):
    node = Cassandra(host, heap_mb=256).up()
    node.process.signal("STOP")
    with pytest.raises(TimeoutError, match="no answer from"), node.client(timeout=3) as client:
        client.describe_version()
    node.process.signal("CONT")


def test_a_broken_setting_is_in_the_error(host, monkeypatch):
    monkeypatch.setattr(cassandra_config, "commit_log", lambda *_: {"commitlog_sync": "sometimes"})
    with pytest.raises(SystemFailure) as failure:
        Cassandra(host, heap_mb=256).up()
    assert "sometimes" in failure.value.log and "ended with exit code" in str(failure.value)


def test_a_port_in_use_is_in_the_error(host):
    port = Cassandra(host).port
    squatter = host.start("squatter", f"{host.python} -m http.server {port} --bind {host.address}")
    try:
        host.wait_for(lambda: _listens(host, port), "the squatter", 20, squatter)
        with pytest.raises(SystemFailure) as failure:
            Cassandra(host, heap_mb=256).up()
        assert f"{host.address}:{port}" in failure.value.log
        assert "Could not create ServerSocket" in failure.value.log
    finally:
        squatter.stop()


def _listens(host, port) -> bool:
    return bool(host.run(f"ss -Hltn 'sport = :{port}'").stdout.strip())

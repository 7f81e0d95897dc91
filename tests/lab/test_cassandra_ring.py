"""Rings of real Cassandra nodes: all know all, rows lie where asked, copies at every level."""

import pytest
from cassandra import InvalidRequest
from listeners import check_listeners
from small_labs import describe, new_id

from labbook.errors import SystemFailure
from labbook.lab import Environment, Lab
from labbook.systems.cassandra.config import VERSIONS
from labbook.systems.cassandra.on_host.idl import idl
from labbook.systems.cassandra.ring import Ring
from labbook.targets import key_of

NODES = [f"node{i}" for i in range(3)]
ROWS = 9


@pytest.fixture(scope="module")
def lab():
    description = describe({name: {"memory": "1G"} for name in NODES})
    with Lab.up(description, Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture
def hosts(lab):
    hosts = [lab.host(name) for name in NODES]
    yield hosts
    Ring(hosts).destroy()


def ring(hosts, **settings):
    made = Ring(hosts, rows=ROWS, heap_mb=128, durability="commit", **settings).up()
    made.create_table()
    return made


def write(node, row: int, level="ALL"):
    types = idl()
    with node.client() as client:
        client.set_keyspace("labbook")
        client.insert(key_of(row), types.ColumnParent("pairs"),
                      types.Column(b"value", b"value %d" % row, 1),
                      getattr(types.ConsistencyLevel, level))


def read(node, row: int, level="ONE") -> bytes:
    types = idl()
    with node.client() as client:
        client.set_keyspace("labbook")
        found = client.get(key_of(row), types.ColumnPath("pairs", b"value"),
                           getattr(types.ConsistencyLevel, level))
    return found.column.value


def refuses(node, row: int) -> bool:
    """Whether a write at ALL is refused at once, since the node knows that a copy is down.

    Otherwise it waits for that copy until its time is over.
    """
    try:
        write(node, row, "ALL")
    except idl().UnavailableException:
        return True
    except idl().TimedOutException:
        return False
    raise AssertionError("a write was acknowledged at ALL with a node dead")


def logged(node) -> set[int]:
    """Rows that were written on this node itself: their values stand in its commit log."""
    found = node.host.run(f"grep -aoh 'value [0-9]' {node.home}/commitlog/*.log", check=False).stdout
    return {int(value.split()[1]) for value in found.splitlines()}


@pytest.mark.parametrize("version, placement", [("0.7.0", "ordered"), ("1.0.7", "hash")])
def test_rows_lie_on_the_nodes_that_the_cluster_names(hosts, version, placement):
    three = ring(hosts, version=version, placement=placement)
    with three.front.client() as client:
        shipped = client.describe_keyspace("labbook").cf_defs[0].read_repair_chance
    assert shipped == VERSIONS[version]["read_repair"]
    assert all(set(node.admin.members()) == set(three.addresses) for node in three.nodes)
    check_listeners(hosts, "cassandra_ring")
    for row in range(ROWS):
        write(three.nodes[row % 3], row)
    owners = [three.holders(row)[0] for row in range(ROWS)]
    if placement == "ordered":
        assert owners == ["node0"] * 3 + ["node1"] * 3 + ["node2"] * 3
    for node in three.nodes:
        assert logged(node) == {i for i in range(ROWS) if owners[i] == node.host.name}
        assert [read(node, row) for row in range(ROWS)] == [b"value %d" % i for i in range(ROWS)]
    facts = three.facts()
    assert facts["nodes"] == 3 and facts["version"] == version
    assert [process.alive() for process in three.processes] == [True] * 3
    three.destroy()
    assert not any(host.process("cassandra").alive() for host in hosts)


def test_three_copies_at_every_level_and_with_a_node_dead(hosts):
    three = ring(hosts, replication=3, read_repair=0)
    first, second, third = three.nodes
    with first.client() as client:
        assert client.describe_keyspace("labbook").cf_defs[0].read_repair_chance == 0
    for row, level in enumerate(("ONE", "QUORUM", "ALL", "ANY")):
        write(first, row, level)
    for level in ("ONE", "QUORUM", "ALL"):
        assert read(second, 2, level) == b"value 2"
    assert sorted(three.holders(2)) == NODES and 2 in logged(first) & logged(second) & logged(third)

    third.process.kill()
    first.host.wait_for(lambda: len(first.admin.members()) == 2, "a dead node to be missed", 60)
    # It stops answering at once; the others' failure detectors convict it 10 to 20 s later.
    for node in (first, second):
        node.host.wait_for(lambda node=node: refuses(node, 6), "a dead node to be convicted", 120)
    write(first, 5, "QUORUM")
    assert read(second, 5, "QUORUM") == b"value 5"


def test_a_node_that_does_not_start_is_the_rings_failure(hosts):
    three = Ring(hosts, heap_mb=128)
    three.destroy()
    for node in three.nodes:
        node.provide()
        node.deploy()
    three.nodes[1].run("rm", three.nodes[1].home / "cassandra.yaml")
    with pytest.raises(SystemFailure, match="node1: .*ended with exit code"):
        three.start()
    assert not any(process and process.alive() for process in three.processes)


def test_two_of_todays_nodes(hosts):
    two = Ring(hosts[:2], version="5.0.8", placement="ordered", rows=ROWS, heap_mb=256,
               durability="commit").up()
    two.create_table()
    first, second = two.nodes
    assert [two.holders(row)[0] for row in range(ROWS)] == ["node0"] * 5 + ["node1"] * 4
    with first.client() as client:
        for row in range(ROWS):
            client.query(f"INSERT INTO labbook.pairs (name, value) VALUES "
                         f"(0x{key_of(row).hex()}, 0x{(b'value %d' % row).hex()})")
    assert [logged(node) for node in two.nodes] == [set(range(5)), set(range(5, ROWS))]
    facts = two.facts()
    assert facts["version"] == "5.0.8" and facts["java"] and facts["nodes"] == 2
    assert all(300 < node.facts()["resident_mb"] < 900 for node in two.nodes)

    second.process.kill()
    second.start()
    two.await_formed()
    with second.client() as client:
        assert sorted(client.query("SELECT name, value FROM labbook.pairs", level="ALL")) == [
            (key_of(row), b"value %d" % row) for row in range(ROWS)]
        with pytest.raises(InvalidRequest, match="no_such_table"):
            client.query("SELECT * FROM labbook.no_such_table")

"""A real elastic ring: nodes join with their bytes, die half-way, leave; nothing is ever lost."""

import random
from bisect import bisect_left

import pytest
from listeners import check_listeners
from small_labs import describe, new_id

from labbook.lab import Environment, Lab
from labbook.systems.cassandra import admin_cql as cassandra_cql
from labbook.systems.cassandra.elastic_ring import ElasticRing
from labbook.systems.cassandra.on_host.idl import idl
from labbook.targets import key_of

NODES = ["node1", "node2", "node3"]
MEMORY, HEAP_MB = "768M", 256      # as little as both versions take
ROWS, VALUE_BYTES = 600, 16384   # ten megabytes
SLOW_MBIT = 8                    # a megabyte a second
SECONDS = 300                    # at most, on a busy machine
PAPERS = "1.0.7"                 # the version of the paper, which starts sooner than today's
USED = []                        # rings that a test has had


@pytest.fixture(scope="module")
def lab():
    description = describe({name: {"memory": MEMORY} for name in NODES})
    with Lab.up(description, Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture(scope="module")
def hosts(lab):
    return [lab.host(name) for name in NODES]


@pytest.fixture(scope="module", params=[PAPERS, "5.0.8"])
def shared_ring(hosts, request):
    """A ring whose donor has a snapshot of all rows, and gives them away slowly."""
    ring = ElasticRing(hosts, version=request.param, heap_mb=HEAP_MB,
                       stream_mbit=SLOW_MBIT).up()
    ring.check_room(ROWS, VALUE_BYTES)
    ring.compaction(False)
    with ring.donor.client() as client:
        for row in range(ROWS):
            WRITE[ring.protocol](client, row)
    assert 1 <= ring.snapshot() / (ROWS * VALUE_BYTES) < 1.05
    check_listeners(hosts, "elastic_ring")  # nodetool has been used
    yield ring
    ring.destroy()


@pytest.fixture
def ring(shared_ring):
    """The same, restored if a test has used it."""
    if shared_ring in USED:
        shared_ring.restore()
    USED.append(shared_ring)
    return shared_ring


def value(row: int) -> bytes:
    return random.Random(row).randbytes(VALUE_BYTES)


def write_thrift(client, row):
    types = idl()
    if row == 0:
        client.set_keyspace("labbook")
    client.insert(key_of(row), types.ColumnParent("pairs"), types.Column(b"value", value(row), 1),
                  types.ConsistencyLevel.ONE)


def write_cql(client, row):
    client.query(f"INSERT INTO labbook.pairs (name, value) VALUES "
                 f"(0x{key_of(row).hex()}, 0x{value(row).hex()})")


def read_thrift(client, row) -> bytes:
    types = idl()
    if row == 0:
        client.set_keyspace("labbook")
    found = client.get(key_of(row), types.ColumnPath("pairs", b"value"), types.ConsistencyLevel.ONE)
    return found.column.value


def read_cql(client, row) -> bytes:
    (found,), = client.query(f"SELECT value FROM labbook.pairs WHERE name = 0x{key_of(row).hex()}")
    return found


WRITE = {"thrift": write_thrift, "cql": write_cql}
READ = {"thrift": read_thrift, "cql": read_cql}


def all_right(ring, *names) -> bool:
    """Whether every row has its value, asked of each of these nodes."""
    for name in names:
        with ring.node(name).client() as client:
            if any(READ[ring.protocol](client, row) != value(row) for row in range(ROWS)):
                return False
    return True


def rows_of(ring) -> dict[str, int]:
    """By name, how many rows fall into the range that a node owns, according to the donor."""
    ends = sorted((token, name) for name, token in ring.owners().items())
    owner = [ends[bisect_left(ends, (ring.donor.admin.token_of(key_of(row)), "")) % len(ends)][1]
             for row in range(ROWS)]
    return {name: owner.count(name) for _, name in ends}


def test_files_are_merged_until_nothing_is_left_to_merge(hosts):
    ring = ElasticRing(hosts[:1], version="1.0.7", heap_mb=HEAP_MB).up()
    ring.compaction(False)
    with ring.donor.client() as client:
        for _ in range(4):  # the same rows
            for row in range(20):
                write_thrift(client, row)
            ring.flush()
    four = ring.data_bytes()
    assert four > 4 * 20 * VALUE_BYTES
    assert len(ring.merge(SECONDS)) == 1
    assert 20 * VALUE_BYTES < ring.data_bytes() < four / 3
    with ring.donor.client() as client:
        table, = client.describe_keyspace("labbook").cf_defs
        assert table.min_compaction_threshold == table.max_compaction_threshold == 0    # off, as before
        assert [read_thrift(client, row) for row in range(20)] == [value(row) for row in range(20)]
    ring.destroy()


def test_files_of_a_range_come_whole(hosts, monkeypatch):
    monkeypatch.setattr(cassandra_cql, "BY_RANGE", cassandra_cql.BY_RANGE.replace("'4'", "'1'"))
    ring = ElasticRing(hosts[:2], version="5.0.8", heap_mb=HEAP_MB, files="by_range",
                       whole_files=True).up()
    ring.compaction(False)
    try:
        with ring.donor.client() as client:
            for row in range(ROWS):
                write_cql(client, row)
                if row in (ROWS // 2, ROWS - 1):  # a single file is not split
                    ring.flush()
        assert len(ring.merge(SECONDS)) >= 8
        row, = ring.join([0.4]).wait(SECONDS)
        assert 1 <= row["whole_files_sent"] < 8
        assert all_right(ring, "node1", "node2")
    finally:
        ring.destroy()


def test_a_node_joins_with_the_bytes_of_its_range_and_leaves(ring):
    one, = ring.join([0.4]).wait(SECONDS)
    share = rows_of(ring)["node2"] * VALUE_BYTES
    assert 0.3 < share / (ROWS * VALUE_BYTES) < 0.5
    assert 1 <= one["received_bytes"] / share < 1.05
    assert one["received_bytes"] == ring.data_bytes("node2") and one["whole_files_sent"] == 0
    assert 0 < one["streaming_s"] + one["fixed_wait_s"] < one["join_s"]
    assert one["donor_bytes_before"] == one["donor_bytes_after"] == ring.data_bytes()
    status = ring.status()
    assert {name: (n["state"], n["up"]) for name, n in status.items()} == {
        "node1": ("NORMAL", True), "node2": ("NORMAL", True)}
    assert status["node2"]["token"] == one["token"] == ring.owners()["node2"]
    assert all_right(ring, "node1", "node2")
    facts = ring.facts()
    assert facts["nodes"] == ["node1", "node2"] and facts["stream_mbit"] == SLOW_MBIT

    left = ring.leave("node2", SECONDS)
    assert left["moved_bytes"] == pytest.approx(left["held_bytes"], rel=0.05)
    assert 0 < left["fixed_wait_s"] + left["streaming_s"] < left["leave_s"]
    assert set(ring.status()) == {"node1"}
    assert ring.joined == ["node1"] and not ring.node("node2").process.alive()
    assert all_right(ring, "node1")


@pytest.mark.parametrize("shared_ring", [PAPERS], indirect=True, scope="module")
def test_nodes_join_at_once(ring):
    rows = ring.join([0.3, 0.3]).wait(SECONDS)
    owned = rows_of(ring)
    assert [row["node"] for row in rows] == NODES[1:]
    first, second = (row["received_bytes"] / VALUE_BYTES for row in rows)
    assert 1 <= first / owned["node2"] < 1.05
    # Who comes second on the ring gets the first one's range as well, unless that is there by then.
    assert owned["node3"] <= second < 1.05 * (owned["node2"] + owned["node3"])
    assert all_right(ring, *NODES) and ring.addresses == [ring.address]


@pytest.mark.parametrize("shared_ring", [PAPERS], indirect=True, scope="module")
def test_a_joiner_dies_half_way_and_the_ring_is_restored(ring, hosts):
    joins = ring.join([0.9])
    joins.await_share("node2", 0.1, SECONDS)
    joins.kill("node2")
    row, = joins.wait(SECONDS)
    assert row["normal_s"] is None and row["killed_s"] > row["asked_s"]
    assert 0 < row["received_bytes"] < 0.9 * row["expected_bytes"]
    assert ring.owners() == {"node1": 0} and ring.running == [ring.donor]
    assert all_right(ring, "node1")

    ring.restore()
    assert set(ring.status()) == {"node1"}
    assert hosts[1].run(f"test -e {ring.node('node2').home}", check=False).exit_code == 1
    again, = ring.join([0.2]).wait(SECONDS)
    assert again["received_bytes"] >= rows_of(ring)["node2"] * VALUE_BYTES
    assert all_right(ring, "node1", "node2")

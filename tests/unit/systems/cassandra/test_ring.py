"""Tokens of a ring and which rows they place where; its servers are in tests/lab."""

from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook.errors import InputError
from labbook.systems.cassandra.admin_cql import CQLAdmin
from labbook.systems.cassandra.admin_thrift import ThriftAdmin
from labbook.systems.cassandra.config import VERSIONS
from labbook.systems.cassandra.ring import Ring, hash_tokens, ordered_tokens
from labbook.targets import key_of


def hosts(count):
    return [SimpleNamespace(name=f"node{i}", address=f"198.18.0.{i}", limits={"memory": 2 << 30},
                            root=PurePosixPath("/srv")) for i in range(count)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_hash_tokens_are_even_parts(version, nodes):
    tokens, (least, most) = hash_tokens(nodes, version), VERSIONS[version]["tokens"]
    assert least < tokens[0] and tokens[-1] < most
    steps = [b - a for a, b in zip(tokens, [*tokens[1:], tokens[0] + most - least])]
    assert max(steps) - min(steps) <= 2


@pytest.mark.parametrize("nodes, rows", [(1, 1), (3, 10), (5, 1000), (5, 5), (4, 999_999)])
def test_ordered_tokens_put_row_i_on_node_i_n_over_rows(nodes, rows):
    tokens = ordered_tokens(nodes, rows)
    for row in sorted({0, 1, rows // 2, rows - 1} & set(range(rows))):
        on = next(i for i, token in enumerate(tokens) if key_of(row).decode() <= token)
        assert on == row * nodes // rows
    assert tokens[-1] == key_of(rows - 1).decode()


def test_a_rings_nodes():
    ring = Ring(hosts(3), version="1.0.7", placement="ordered", rows=30, replication=2,
                durability="commit")
    assert [node.settings.token for node in ring.nodes] == ["row000009", "row000019", "row000029"]
    assert {tuple(node.settings.seeds) for node in ring.nodes} == {("198.18.0.0",)}
    assert {node.settings.durability for node in ring.nodes} == {"commit"}
    assert (ring.address, ring.port, ring.protocol) == ("198.18.0.0", 9160, "thrift")
    assert ring.addresses == ["198.18.0.0", "198.18.0.1", "198.18.0.2"]
    assert {node.settings.heap_mb for node in ring.nodes} == {256}
    assert Ring(hosts(1), heap_mb=128).nodes[0].settings.heap_mb == 128
    assert Ring(hosts(2), version="5.0.8").protocol == "cql"


@pytest.mark.parametrize("count, settings, message", [
    (0, {}, "settings of cassandra_ring: hosts"),
    (3, {"replication": 4}, "replication: 4 copies do not fit 3 nodes .*1 to 3"),
    (3, {"replication": 0}, "replication"),
    (5, {"placement": "ordered", "rows": 4}, "rows: 4 rows .*5 to 1000000"),
    (2, {"placement": "ordered", "rows": 10**6 + 1}, "rows"),
    (2, {"token": 5}, "settings of cassandra_ring: token: is set by the ring"),
    (2, {"seeds": ["198.18.0.9"]}, "seeds: is set by the ring"),
    (2, {"read_repair": 2}, "read_repair"),
    (2, {"version": "1.0.7", "disk_access": "mmap"}, "disk_access: .*cannot map files on Java 17"),
    (2, {"version": "0.7.0", "whole_files": True}, "whole_files: Cassandra 0.7.0 has no such"),
    (2, {"version": "5.0.8", "durability": "commit", "sync_ms": 5}, "sync_ms"),
    (2, {"version": "5.0.8", "read_repair": 0}, "read_repair: Cassandra 5.0.8 has no chance of read repair"),
    (2, {"version": "0.6.3"}, "version: '0.6.3' is not allowed"),
    (2, {"heap": 5}, "did you mean 'heap_mb'"),
    (2, {"placement": "random"}, "placement: 'random' is not allowed"),
])
def test_wrong_rings(count, settings, message):
    with pytest.raises(InputError, match=message):
        Ring(hosts(count), **settings)


RANGES = [(10, ["198.18.0.0", "198.18.0.1"]), (20, ["198.18.0.1", "198.18.0.0"])]


@pytest.mark.parametrize("token, holders", [
    (5, ["node0", "node1"]), (10, ["node0", "node1"]), (11, ["node1", "node0"]),
    (20, ["node1", "node0"]), (21, ["node0", "node1"])])
def test_a_row_lies_in_the_range_that_ends_at_or_after_its_token(token, holders, monkeypatch):
    ring = Ring(hosts(2), replication=2, rows=1)
    monkeypatch.setattr(ThriftAdmin, "ranges", lambda self, keyspace: RANGES)
    monkeypatch.setattr(ThriftAdmin, "token_of", lambda self, key: token)
    assert ring.holders(0) == holders


def test_hashes_of_keys():
    """MD5 as in the papers' versions; Murmur3 as CQL's `token` function returns it for the same key."""
    old, new = (cls(SimpleNamespace(settings=SimpleNamespace(placement="hash")))
                for cls in (ThriftAdmin, CQLAdmin))
    # As md5sum tells them; one that begins with 8 to f is a negative number.
    assert old.token_of(b"row000000") == 0x1518cd50197cbad524c3da8afcba35f0
    assert old.token_of(b"row000004") == 2**128 - 0xfdef634159e8510b6dc5dd2aa8b3b465
    assert new.token_of(b"row000001") == 4182173085353207170
    ordered = ThriftAdmin(SimpleNamespace(settings=SimpleNamespace(placement="ordered")))
    assert ordered.token_of(b"row000001") == b"row000001"

"""Registers on a real ring through the death of a node: at QUORUM no anomaly is found, and one that is
put into the history is."""

import time

import pytest
from cassandra import Unavailable
from small_labs import describe, new_id

from labbook.lab import Environment, Lab
from labbook.systems.cassandra.ring import Ring
from labbook.systems.cluster import poll
from labbook.workloads.crew.crew import Crew
from labbook.workloads.histories.calls import OK, READ, WRITE, metrics
from labbook.workloads.keyvalue.registers import begin_registers, last_reads

NODES = [f"node{i}" for i in range(3)]
KEYS = 2
CLIENTS = dict(keys=KEYS, readers=3, calls_per_s=40, call_seconds=2, seconds_at_most=180, seed=1)


@pytest.fixture(scope="module")
def lab():
    description = describe({name: {"memory": "1G"} for name in NODES} | {"client1": {}, "client2": {}})
    with Lab.up(description, Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture(params=[dict(version="0.7.0", heap_mb=256), dict(version="1.0.7", heap_mb=256),
                        dict(version="5.0.8", heap_mb=256)], ids=lambda settings: settings["version"])
def ring(lab, request):
    ring = Ring([lab.host(name) for name in NODES], replication=3, durability="commit",
                **request.param).up()
    ring.create_table()
    yield ring
    ring.destroy()


def of(history, op, **which):
    return [call for call in history if call.op == op
            and all(getattr(call, name) == value for name, value in which.items())]


def await_noticed(ring):
    """Return when the first node no longer sees the last one, which was killed. Until then, a read may
    wait for it in vain."""
    def sees():
        try:
            return ring.nodes[-1].address in ring.front.admin.members()
        except Unavailable:
            return False
    poll(ring.front.host, sees, lambda seen: not seen, "Cassandra to notice a death", 120)


def test_at_quorum_nothing_is_lost_nor_stale_through_the_death_of_a_node(lab, ring):
    stream = begin_registers(Crew.of(lab), ring, write_level="QUORUM", read_level="QUORUM", **CLIENTS)
    time.sleep(2)
    killed = stream.since_start()
    ring.nodes[-1].process.kill()
    await_noticed(ring)
    time.sleep(2 * CLIENTS["call_seconds"])   # calls that waited for the dead node end, and others follow
    back = stream.since_start()
    ring.nodes[-1].start()
    ring.await_formed()
    load = stream.end()
    last = last_reads(Crew.of(lab), ring, KEYS, stream.since_start)
    history = [*load.history, *last]
    for op in (WRITE, READ):
        assert len(of(history, op, outcome=OK)) > 20
        assert [call for call in of(history, op, outcome=OK) if killed < call.invoked_s < back], op
    found = metrics(history, load.slack_s)
    assert {name: found[name] for name in ("lost_writes", "stale_reads", "phantom_values")} == {
        "lost_writes": 0, "stale_reads": 0, "phantom_values": 0}
    assert found["checked_keys"] == KEYS and found["checked_calls"] == len(load.rows) + KEYS

    first = {key: of(load.history, WRITE, key=key, outcome=OK)[0] for key in {call.key for call in last}}
    lost = [call._replace(value=first[call.key].value) if call.last else call for call in history]
    assert metrics(lost, load.slack_s)["lost_writes"] >= KEYS
    read = max(of(load.history, READ, outcome=OK), key=lambda call: call.invoked_s)
    stale = [call._replace(value=first[call.key].value) if call is read else call for call in history]
    assert metrics(stale, load.slack_s)["stale_reads"] == 1
    nowhere = [call._replace(value="never written") if call is read else call for call in history]
    assert metrics(nowhere, load.slack_s)["phantom_values"] == 1

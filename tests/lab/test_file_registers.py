"""Registers and sets of files on a real Ceph through the death of a metadata server: no anomaly is found,
and one that is put into the history is."""

import time
from itertools import product

from small_ceph import ceph, lab, mounts  # noqa: F401 (fixtures)

from labbook.workloads.crew.crew import Crew
from labbook.workloads.files.registers import Registers
from labbook.workloads.histories.calls import LIST, OK, READ, THERE, WRITE, metrics

KEYS = 2
CLIENTS = dict(clients=3, calls_per_s=20.0, seed=1, seconds_at_most=200.0)
ANOMALIES = ("lost_writes", "stale_reads", "phantom_values", "backward_reads", "own_backward_reads")


def anomalies(history, slack_s) -> dict:
    found = metrics(history, slack_s)
    return {name: found[name] for name in ANOMALIES if found[name]}


def of(history, op, **which):
    return [call for call in history if call.op == op
            and all(getattr(call, name) == value for name, value in which.items())]


def replaced(history, old, value):
    return [call._replace(value=value) if call is old else call for call in history]


def test_a_dead_metadata_server_loses_nothing_and_shows_nothing_old(lab, ceph, mounts):
    crew, paths = Crew.of(lab), [str(mount.path) for mount in mounts]
    homes = [ceph.pin_folder(mounts[0], f"of{rank}", rank) for rank in (0, 1)]
    files = Registers(crew, paths, homes=homes, keys=KEYS)
    stream = files.begin(**CLIENTS)
    time.sleep(5)
    killed = stream.since_start()
    ceph.kill(1)
    ceph.await_active(2)
    for mount, home in product(mounts, homes):
        assert mount.call(f"ls {home}", 120).exit_code == 0     # which waits until the new server answers this client
    back = stream.since_start()
    time.sleep(10)
    load = stream.end()
    fresh = ceph.mount(mounts[0].host, name="fresh").up()
    try:
        last = files.last_reads([[paths[0], str(fresh.path)], paths[1]], stream.since_start)
    finally:
        fresh.destroy()
    history = [*load.history, *last]
    for op in (WRITE, READ, LIST):
        calls = of(load.history, op, outcome=OK)
        assert [call for call in calls if call.returned_s < killed], op
        assert [call for call in calls if call.invoked_s > back], op
    assert load.metrics["blocked"] == 0 and load.metrics["longest_s"] > 1     # which waited for the new server
    assert not anomalies(history, load.slack_s)
    assert len(last) == 3 * 2 * (KEYS + 1)

    value = of(last, LIST)[0].value
    assert value and set(value) <= {call.key for call in of(load.history, WRITE, value=THERE)}
    gone = [call._replace(value=call.value[1:]) if call in of(last, LIST, key=of(last, LIST)[0].key) else call
            for call in history]
    assert anomalies(gone, load.slack_s).get("lost_writes") == 1
    read = max((call for call in of(load.history, READ, outcome=OK) if call.value), key=lambda call: call.invoked_s)
    assert anomalies(replaced(history, read, "never written"), load.slack_s) == {"phantom_values": 1}
    assert anomalies(replaced(history, read, None), load.slack_s).get("stale_reads") == 1

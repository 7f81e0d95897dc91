"""Histories of registers on Cassandra, at each consistency level, through the death of a node.

Parameters of a point: version, nodes, replication, durability and heap_mb of the ring; the clients of
keyvalue.registers (CLIENTS); before_seconds of calls before the last node is killed, down_seconds
until it is started again, and after_seconds of calls once all nodes know each other again.
"""

import time

from labbook.papers.cms_scalability.experiments import Layout, check_ring
from labbook.systems.cassandra.ring import Ring
from labbook.workloads.crew.crew import Crew
from labbook.workloads.histories import calls as histories
from labbook.workloads.keyvalue.registers import begin_registers, check_registers, last_reads

RING = ("version", "replication", "durability", "heap_mb")
CLIENTS = ("keys", "readers", "write_level", "read_level", "calls_per_s", "call_seconds",
           "seconds_at_most")


def measure_histories(study, experiment) -> None:
    """Measure what clients see while a node is killed and comes back: the anomalies in the history of
    their calls (histories.calls.metrics), which ends with a read of each row at level ALL."""
    hosts = Layout.of(study).nodes
    check(experiment, hosts)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            ring = attempt.setup(lambda lab: new_ring(lab, point, hosts))
            stream = begin_registers(Crew.of(attempt.lab), ring, seed=point.seed,
                                     **{name: point.params[name] for name in CLIENTS})
            time.sleep(point.before_seconds)
            events = kill_node(point, ring, stream.since_start)
            time.sleep(point.after_seconds)
            load = stream.end()
            history = [*load.history, *last_reads(Crew.of(attempt.lab), ring, point.keys,
                                                  stream.since_start)]
            attempt.record(load.rows, facts=ring.facts(), series={"history": histories.frame(history)},
                           metrics={**load.metrics, **events,
                                    **histories.metrics(history, load.slack_s)})


def check(experiment, hosts: list[str]) -> None:
    """InputError for invalid clients or rings, before a lab is brought up."""
    for point in experiment.points():
        check_registers(**{name: point.params[name] for name in CLIENTS})
        check_ring(point, {name: point.params[name] for name in RING}, hosts)


def new_ring(lab, point, hosts: list[str]) -> Ring:
    """The point's nodes, each with all the time of its core, and an empty table."""
    used = hosts[:point.nodes]
    for host in used:
        lab.limit(host, None)
    ring = Ring([lab.host(host) for host in used], **{name: point.params[name] for name in RING}).up()
    ring.create_table()
    return ring


def kill_node(point, ring, now) -> dict:
    """Kill the ring's last node, and start it again after the point's down_seconds.

    Returns the times of these events, and when all nodes knew each other again; `now()` is the time
    in seconds since the calls began.
    """
    node = ring.nodes[-1]
    fault = now()
    node.process.kill()
    time.sleep(point.down_seconds)
    restarted = now()
    node.start()
    ring.await_formed()
    return {"fault_s": fault, "restarted_s": restarted, "rejoined_s": now()}

"""Clients in closed loops against a store of pairs: one row an operation."""

import time

from labbook.workloads.clients.server_cpu import server_cpu
from labbook.workloads.clients.start import clocks, notice_seconds, shares
from labbook.workloads.keyvalue.on_host import engine as keyvalue_host
from labbook.workloads.keyvalue.on_host.pairs import DOTS
from labbook.workloads.keyvalue.rows import Load, metrics, of_sheet, together
from labbook.workloads.keyvalue.spec import (
    CALL_SECONDS,
    LEVELS,
    LEVELS_OF_READS,
    check_load,
    spec_of,
)

__all__ = ["CALL_SECONDS", "LEVELS", "LEVELS_OF_READS", "Load", "check_load", "fill", "keyvalue"]
CONNECT_SECONDS = 60  # for all clients of a host to connect
FILL_SECONDS = 120  # for a server that has just come up to be asked for the first time


def fill(crew, target, *, rows: int, value_bytes: int, values: str = DOTS,
         consistency: str = "ONE") -> None:
    """Write every row of the table once at that level, and read all back.

    They are read at ALL, which shows that every replica has them: so they can be read at any.
    """
    spec = spec_of(target, rows=rows, value_bytes=value_bytes, values=values,
                   consistency=consistency)
    crew.run(keyvalue_host.fill, [spec], ["ALL"], timeout=FILL_SECONDS + rows / 50)


def keyvalue(crew, target, *, op: str, clients: int, requests: int, rows: int, value_bytes: int,
             values: str = DOTS, consistency: str = "ONE", warmup_requests: int, seed: int,
             seconds_at_most: float) -> Load:
    """Let `clients` clients, spread evenly over the crew's hosts, make `requests` calls each.

    Each has its own connection, warms up with `warmup_requests` calls and then, all together,
    calls in a closed loop on rows drawn evenly out of `rows`. After `seconds_at_most` no new call
    is made, and the metric `truncated` is 1. `target` has a protocol, a port and an address or
    several `addresses`, over which the clients go round; where the servers' CPU is to be known,
    a `process` or several `processes`. The consistency level is Cassandra's alone; so are `values`
    "random", which no store can make smaller.
    """
    spec = spec_of(target, op=op, clients=clients, requests=requests, rows=rows,
                   value_bytes=value_bytes, values=values, consistency=consistency,
                   warmup_requests=warmup_requests, seed=seed, seconds_at_most=seconds_at_most)
    specs = shares(spec, clients, len(crew.hosts))
    ready_seconds = CONNECT_SECONDS + seconds_at_most + CALL_SECONDS
    crew.run(keyvalue_host.prepare, specs, [ready_seconds] * len(specs),
             timeout=ready_seconds + 10)
    offsets, uncertainty = clocks(crew)
    notice = notice_seconds(crew, clients)
    cpu_before = server_cpu(target)
    start = time.time() + notice
    # a last call may connect, say where to, and ask: three waits
    end_seconds = start - time.time() + seconds_at_most + 3 * CALL_SECONDS + 10
    found = crew.run(keyvalue_host.go, [start + offset for offset in offsets[:len(specs)]],
                     [end_seconds] * len(specs), timeout=end_seconds + 10)
    frames, used = zip(*(of_sheet(raw, s, host.name)
                         for raw, s, host in zip(found, specs, crew.hosts)))
    rows = together(frames)
    made = metrics(rows, used, crew.hosts)
    made["start_spread_s"] += uncertainty
    made["truncated"] = float(len(rows) < clients * requests)
    if cpu_before is not None:
        made["server_cpu_us_per_call"] = (server_cpu(target) - cpu_before) / len(rows) * 1e6
    return Load(rows, made, start)

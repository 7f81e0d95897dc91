"""Filling a store with many large rows as fast as it takes them."""

import time
from contextlib import suppress

import pandas as pd

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.lab.ssh.transfer import say
from labbook.workloads.clients.server_cpu import server_cpu
from labbook.workloads.clients.start import clocks, cpus, notice_seconds, shares
from labbook.workloads.keyvalue.on_host import loading_engine as host
from labbook.workloads.keyvalue.on_host.pairs import RANDOM
from labbook.workloads.keyvalue.protocols import registry as stores
from labbook.workloads.keyvalue.rows import Load
from labbook.workloads.keyvalue.spec import CALL_SECONDS, spec_of

CLIENTS = 4                 # enough to keep one node busy; each waits while its batch is written
BATCH_BYTES = 256 * 1024    # of values; more made no node faster
TRIES = 8                   # of a batch; the pauses between them are 13 s together
READY_SECONDS = 120         # for all clients to connect
STALL_SECONDS = 180         # without a row: longer than all tries of a batch may take
LOOK_SECONDS, SAY_SECONDS = 1, 5
END_SECONDS, READ_BACK_SECONDS = 60, 300


def load_pairs(crew, target, *, rows: int, value_bytes: int, values: str = RANDOM, seed: int = 0,
               clients: int = CLIENTS, consistency: str = "ONE",
               most_mb_per_s: float | None = None) -> Load:
    """Write every row of the table once, and read a sample back; SystemFailure where a row cannot
    be written in several tries, or holds something else.

    `clients` connections, spread evenly over the crew's hosts, write a part of the rows each, many
    at once, and again what was not acknowledged. Of the Load that comes of it, `rows` has a row a
    client: client, host, started_s, seconds, rows, again (batches written again), cpu_s. Measures:
    seconds, rows_per_s, mb_per_s (10^6 bytes of values), mb_per_s_per_client_core (MB for each
    second of the clients' CPU), clients_cpu_share, again, sampled (rows that were read back), and
    where the target has processes server_cpu_s. `most_mb_per_s` holds them back, for a store that
    would rather run out of memory than make them wait.
    """
    spec = _spec(target, rows, value_bytes, values, seed, clients, consistency)
    if most_mb_per_s is not None:
        spec["client_bytes_per_s"] = most_mb_per_s * 1e6 / spec["all_clients"]
    specs = shares(spec, spec["clients"], len(crew.hosts))
    what = f"{rows} rows, {rows * value_bytes / 1e6:.0f} MB"
    cpu_before = server_cpu(target)
    try:
        start = _begin(crew, specs)
        _watch(crew, len(specs), rows, what)
        found = crew.run(host.end, [END_SECONDS] * len(specs), timeout=END_SECONDS + 10)
        made = _metrics(found, crew.hosts, rows, value_bytes)
        if cpu_before is not None:
            made["server_cpu_s"] = server_cpu(target) - cpu_before
        made["sampled"], = crew.run(host.read_back, [spec], timeout=READ_BACK_SECONDS)
    except SystemFailure as error:
        raise _with_log(error, target) from None
    say(f"loaded {what} in {made['seconds']:.0f} s")
    return Load(_rows(found, crew.hosts), made, start)


def _spec(target, rows, value_bytes, values, seed, clients, consistency) -> dict:
    if target.protocol not in stores.CASSANDRA:
        raise InputError(f"{target.protocol!r} is not allowed", key="protocol",
                         allowed=stores.CASSANDRA)
    spec = spec_of(target, op="write", rows=rows, value_bytes=value_bytes, values=values, seed=seed,
                   clients=clients, consistency=consistency)
    clients = min(clients, rows)
    return dict(spec, clients=clients, all_clients=clients, tries=TRIES,
                rows_a_batch=max(1, BATCH_BYTES // value_bytes))


def _begin(crew, specs) -> float:
    """Start the loaders: when, by our clock."""
    crew.run(host.prepare, specs, [READY_SECONDS] * len(specs), timeout=READY_SECONDS + 10)
    offsets, _ = clocks(crew)
    start = time.time() + notice_seconds(crew, specs[0]["all_clients"])
    crew.run(host.begin, [start + offset for offset, _ in zip(offsets, specs)])
    return start


def _watch(crew, count: int, rows: int, what: str) -> None:
    """Returns when the loaders of `count` hosts have ended; SystemFailure when they are stuck."""
    done, moved, said = [0] * count, time.monotonic(), time.monotonic()
    while True:
        told = crew.run(host.progress, [LOOK_SECONDS] * count,
                        timeout=LOOK_SECONDS + 3 * CALL_SECONDS)
        now, before = time.monotonic(), sum(done)
        done = [d if n is None else n for d, (n, _) in zip(done, told)]
        if not any(at_it for _, at_it in told):
            return
        moved = now if sum(done) > before else moved
        if now - moved > STALL_SECONDS:
            crew.run(host.stop)
            raise SystemFailure(f"loading came no further than row {sum(done)} of {rows}: no row "
                                f"was written in {STALL_SECONDS} s")
        if now - said > SAY_SECONDS:
            said = now
            say(f"loading {what}: {100 * sum(done) / rows:.0f} %")


def _with_log(error: SystemFailure, target) -> SystemFailure:
    """What the clients say of it, with what the server does."""
    process = getattr(target, "process", None)
    if process is not None and not error.log:
        with suppress(LabbookError):
            error.log = process.log_tail()
    return error


def _rows(found, hosts) -> pd.DataFrame:
    """`found`: of each host a list of what each client tells."""
    columns = ["client", "started_s", "seconds", "rows", "again", "cpu_s"]
    frames = [pd.DataFrame(told, columns=columns).assign(host=each.name)
              for told, each in zip(found, hosts)]
    return pd.concat(frames, ignore_index=True)[["client", "host", *columns[1:]]]


def _metrics(found, hosts, rows: int, value_bytes: int) -> dict:
    table, mb = _rows(found, hosts), rows * value_bytes / 1e6
    seconds = (table.started_s + table.seconds).max() - table.started_s.min()
    used = table.groupby("host").cpu_s.sum()
    return {
        "seconds": seconds, "rows_per_s": rows / seconds, "mb_per_s": mb / seconds,
        "mb_per_s_per_client_core": mb / used.sum(),
        "clients_cpu_share": max(used[each.name] / (seconds * cpus(each))
                                 for each, _ in zip(hosts, found)),
        "again": int(table.again.sum()),
    }

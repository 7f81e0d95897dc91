"""Filling a store with many large rows as fast as it takes them."""

import time
from contextlib import suppress

import pandas as pd

from labbook.errors import LabbookError, SystemFailure
from labbook.lab.ssh.transfer import say
from labbook.targets import RANDOM, Servers
from labbook.workloads.clients.cpu import cpus, server_cpu
from labbook.workloads.clients.driver import Clients, shares
from labbook.workloads.clients.rows import Load
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.on_host import loader
from labbook.workloads.keyvalue.on_host.contents import read_sample
from labbook.workloads.keyvalue.spec import CALL_SECONDS, check_among, spec_of

CLIENTS = 4                 # enough to keep one node busy; each waits while its batch is written
BATCH_BYTES = 256 * 1024    # of values; more made no node faster
TRIES = 8                   # of a batch; the pauses between them are 13 s together
READY_SECONDS = 120         # for all clients to connect
STALL_SECONDS = 180         # without a row: longer than all tries of a batch may take
LOOK_SECONDS, SAY_SECONDS = 1, 5
END_SECONDS, READ_BACK_SECONDS = 60, 300


def load_pairs(crew, target: Servers, *, rows: int, value_bytes: int, values: str = RANDOM,
               seed: int = 0, clients: int = CLIENTS, consistency: str | None = None,
               most_mb_per_s: float | None = None) -> Load:
    """Write every row of the table once, as fast as the store takes them, and read a sample back;
    SystemFailure when a row cannot be written in several tries, or has another value.

    `clients` connections, spread evenly over the crew's hosts, write a share of the rows each, many
    at once, and again what was not acknowledged. `most_mb_per_s` limits their rate, for a store
    that would rather run out of memory than make them wait. The protocol must have BATCHES.

    Rows, one a client: client, host, started_s, seconds, rows, again (batches written again),
    cpu_s. Metrics: seconds, rows_per_s, mb_per_s (10^6 bytes of values), mb_per_s_per_client_core
    (MB for each second of the clients' CPU), clients_cpu_share, again, sampled (rows that were read
    back) and, where the target has processes, server_cpu_s.
    """
    spec = _spec(target, rows, value_bytes, values, seed, clients, consistency)
    if most_mb_per_s is not None:
        spec["client_bytes_per_s"] = most_mb_per_s * 1e6 / spec["clients"]
    what = f"{rows} rows, {rows * value_bytes / 1e6:.0f} MB"
    cpu_before = server_cpu(target)
    try:
        loaders = Clients(crew, loader, shares(spec, len(crew.hosts)), READY_SECONDS)
        loaders.start()
        _watch(loaders, rows, what)
        table = _rows(loaders.finish(END_SECONDS), loaders.hosts)
        made = _metrics(table, loaders.hosts, rows, value_bytes)
        if cpu_before is not None:
            made["server_cpu_s"] = server_cpu(target) - cpu_before
        made["sampled"], = crew.run(read_sample, [spec], timeout=READ_BACK_SECONDS)
    except SystemFailure as error:
        raise _with_log(error, target) from error.__cause__
    say(f"loaded {what} in {made['seconds']:.0f} s")
    return Load(table, made, loaders.started)


def _spec(target: Servers, rows, value_bytes, values, seed, clients, consistency) -> dict:
    check_among("protocol", target.protocol, protocols.that(BATCHES=True))
    spec = spec_of(target, op="write", rows=rows, value_bytes=value_bytes, values=values, seed=seed,
                   clients=clients, consistency=consistency)
    return dict(spec, clients=min(clients, rows), tries=TRIES,
                rows_a_batch=max(1, BATCH_BYTES // value_bytes))


def _watch(loaders: Clients, rows: int, what: str) -> None:
    """Returns when the loaders have ended; SystemFailure when they no longer make progress."""
    done, moved, reported = [0] * len(loaders.hosts), time.monotonic(), time.monotonic()
    while True:
        found = loaders.progress(LOOK_SECONDS, 3 * CALL_SECONDS)
        now, before = time.monotonic(), sum(done)
        done = [d if n is None else n for d, (n, _) in zip(done, found)]
        if not any(running for _, running in found):
            return
        moved = now if sum(done) > before else moved
        if now - moved > STALL_SECONDS:
            loaders.clear()
            raise SystemFailure(f"loading stopped at row {sum(done)} of {rows}: no row was written "
                                f"in {STALL_SECONDS} s")
        if now - reported > SAY_SECONDS:
            reported = now
            say(f"loading {what}: {100 * sum(done) / rows:.0f} %")


def _with_log(error: SystemFailure, target: Servers) -> SystemFailure:
    """The clients' error with the end of the server's log."""
    process = getattr(target, "process", None)
    if process is not None:
        with suppress(LabbookError):
            error.log = "\n".join(filter(None, [error.log, process.log_tail()]))
    return error


def _rows(found, hosts) -> pd.DataFrame:
    columns = ["client", "host", "started_s", "seconds", "rows", "again", "cpu_s"]
    return pd.DataFrame([dict(head, host=host.name)
                         for (heads, _), host in zip(found, hosts) for head in heads],
                        columns=columns)


def _metrics(table: pd.DataFrame, hosts, rows: int, value_bytes: int) -> dict:
    mb, used = rows * value_bytes / 1e6, table.groupby("host").cpu_s.sum()
    seconds = (table.started_s + table.seconds).max() - table.started_s.min()
    return {
        "seconds": seconds, "rows_per_s": rows / seconds, "mb_per_s": mb / seconds,
        "mb_per_s_per_client_core": mb / used.sum(),
        "clients_cpu_share": max(used[host.name] / (seconds * cpus(host)) for host in hosts),
        "again": int(table.again.sum()),
    }

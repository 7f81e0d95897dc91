"""Clients that read and write the pairs of a store: a row a call."""

import numpy as np
import pandas as pd

from labbook.targets import DOTS, Servers
from labbook.workloads.clients.driver import Clients, Stream, shares
from labbook.workloads.clients.rows import (
    Load,
    call_metrics,
    from_due,
    rate_metrics,
    together,
)
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.on_host import callers, contents
from labbook.workloads.keyvalue.spec import CALL_SECONDS, check_load, spec_of

__all__ = ["CALL_SECONDS", "Load", "Stream", "begin_pairs", "check_load", "in_turns", "keyvalue"]
CONNECT_SECONDS = 60            # for all clients of a host to connect
LAST_SECONDS = 3 * CALL_SECONDS  # a last call may connect, say where to, and ask: three waits
OF_TARGET = ("protocol", "port", "addresses", "password", "consistency")    # of a client's spec
CALL = np.dtype([("started", "<f8"), ("seconds", "<f8"), ("error", "u1")])  # callers.ROW


def keyvalue(crew, target: Servers, *, op: str, clients: int, requests: int, rows: int, value_bytes: int,
             values: str = DOTS, consistency: str | None = None, warmup_requests: int, seed: int,
             seconds_at_most: float, when_ready=lambda: None) -> Load:
    """Let `clients` clients, spread evenly over the crew's hosts, make `requests` calls each.

    Each has its own connection, warms up with `warmup_requests` calls and then, all together,
    calls in a closed loop on rows drawn evenly out of `rows`. After `seconds_at_most` no new call
    is made. `target` has a protocol, a port and an address or several `addresses`, which the
    clients take in turn; where the servers' CPU is to be known, a `process` or several `processes`.
    `consistency`: one of the protocol's levels, ignored where it has none. `values` "random", which
    no store can compress, need a protocol whose values may be any bytes. Rows that the clients add, as by
    the op "insert", are taken out again afterwards. `when_ready` is called when all have warmed up, before they start.

    Rows: client, host, started_s (since the common start), seconds, ok, error. Metrics: those of
    `call_metrics`, in µs, and truncated (1 when the time limit ended the load).
    """
    spec = spec_of(target, op=op, clients=clients, requests=requests, rows=rows,
                   value_bytes=value_bytes, values=values, consistency=consistency,
                   warmup_requests=warmup_requests, seed=seed, seconds_at_most=seconds_at_most)
    ready = _prepare(crew, spec)
    when_ready()
    found = ready.run(seconds_at_most + LAST_SECONDS + 10, target)
    _remove_added(crew, spec)
    rows, made = _tables(ready, found)
    return Load(rows, made | {"truncated": float(len(rows) < clients * requests)}, ready.started)


def in_turns(crew, targets: list[Servers], *, turn_seconds: float, seconds_at_most: float, **load) -> list[Load]:
    """Let one client for each target call it, all on the crew's first host, each while the others rest: in turns
    of `turn_seconds`, A B, B A, A B ... What makes the machine faster or slower for longer does so to all alike.

    `load` and `seconds_at_most`, of all turns together, are as keyvalue's. Returns the Load of each target, of
    whose metrics there is clients_cpu_us_per_call.
    """
    specs = [spec_of(target, clients=1, seconds_at_most=seconds_at_most, **load) for target in targets]
    together = specs[0] | {"clients": len(specs), "turn_seconds": turn_seconds, "targets": [
        {key: spec[key] for key in OF_TARGET} for spec in specs]}
    ready = Clients(crew, callers, shares(together, 1), CONNECT_SECONDS + seconds_at_most + CALL_SECONDS)
    (heads, raw), = ready.run(seconds_at_most + LAST_SECONDS + 10)
    for spec in specs:
        _remove_added(crew, spec)
    rows = _frame(heads, raw, ready.hosts[0].name)
    return [Load(rows[rows["client"] == head["client"]].reset_index(drop=True),
                 {"clients_cpu_us_per_call": head["cpu_s"] / max(1, head["rows"]) * 1e6}, ready.started)
            for head in heads]


def begin_pairs(crew, target: Servers, *, op: str, clients: int, rows: int, value_bytes: int,
                values: str = DOTS, rate_per_s: float | None = None, warmup_requests: int = 0,
                seconds_at_most: float, seed: int, consistency: str | None = None,
                requests_at_most: int | None = None, say_seconds: float | None = None) -> Stream:
    """The clients of `keyvalue`, who call until `end()`: returns when all call.

    With `rate_per_s` they make that many calls a second together, each client on its own schedule
    of equal distances: one that is late makes its next calls at once until it has caught up. Times
    then count from when a call was due, and the rows have service_s too (see `from_due`); the metrics
    also those of `rate_metrics`. After `seconds_at_most`, or `requests_at_most` calls of its own, a client
    makes no new call though nobody ends the stream; and it ends with its engine, and so with the
    lab. Every `say_seconds` the clients' hosts say how many calls they have made (Stream.calls_made).
    One stream at a time.
    """
    spec = spec_of(target, op=op, clients=clients, rows=rows, value_bytes=value_bytes,
                   values=values, rate_per_s=rate_per_s, warmup_requests=warmup_requests,
                   seconds_at_most=seconds_at_most, seed=seed, consistency=consistency,
                   requests_at_most=requests_at_most, say_seconds=say_seconds)
    ready = _prepare(crew, spec)

    def finish(truncated: float) -> Load:
        rows, made = _tables(ready, ready.finish(LAST_SECONDS + 60), rate_per_s)
        _remove_added(crew, spec)
        return Load(rows, made | {"truncated": truncated}, ready.started)

    return Stream(ready, seconds_at_most, finish)


def _prepare(crew, spec: dict) -> Clients:
    return Clients(crew, callers, shares(spec, len(crew.hosts)),
                   CONNECT_SECONDS + spec["seconds_at_most"] + CALL_SECONDS)


def _remove_added(crew, spec: dict) -> None:
    if spec["op"] in protocols.protocol(spec["protocol"]).ADDS:
        crew.run(contents.remove_added, [spec], timeout=2 * contents.REMOVE_SECONDS)


def _tables(clients: Clients, found, rate_per_s=None) -> tuple[pd.DataFrame, dict]:
    """(rows, metrics) of all hosts' results."""
    rows = together([_frame(heads, raw, host.name)
                     for (heads, raw), host in zip(found, clients.hosts)])
    used = [sum(head["cpu_s"] for head in heads) for heads, _ in found]
    if not rate_per_s:
        return rows, call_metrics(rows, used, clients)
    number = clients.specs[0]["all_clients"]
    rows = from_due(rows, rate_per_s, number)
    return rows, call_metrics(rows, used, clients) | rate_metrics(rows, rate_per_s, number)


def _frame(heads: list[dict], raw: bytes, host: str) -> pd.DataFrame:
    """The calls of one host, by client and in order; `error` counts a client's texts from 1."""
    calls = np.frombuffer(raw, CALL)
    at = np.repeat(np.arange(len(heads)), [head["rows"] for head in heads])
    numbers = np.array([head["client"] for head in heads], dtype="int32")
    texts = [head["texts"] for head in heads]
    names = list(dict.fromkeys(["", *(text for of_client in texts for text in of_client)]))
    codes = np.zeros((len(texts), 1 + max(map(len, texts), default=0)), dtype="int32")
    for i, of_client in enumerate(texts):
        codes[i, 1:1 + len(of_client)] = [names.index(text) for text in of_client]
    return pd.DataFrame({
        "client": numbers[at],
        "host": pd.Categorical.from_codes(np.zeros(len(at), dtype="int8"), [host]),
        "started_s": calls["started"], "seconds": calls["seconds"], "ok": calls["error"] == 0,
        "error": pd.Categorical.from_codes(codes[at, calls["error"]], names)})

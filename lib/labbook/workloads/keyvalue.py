"""Clients in closed loops against a store of pairs: one row an operation."""

import struct
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd

from labbook.errors import InputError
from labbook.workloads import keyvalue_host, stores
from labbook.workloads.common_start import clocks, cpus, notice_seconds, shares
from labbook.workloads.keyvalue_runner import ERROR_BYTES, KINDS_OF_ERRORS, sheet_fields
from labbook.workloads.pairs import MOST_ROWS, key_of
from labbook.workloads.server_cpu import server_cpu

LEVELS_OF_READS = ("ONE", "QUORUM", "ALL")
LEVELS = (*LEVELS_OF_READS, "ANY")
CALL_SECONDS = 10  # a call that takes longer is an error; Cassandra's own limit, as shipped
CONNECT_SECONDS = 60  # for all clients of a host to connect
FILL_SECONDS = 120  # for a server that has just come up to be asked for the first time


@dataclass(frozen=True)
class Load:
    """`rows`: client, host, started_s (since the common start), seconds, ok, error.

    `measures`: rate_per_s, start_spread_s (what the clocks may be off counted in), truncated (1
    when the time limit ended it), clients_cpu_share, clients_cpu_us_per_call,
    server_cpu_us_per_call (all servers' CPU, known to 10 ms of each).
    """

    rows: pd.DataFrame
    measures: dict


def fill(crew, target, *, rows: int, value_bytes: int, consistency: str = "ONE") -> None:
    """Write every row of the table once at that level, and read all back.

    They are read at ALL, which shows that every replica has them: so they can be read at any.
    """
    spec = _spec(target, rows, value_bytes, consistency)
    crew.run(keyvalue_host.fill, [spec], ["ALL"], timeout=FILL_SECONDS + rows / 50)


def keyvalue(crew, target, *, op: str, clients: int, requests: int, rows: int, value_bytes: int,
             consistency: str = "ONE", warmup_requests: int, seed: int,
             seconds_at_most: float) -> Load:
    """Let `clients` clients, spread evenly over the crew's hosts, make `requests` calls each.

    Each has its own connection, warms up with `warmup_requests` calls and then, all together,
    calls in a closed loop on rows drawn evenly out of `rows`. After `seconds_at_most` no new call
    is made, and the measure `truncated` is 1. `target` has a protocol, a port and an address or
    several `addresses`, over which the clients go round; where the servers' CPU is to be known,
    a `process` or several `processes`. The consistency level is Cassandra's alone.
    """
    spec = _spec(target, rows, value_bytes, consistency, op=op, clients=clients,
                 requests=requests,
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
    sheets = [_sheet(raw, s) for raw, s in zip(found, specs)]
    frames = [_frame(sheet, s["first_client"], host.name)
              for sheet, s, host in zip(sheets, specs, crew.hosts)]
    measures = _measures(frames, sheets, crew.hosts, clients * requests)
    measures["start_spread_s"] += uncertainty
    if cpu_before is not None:
        calls = sum(len(frame) for frame in frames)
        measures["server_cpu_us_per_call"] = (server_cpu(target) - cpu_before) / calls * 1e6
    return Load(_together(frames), measures)


def check_load(*, op: str, clients: int = 1, requests: int = 1, rows: int, value_bytes: int,
               consistency: str = "ONE", warmup_requests: int = 0,
               seconds_at_most: float = CALL_SECONDS) -> None:
    """InputError for what no store can be asked; to be called before there is one."""
    for name, value, least in (("clients", clients, 1), ("requests", requests, 1),
                               ("rows", rows, 1), ("warmup_requests", warmup_requests, 0)):
        if value < least:
            raise InputError(f"{value!r} is too few", key=name, allowed=f"{least} and more")
    if rows > MOST_ROWS:
        raise InputError(f"{rows} is too many", key="rows", allowed=f"1 to {MOST_ROWS}")
    if seconds_at_most <= 0:
        raise InputError(f"{seconds_at_most!r} s leave no time", key="seconds_at_most",
                         allowed="more than 0")
    if value_bytes < len(key_of(0)):
        raise InputError(f"{value_bytes} bytes do not tell values apart", key="value_bytes",
                         allowed=f"{len(key_of(0))} and more")
    _check_among("op", op, stores.ALL_OPS)
    _check_among("consistency", consistency, LEVELS_OF_READS if op == "read" else LEVELS)


def _check_among(name, value, allowed) -> None:
    if value not in allowed:
        raise InputError(f"{value!r} is not allowed", key=name, allowed=allowed)


def _spec(target, rows, value_bytes, consistency, op="write", **more) -> dict:
    _check_among("protocol", target.protocol, tuple(stores.CALLS))
    _check_among("op", op, stores.ops(target.protocol))
    told = {name: value for name, value in more.items() if name != "seed"}
    check_load(op=op, rows=rows, value_bytes=value_bytes, consistency=consistency, **told)
    addresses = getattr(target, "addresses", None) or [target.address]
    return dict(protocol=target.protocol, addresses=[str(address) for address in addresses],
                port=target.port, rows=rows, value_bytes=value_bytes, consistency=consistency,
                call_seconds=CALL_SECONDS, op=op, **more)


def _sheet(raw: bytes, spec) -> dict:
    """The runner's fields: over (client, request), texts over (client, kind of error)."""
    (made,), at, sheet = struct.unpack_from("q", raw), 8, {}
    for name, code, columns in sheet_fields(made):
        sheet[name] = np.frombuffer(raw, code, spec["clients"] * columns, at).reshape(
            spec["clients"], columns)
        at += sheet[name].nbytes
    sheet["texts"] = sheet["texts"].reshape(-1).view(f"S{ERROR_BYTES}").reshape(
        spec["clients"], KINDS_OF_ERRORS)
    return sheet


def _frame(sheet, first_client, host) -> pd.DataFrame:
    """The calls that were made, by client and in order."""
    at, request = np.nonzero(sheet["seconds"] >= 0)
    error = sheet["error"][at, request]
    texts = np.full(len(at), "", dtype=object)
    failed = error > 0
    texts[failed] = [t.decode(errors="replace")
                     for t in sheet["texts"][at[failed], error[failed] - 1]]
    return pd.DataFrame({
        "client": (at + first_client).astype("int32"), "host": host,
        "started_s": sheet["started"][at, request], "seconds": sheet["seconds"][at, request],
        "ok": ~failed, "error": texts})


def _together(frames) -> pd.DataFrame:
    rows = pd.concat(frames, ignore_index=True)
    return rows.astype({"host": "category", "error": "category"})


def _measures(frames, sheets, hosts, asked: int) -> dict:
    """`clients_cpu_share` is the busiest host's: one host that is short spoils the result."""
    rows = pd.concat(frames)
    ends = rows.started_s + rows.seconds
    elapsed = ends.max() - rows.started_s.min()
    first = rows.groupby("client").started_s.min()
    used = [sheet["cpu_seconds"].sum() for sheet in sheets]
    return {
        "rate_per_s": rows.ok.sum() / elapsed,
        "start_spread_s": first.max() - first.min(),
        "truncated": float(len(rows) < asked),
        "clients_cpu_share": max(cpu / (elapsed * cpus(host)) for cpu, host in zip(used, hosts)),
        "clients_cpu_us_per_call": sum(used) / len(rows) * 1e6,
    }

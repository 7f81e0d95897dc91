"""From what the clients' processes wrote to tables of calls, and the metrics of these."""

import json
import struct
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from labbook.workloads.clients.start import cpus
from labbook.workloads.keyvalue.on_host.client import ERROR_BYTES, KINDS_OF_ERRORS
from labbook.workloads.keyvalue.on_host.closed_loop import sheet_fields
from labbook.workloads.keyvalue.on_host.stream import LENGTH

CALL = np.dtype([("started", "<f8"), ("seconds", "<f8"), ("error", "u1")])  # a stream's ROW


@dataclass(frozen=True)
class Load:
    """`rows`: client, host, started_s (since the common start), seconds, ok, error.

    `metrics`: rate_per_s, start_spread_s (what the clocks may be off counted in), truncated (1
    when the time limit ended it), clients_cpu_share, clients_cpu_us_per_call; of a load
    server_cpu_us_per_call (all servers' CPU, known to 10 ms of each); of a stream with a rate
    latest_s. `started`: seconds since the epoch, by our clock, at which started_s is 0.
    """

    rows: pd.DataFrame
    metrics: dict
    started: float


def of_sheet(raw: bytes, spec: dict, host: str) -> tuple[pd.DataFrame, float]:
    """The calls that were made, by client and in order, and the clients' CPU seconds."""
    sheet = _sheet(raw, spec)
    at, request = np.nonzero(sheet["seconds"] >= 0)
    texts = [[text.decode(errors="replace") for text in of_client] for of_client in sheet["texts"]]
    rows = _frame(at, at + spec["first_client"], host, sheet["started"][at, request],
                  sheet["seconds"][at, request], sheet["error"][at, request], texts)
    return rows, float(sheet["cpu_seconds"].sum())


def of_stream(raw: bytes, host: str) -> tuple[pd.DataFrame, float]:
    """The same, of what a stream's runner wrote."""
    begin = LENGTH.size + LENGTH.unpack_from(raw)[0]
    heads = json.loads(raw[LENGTH.size:begin])
    calls = np.frombuffer(raw, CALL, offset=begin)
    at = np.repeat(np.arange(len(heads)), [count for _, count, _, _ in heads])
    numbers = np.array([number for number, _, _, _ in heads])
    rows = _frame(at, numbers[at], host, calls["started"], calls["seconds"], calls["error"],
                  [texts for _, _, _, texts in heads])
    return rows, sum(cpu for _, _, cpu, _ in heads)


def together(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all hosts."""
    for column in ("host", "error"):  # each host's has categories of its own
        every = union_categoricals([frame[column] for frame in frames]).categories
        frames = [frame.assign(**{column: frame[column].cat.set_categories(every)})
                  for frame in frames]
    return pd.concat(frames, ignore_index=True)


def metrics(rows: pd.DataFrame, used: list[float], hosts) -> dict:
    """Of all calls and of the CPU seconds of each host's clients; `clients_cpu_share` is the
    busiest host's: one host that is short spoils the result."""
    elapsed = (rows.started_s + rows.seconds).max() - rows.started_s.min()
    first = rows.groupby("client").started_s.min()
    return {
        "rate_per_s": rows.ok.sum() / elapsed,
        "start_spread_s": first.max() - first.min(),
        "clients_cpu_share": max(cpu / (elapsed * cpus(host)) for cpu, host in zip(used, hosts)),
        "clients_cpu_us_per_call": sum(used) / max(1, len(rows)) * 1e6,
    }


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


def _frame(at, client, host: str, started, seconds, error, texts) -> pd.DataFrame:
    """Columns of one length; `at` counts the clients, `error` from 1 their `texts`."""
    named = list(dict.fromkeys(["", *(text for of_client in texts for text in of_client)]))
    code = np.zeros((len(texts), 1 + max(map(len, texts), default=0)), dtype="int32")
    for i, of_client in enumerate(texts):
        code[i, 1:1 + len(of_client)] = [named.index(text) for text in of_client]
    return pd.DataFrame({
        "client": np.asarray(client, dtype="int32"),
        "host": pd.Categorical.from_codes(np.zeros(len(at), dtype="int8"), [host]),
        "started_s": started, "seconds": seconds, "ok": error == 0,
        "error": pd.Categorical.from_codes(code[at, error], named)})

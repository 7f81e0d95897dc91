"""From what metadata clients wrote to tables of calls and phases, and the metrics of these."""

import errno
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from labbook.workloads.clients.rows import call_metrics
from labbook.workloads.files.on_host.calls import OPS
from labbook.workloads.files.on_host.client import BLOCKED

BLOCKED_WORD = "blocked"
CALL = np.dtype([("started", "<f8"), ("seconds", "<f8"), ("directory", "<u2"), ("errno", "<u2"),
                 ("phase", "u1"), ("op", "u1")])   # the sheet's ROW
# what a phase is there for, where it is not named after it
OWN = {"delete": "unlink", "across": "rename"}


@dataclass(frozen=True)
class Load:
    """`rows`: client, host, phase, op, directory, started_s, seconds, ok, error.

    `op` is "create", "stat", "unlink", "rename", "readdir", "mkdir" or "rmdir"; `directory` the
    number of that which it is in; `error` the errno's name ("ENOENT"), "blocked" for a call that
    was cut off, "" else. `phases`: a row a phase that was begun: phase, started_s, ended_s,
    operations and rate_per_s (of what the phase is there for, such as the unlinks of a delete; from
    its first call's begin to its last one's end), errors. `metrics`: {phase}_per_s and
    {phase}_p99_ms of each phase (NaN where it was not come to), rate_per_s (of all), longest_s,
    errors, blocked, truncated (1 when the time limit ended it), start_spread_s, clients_cpu_s,
    clients_cpu_share, clients_cpu_us_per_call. `started`: seconds since the epoch, by our clock, at which started_s is
    0. `folder`: what is left lies there, below each path.
    """

    rows: pd.DataFrame
    phases: pd.DataFrame
    metrics: dict
    started: float
    folder: str


def of_host(heads: list[dict], raw: bytes, phases, host: str) -> pd.DataFrame:
    """The calls of one host's clients, by client and in order."""
    calls = np.frombuffer(raw, CALL)
    clients = np.repeat(np.array([head["client"] for head in heads], dtype="int32"),
                        [head["rows"] for head in heads])
    ops = list(dict.fromkeys(OPS))
    numbers = np.unique(calls["errno"])
    words = [word_of(number) for number in numbers]
    return pd.DataFrame({
        "client": clients,
        "host": pd.Categorical.from_codes(np.zeros(len(calls), dtype="int8"), [host]),
        "phase": pd.Categorical.from_codes(calls["phase"].astype("int8"), list(phases)),
        "op": pd.Categorical.from_codes(
            np.array([ops.index(op) for op in OPS], dtype="int8")[calls["op"]], ops),
        "directory": calls["directory"],
        "started_s": calls["started"], "seconds": calls["seconds"], "ok": calls["errno"] == 0,
        "error": pd.Categorical(np.array(words, dtype=object)[
            np.searchsorted(numbers, calls["errno"])], categories=list(dict.fromkeys(words))),
    })


def word_of(number: int) -> str:
    """An errno's name."""
    if number == BLOCKED:
        return BLOCKED_WORD
    return errno.errorcode.get(int(number), f"errno {number}") if number else ""


def phases_of(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a phase that has rows, in their order."""
    found = []
    for phase, made in rows.groupby("phase", observed=True, sort=True):
        began, ended = made.started_s.min(), (made.started_s + made.seconds).max()
        counted = own(made, phase)
        found.append((phase, began, ended, len(counted), int((~made.ok).sum()),
                      counted.ok.sum() / (ended - began)))
    return pd.DataFrame(found, columns=["phase", "started_s", "ended_s", "operations", "errors",
                                        "rate_per_s"])


def own(rows: pd.DataFrame, phase: str) -> pd.DataFrame:
    """The operations that the phase is there for."""
    word = phase.rpartition("_")[2]
    return rows if word == "mixed" else rows[rows.op == OWN.get(word, word)]


def metrics_of(rows: pd.DataFrame, phases: pd.DataFrame, names, used, clients) -> dict:
    """`names`: all phases of the pattern; `used`: CPU seconds of each host's clients."""
    rates = dict(zip(phases.phase, phases.rate_per_s))
    found = {
        **{f"{phase}_per_s": rates.get(phase, math.nan) for phase in names},
        **{f"{phase}_p99_ms": _p99_ms(rows[rows.phase == phase], phase) for phase in names},
        **call_metrics(rows, used, clients), "clients_cpu_s": sum(used),
        "longest_s": rows.seconds.max(), "errors": (~rows.ok).sum(),
        "blocked": (rows.error == BLOCKED_WORD).sum(),
    }
    return {name: float(value) for name, value in found.items()}


def _p99_ms(made, phase: str) -> float:
    return float(own(made, phase).seconds.quantile(0.99)) * 1e3

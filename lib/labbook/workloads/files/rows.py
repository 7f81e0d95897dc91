"""Tables of metadata clients' calls and phases, and their metrics."""

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
# The operation that a phase is about, where it is not named after it.
OWN = {"delete": "unlink", "across": "rename", "reread": "stat"}


@dataclass(frozen=True)
class Load:
    """`rows`: client, host, phase, op, directory, started_s, seconds, ok, error.

    `op`: "create", "stat", "unlink", "rename", "readdir", "mkdir" or "rmdir"; `directory`: the
    number of the directory it is in; `error`: the errno's name ("ENOENT"), "blocked" for a call
    that did not return, "" else. `phases`: a row for each phase that began: phase, started_s,
    ended_s, operations and rate_per_s (of the operation that the phase is about, such as unlink of
    a delete; from its first call's start to its last one's end), errors. `metrics`: {phase}_per_s
    and {phase}_p99_ms of each phase (NaN for one that did not begin), longest_s, errors, blocked,
    truncated (1 when the time limit ended the load), clients_cpu_s, and those of `call_metrics` with
    phases, in µs. `started`: seconds since the epoch, by our clock, at which started_s is 0. `folder`: where
    the files are that were not deleted, below each path.
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
    names = [word_of(number) for number in numbers]
    return pd.DataFrame({
        "client": clients,
        "host": pd.Categorical.from_codes(np.zeros(len(calls), dtype="int8"), [host]),
        "phase": pd.Categorical.from_codes(calls["phase"].astype("int8"), list(phases)),
        "op": pd.Categorical.from_codes(
            np.array([ops.index(op) for op in OPS], dtype="int8")[calls["op"]], ops),
        "directory": calls["directory"],
        "started_s": calls["started"], "seconds": calls["seconds"], "ok": calls["errno"] == 0,
        "error": pd.Categorical(np.array(names, dtype=object)[
            np.searchsorted(numbers, calls["errno"])], categories=list(dict.fromkeys(names))),
    })


def word_of(number: int) -> str:
    """An errno's name."""
    if number == BLOCKED:
        return BLOCKED_WORD
    return errno.errorcode.get(int(number), f"errno {number}") if number else ""


def phases_of(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each phase that has rows, in order."""
    found = []
    for phase, made in rows.groupby("phase", observed=True, sort=True):
        began, ended = made.started_s.min(), (made.started_s + made.seconds).max()
        counted = own(made, phase)
        found.append((phase, began, ended, len(counted), int((~made.ok).sum()),
                      counted.ok.sum() / (ended - began)))
    return pd.DataFrame(found, columns=["phase", "started_s", "ended_s", "operations", "errors",
                                        "rate_per_s"])


def own(rows: pd.DataFrame, phase: str) -> pd.DataFrame:
    """The operations that the phase is about."""
    word = phase.rpartition("_")[2]
    return rows if word == "mixed" else rows[rows.op == OWN.get(word, word)]


def metrics_of(rows: pd.DataFrame, phases: pd.DataFrame, names, used, clients) -> dict:
    """`names`: all phases of the pattern; `used`: CPU seconds of each host's clients."""
    rates = dict(zip(phases.phase, phases.rate_per_s))
    found = {
        **{f"{phase}_per_s": rates.get(phase, math.nan) for phase in names},
        **{f"{phase}_p99_ms": _p99_ms(rows[rows.phase == phase], phase) for phase in names},
        **call_metrics(rows, used, clients, phase=rows.phase), "clients_cpu_s": sum(used),
        "longest_s": rows.seconds.max(), "errors": (~rows.ok).sum(),
        "blocked": (rows.error == BLOCKED_WORD).sum(),
    }
    return {name: value if isinstance(value, list) else float(value)
            for name, value in found.items()}


def _p99_ms(made, phase: str) -> float:
    """Of the successful calls, as the rates are."""
    return float(own(made[made.ok], phase).seconds.quantile(0.99)) * 1e3

"""Runs of the NAS kernels over places, and a message to and fro between two of them."""

import time
from dataclasses import dataclass
from math import nan

import pandas as pd

from labbook.errors import InputError
from labbook.workloads.machines.npb import mpirun, swap, upstream
from labbook.workloads.machines.npb.build import FOLDER

KERNELS = ("ep", "is", "cg", "mg", "ft")
SIZES = ("S", "W", "A", "B", "C")
MOST_RANKS = 64
# Names of the numbers that are verified, where they are few.
VALUES = {"ep": ("sum_x", "sum_y"), "cg": ("zeta", "residual"), "mg": ("norm",)}
LONG_ROUNDS = 50


@dataclass(frozen=True)
class Load:
    """`rows`: a row an iteration: iteration, started_s, seconds, ok (whether it came to the
    published values, of all iterations alike). `metrics`: verified (1 or 0), seconds (of the
    slowest rank, setting up not counted), mops (millions of operations a second, as NPB counts
    them), swapped_out_mb (by the kernels of all places meanwhile), these three NaN where the run is
    not verified; start_s (starting and setting up), error (the largest, relative; NaN where a number
    is none), and the values themselves where they are few. `started`: seconds since the epoch, by
    our clock.
    """

    rows: pd.DataFrame
    metrics: dict
    started: float


def npb(places, *, kernel: str, size: str, ranks: int, seconds_at_most: float,
        programs: str = "") -> Load:
    """Run one kernel over the places, `ranks` processes spread evenly: a power of two.

    The programs lie in `npb` below the places' folder, as `build` makes them; `programs` names the
    folder of an upstream build of NPB there, which is run instead, and whose lu, sp and bt are then
    kernels too. SystemFailure when it fails or is not done within `seconds_at_most`; a wrong result
    is no failure but verified = 0.
    """
    kernels = KERNELS + (upstream.MORE if programs else ())
    _check(kernel=(kernel, kernels), size=(size, SIZES))
    if not programs and (ranks & (ranks - 1) or not 1 <= ranks <= MOST_RANKS):
        raise InputError(f"{ranks!r} ranks", key="ranks", allowed=f"powers of two to {MOST_RANKS}")
    mpirun.check(places, ranks)
    if programs:
        command = upstream.command(places[0], programs, kernel, size, ranks)
    else:
        command = [places[0].program(FOLDER, kernel), size]
    what = f"{kernel} {size} of {ranks}"
    before, started, began = swap.out_mb(places), time.time(), time.monotonic()
    said = mpirun.run(places, ranks, command, seconds_at_most, what)
    wall, swapped = time.monotonic() - began, swap.out_mb(places) - before
    told = upstream.told(said, what) if programs else mpirun.told(said, what)
    rows, metrics = load(kernel, told, wall)
    return Load(rows, metrics | {"swapped_out_mb": swapped if metrics["verified"] else nan}, started)


def load(kernel: str, told: dict, wall_s: float) -> tuple[pd.DataFrame, dict]:
    """(rows, metrics) of what a kernel told; in how long it came to a wrong result is no metric."""
    seconds = pd.Series(told["iterations"], dtype=float)
    rows = pd.DataFrame({"iteration": range(1, len(seconds) + 1),
                         "started_s": seconds.cumsum() - seconds, "seconds": seconds,
                         "ok": bool(told["verified"])})
    error = told["error"]
    metrics = {**{name: told[name] if told["verified"] else nan for name in ("seconds", "mops")},
                "verified": int(told["verified"]), "error": nan if error is None else error,
                "start_s": max(0.0, wall_s - told["seconds"])}
    values = (nan if value is None else value for value in told["values"])
    return rows, metrics | dict(zip(VALUES.get(kernel, ()), values))


def latency(places, *, rounds: int = 1000, seconds_at_most: float = 60) -> Load:
    """A message to and fro between two processes: on two places, or both on the one given.

    metrics: latency_us (one way, a byte, the median), least_latency_us, p95_latency_us,
    bandwidth_mb_per_s (of messages of 1 MiB, the median). One row, of all rounds.
    """
    if len(places) not in (1, 2):
        raise InputError(f"{len(places)} places", key="places", allowed="1 or 2")
    if rounds < 1:
        raise InputError(f"{rounds!r} rounds", key="rounds", allowed="1 and more")
    command = [places[0].program(FOLDER, "pingpong"), str(rounds), str(min(rounds, LONG_ROUNDS))]
    started, began = time.time(), time.monotonic()
    said = mpirun.run(places, 2, command, seconds_at_most, "pingpong")
    told = mpirun.told(said, "pingpong")
    rows = pd.DataFrame([{"rounds": rounds, "started_s": 0.0, "seconds": time.monotonic() - began,
                          "ok": True}])
    return Load(rows, {key: told[key] for key in told if key.endswith(("_us", "_per_s"))}, started)


def _check(**given) -> None:
    for key, (value, allowed) in given.items():
        if value not in allowed:
            raise InputError(f"{value!r} is not allowed", key=key, allowed=allowed)

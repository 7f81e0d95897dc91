"""NAS Parallel Benchmarks: all eight in C and MPI, written from NAS-95-020, and how they are run.

Their sources lie in sources/npb. A user's build of NPB as NASA distributes it (`make suite` of its
MPI version) can be run instead.
"""

import re
import shlex
import time
from dataclasses import dataclass
from math import nan
from pathlib import Path, PurePosixPath

import pandas as pd

from labbook.errors import InputError, LabError, SystemFailure
from labbook.workloads.machines import compiled, mpirun
from labbook.workloads.machines.machine import run_on_all

KERNELS = ("ep", "is", "cg", "mg", "ft", "lu", "sp", "bt")
SIZES = ("S", "W", "A", "B", "C")
MOST_RANKS = 64
# Points along an axis, of kernels of which each process has so many planes or more.
PLANES = {"ft": 1, "lu": 2, "sp": 2, "bt": 2}
POINTS = {"ft": (64, 32, 128, 256, 512), "lu": (12, 33, 64, 102, 162), "sp": (12, 36, 64, 102, 162),
          "bt": (12, 24, 64, 102, 162)}
# Names of the verified values, of kernels that have few.
VALUES = {"ep": ("sum_x", "sum_y"), "cg": ("zeta", "residual"), "mg": ("norm",)}
LONG_ROUNDS = 50
PROGRAMS = (*KERNELS, "pingpong")
SOURCES = ("common.h", "fluid.h", "turned.h", *(f"{name}.c" for name in PROGRAMS))
FOLDER = "npb"
COMPILER = "mpicc"
# No -march=native: a guest's processor may be another one than the compiling host's.
# -rdynamic: so that Open MPI calls the programs' sched_yield, which sleeps (sources/npb/common.h).
FLAGS = ("-O3", "-std=gnu11", "-rdynamic")
PACKAGES = ("gcc", "libc6-dev", "libopenmpi-dev", "openmpi-bin")
NUMBER = r"\s*=\s*([-+0-9.eE]+)"
UPSTREAM_NUMBERS = {"seconds": re.compile("Time in seconds" + NUMBER),
                    "mops": re.compile("Mop/s total" + NUMBER)}
VERIFIED = re.compile(r"Verification\s*=\s*(\w+)")
SWAPPED_PAGES = "grep pswpout /proc/vmstat"
PAGE_BYTES = 4096       # of x86 and of most others


@dataclass(frozen=True)
class Load:
    """`rows`: a row an iteration of any run: iteration, started_s, seconds, ok (whether the results are the
    published ones: the same for all iterations). `metrics`: verified (1 or 0, of all runs); seconds (of the
    slowest rank, without set-up: the median of the runs), mops (millions of operations a second, as NPB counts
    them) and swapped_out_mb (by the kernels of all machines meanwhile), NaN when a run is not verified;
    runs (how many were timed); start_s (starting and set-up); error (the largest, relative; NaN when a value is
    no number); and the last run's verified values themselves, named in VALUES. `started`: seconds since the
    epoch, by our clock.
    """

    rows: pd.DataFrame
    metrics: dict
    started: float


def npb(machines, *, kernel: str, size: str, ranks: int, seconds_at_most: float,
        timed_s: float = 0.0, programs: str = "") -> Load:
    """Run one kernel over the machines, `ranks` processes spread evenly: a power of two.

    `timed_s`: it is run again, by the same processes, until the timed runs together last as long; a run may take
    less time than its processes take to start. An upstream build is run once.

    The programs lie in `npb` below the machines' folder, as `build` makes them; `programs`: the folder
    of an upstream build of NPB on the machines, which is run instead. SystemFailure when the run fails
    or does not end within `seconds_at_most`; a wrong result is no failure but verified = 0.
    """
    _check(kernel=(kernel, KERNELS), size=(size, SIZES))
    most = most_ranks(kernel, size)
    if not programs and (ranks & (ranks - 1) or not 1 <= ranks <= most):
        raise InputError(f"{ranks!r} ranks of {kernel} {size}", key="ranks", allowed=f"powers of two to {most}")
    mpirun.check(machines, ranks)
    if programs:
        command = upstream_command(machines[0], programs, kernel, size, ranks)
    else:
        command = [machines[0].program(FOLDER, kernel), size, *([f"{timed_s:g}"] if timed_s else [])]
    what = f"{kernel} {size} of {ranks}"
    before, started, began = swapped_out_mb(machines), time.time(), time.monotonic()
    output = mpirun.run(machines, ranks, command, seconds_at_most, what)
    wall, swapped = time.monotonic() - began, swapped_out_mb(machines) - before
    result = upstream_result(output, what) if programs else mpirun.parse(output, what)
    rows, metrics = load(kernel, result, wall)
    return Load(rows, metrics | {"swapped_out_mb": swapped if metrics["verified"] else nan}, started)


def most_ranks(kernel: str, size: str) -> int:
    """The largest number of processes of our own kernel, a power of two."""
    if kernel not in POINTS:
        return MOST_RANKS
    share = POINTS[kernel][SIZES.index(size)] // PLANES[kernel]
    return min(MOST_RANKS, 1 << share.bit_length() - 1)


def load(kernel: str, result: dict, wall_s: float) -> tuple[pd.DataFrame, dict]:
    """(rows, metrics) of a kernel's result; the time that a wrong result took is no metric."""
    seconds = pd.Series(result["iterations"], dtype=float)
    rows = pd.DataFrame({"iteration": range(1, len(seconds) + 1),
                         "started_s": seconds.cumsum() - seconds, "seconds": seconds,
                         "ok": bool(result["verified"])})
    error = result["error"]
    metrics = {**{name: result[name] if result["verified"] else nan for name in ("seconds", "mops")},
                "verified": int(result["verified"]), "error": nan if error is None else error,
                "runs": len(result["runs"]), "start_s": max(0.0, wall_s - sum(result["runs"]))}
    values = (nan if value is None else value for value in result["values"])
    return rows, metrics | dict(zip(VALUES.get(kernel, ()), values))


def latency(machines, *, rounds: int = 1000, seconds_at_most: float = 60) -> Load:
    """Time a message over TCP to and fro between two processes: on two machines, or both on one. Both wait in the
    kernel, not by Open MPI, which spins.

    metrics: latency_us (one way, a byte, the median), least_latency_us, p95_latency_us,
    bandwidth_mb_per_s (of messages of 1 MiB, the median). One row, of all rounds.
    """
    if len(machines) not in (1, 2):
        raise InputError(f"{len(machines)} machines", key="machines", allowed="1 or 2")
    if rounds < 1:
        raise InputError(f"{rounds!r} rounds", key="rounds", allowed="1 and more")
    last = machines[-1].data or machines[-1].address if len(machines) == 2 else "127.0.0.1"
    command = [machines[0].program(FOLDER, "pingpong"), last, str(rounds), str(min(rounds, LONG_ROUNDS))]
    started, began = time.time(), time.monotonic()
    output = mpirun.run(machines, 2, command, seconds_at_most, "pingpong")
    result = mpirun.parse(output, "pingpong")
    rows = pd.DataFrame([{"rounds": rounds, "started_s": 0.0, "seconds": time.monotonic() - began,
                          "ok": True}])
    return Load(rows, {key: result[key] for key in result if key.endswith(("_us", "_per_s"))}, started)


def _check(**given) -> None:
    for key, (value, allowed) in given.items():
        if value not in allowed:
            raise InputError(f"{value!r} is not allowed", key=key, allowed=allowed)


def build(host, folder=f"benchmarks/{FOLDER}", compiler: str = COMPILER) -> dict[str, str]:
    """{kernel: path of its program on the host}, and `pingpong`'s; compiled when they are not up to
    date."""
    here = Path(__file__).parent / "sources" / FOLDER
    return compiled.compiled(
        host, folder, [here / name for name in SOURCES],
        {name: [f"{name}.c", "-lm"] for name in PROGRAMS}, compiler=compiler, flags=FLAGS,
        packages=PACKAGES)


def facts(host, folder=f"benchmarks/{FOLDER}") -> dict:
    """The compiler's version line and its flags."""
    return compiled.facts_of(host, folder, FOLDER)


def upstream_command(machine, programs: str, kernel: str, size: str, ranks: int) -> list[str]:
    """The program in the folder: for any number of ranks (NPB 3.4), or built for this one (before)."""
    names = [str(PurePosixPath(programs) / f"{kernel}.{size}.{end}") for end in ("x", ranks)]
    tests = " || ".join(f"ls {shlex.quote(name)} 2> /dev/null" for name in names)
    found = machine.run(tests, check=False).stdout.split("\n")[0]
    if not found:
        raise LabError(f"{machine.name}: neither {names[0]} nor {names[1]} is there",
                       remedy=f"In NPB's folder: make {kernel} CLASS={size} NPROCS={ranks}")
    return [found]


def upstream_result(output: str, what: str) -> dict:
    """The fields of our own kernels' JSON, as far as NPB's report has them; its times are rounded to a
    hundredth of a second."""
    found = {name: pattern.search(output) for name, pattern in UPSTREAM_NUMBERS.items()}
    verified = VERIFIED.search(output)
    if not verified or not all(found.values()):
        raise SystemFailure(f"{what} printed no report", log=output[-2000:])
    seconds = float(found["seconds"][1])
    if seconds == 0:
        raise SystemFailure(f"{what} is too short for NPB's clock: take a larger size", log=output[-2000:])
    return {"seconds": seconds, "mops": float(found["mops"][1]), "error": None, "values": [],
            "verified": verified[1] == "SUCCESSFUL", "iterations": [seconds], "runs": [seconds]}


def swapped_out_mb(machines) -> float:
    """Megabytes that the machines have swapped out since they booted, summed."""
    return sum_mb(run_on_all(machines, SWAPPED_PAGES), len(machines))


def sum_mb(lines: list[str], machines: int) -> float:
    pages = [int(line.split()[1]) for line in lines if line.startswith("pswpout ")]
    if len(pages) != machines:
        raise LabError(f"only {len(pages)} of {machines} machines reported what they have swapped out")
    return sum(pages) * PAGE_BYTES / 1e6

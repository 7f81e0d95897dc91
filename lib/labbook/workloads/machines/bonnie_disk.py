"""bonnie++'s tests of a disk: sequential bytes and blocks, seeks, and files."""

import math
import shlex
import time
from contextlib import suppress
from dataclasses import dataclass

import pandas as pd

from labbook.errors import InputError, LabbookError, LabError, SystemFailure
from labbook.workloads.machines import bonnie_csv

PACKAGES = ("bonnie++",)
TIMES_MEMORY = 2        # bonnie++'s own rule: smaller files measure the page cache, not the disk
LEAST_MB = 16
# Its K/sec is KiB.
UNITS = {**{phase: "kib_per_s" for phase in bonnie_csv.BLOCKS}, "seeks": "per_s",
         **{phase: "per_s" for phase in bonnie_csv.FILES}}


@dataclass(frozen=True)
class Load:
    """`rows`: a row a phase: phase, unit, rate, cpu_percent. `metrics`: {phase}_kib_per_s (of
    put_c, put_block, rewrite, get_c, get_block; of 1024 bytes), seeks_per_s, {phase}_per_s (of
    sequential_create, _stat, _delete and random_ alike, where files were asked for),
    {phase}_cpu_percent of all, {phase}_kib_per_cpu (KiB/s for each CPU percent), and wall_s. NaN for
    what took less than half a second, which bonnie++ does not print, and for what took 0 % CPU.
    `csv`: its own line. `started`: seconds since the epoch, by our clock.
    """

    rows: pd.DataFrame
    metrics: dict
    csv: str
    started: float


def bonnie_disk(machine, path, *, size_mb: int, byte_mb: int, files: int = 0, direct: bool = False,
                seconds_at_most: float) -> Load:
    """Run bonnie++ in the folder `path` of the machine, which may be on a mount.

    size_mb: of the file written and read in blocks: twice the machine's memory or more, unless `direct`
    bypasses the page cache. byte_mb: of the file written and read byte by byte, which cannot bypass
    it; 0 leaves these tests out. bonnie++ 2.00 makes a system call for each byte (as counted), where
    its readme and earlier versions have C's putc() and getc(): its rates are of system calls. files:
    that many times 1024 empty files are created, looked up and deleted. SystemFailure when it fails or
    does not end in time; its files are removed then, if the machine still answers. It calls sync() now
    and then, which writes out all file systems of its machine.
    """
    _check(machine, size_mb, byte_mb, files, direct)
    if machine.run(f"test -x {bonnie_csv.PROGRAM}", check=False).exit_code:
        raise LabError(f"{machine.name}: no bonnie++ there", remedy=bonnie_csv.REMEDY)
    folder = shlex.quote(str(path))
    user = machine.run(f"mkdir -p {folder} && id -un").stdout.strip()
    command_line = command(str(path), size_mb, byte_mb, files, direct, "root" if user == "root" else "")
    started, began = time.time(), time.monotonic()
    try:
        output = machine.finish(f"bonnie-{machine.name}", f"LC_ALL=C {shlex.join(command_line)}",
                                seconds_at_most, f"bonnie++ in {path}")
    except BaseException:
        with suppress(LabbookError):  # the first error is the one to report
            machine.run(f"rm -rf {folder}/Bonnie.*")
        raise
    wall = time.monotonic() - began
    try:
        csv = bonnie_csv.line(output)
        rows = phases(csv, files)
    except ValueError as error:
        raise SystemFailure(f"{machine.name}: bonnie++ printed no rates: {error}", log=output[-2000:]) from None
    return Load(rows, metrics(rows) | {"wall_s": wall}, csv, started)


def command(folder: str, size_mb: int, byte_mb: int, files: int, direct: bool, user: str) -> list[str]:
    """bonnie++'s command line; `user`: it must be named when root runs it."""
    arguments = [bonnie_csv.PROGRAM, "-d", folder, "-s", str(size_mb), f"-f{byte_mb or ''}", "-n", str(files),
                 "-r", "0", "-m", "lab"]
    return arguments + (["-D"] if direct else []) + (["-u", user] if user else [])


def phases(csv: str, files: int) -> pd.DataFrame:
    """phase, unit, rate, cpu_percent: a row for each phase that was run; ValueError for a field that is
    no number."""
    labels = bonnie_csv.BLOCKS | (bonnie_csv.FILES if files else {})
    return pd.DataFrame([(phase, UNITS[phase], rate, cpu)
                         for phase, (rate, cpu) in bonnie_csv.numbers(csv, labels).items()],
                        columns=["phase", "unit", "rate", "cpu_percent"])


def metrics(rows: pd.DataFrame) -> dict[str, float]:
    """The rates and shares of a processor of all phases; NaN of those that were not run."""
    names = [f"{phase}_{name}" for phase, unit in UNITS.items() for name in (unit, "cpu_percent")]
    return {**dict.fromkeys(names, math.nan),
            **{f"{row.phase}_{row.unit}": row.rate for row in rows.itertuples()},
            **{f"{row.phase}_cpu_percent": row.cpu_percent for row in rows.itertuples()},
            **{f"{row.phase}_kib_per_cpu": row.rate / row.cpu_percent if row.cpu_percent else math.nan
               for row in rows.itertuples() if row.unit == "kib_per_s"}}


def memory_mb(machine) -> int:
    """How large the page cache may be: the lab host's memory limit if it has one, else its memory."""
    limit = (machine.via.limits or {}).get("memory") if machine.here else None
    if limit:
        return limit >> 20
    return int(machine.run("grep MemTotal: /proc/meminfo").stdout.split()[1]) >> 10


def _check(machine, size_mb, byte_mb, files, direct):
    if direct and byte_mb:  # direct I/O is in blocks, and bonnie++ would fail
        raise InputError(f"{byte_mb!r} MB byte by byte and direct", key="byte_mb", allowed="0 where direct")
    if size_mb < LEAST_MB or not 0 <= byte_mb <= size_mb:
        raise InputError(f"{size_mb!r} MB in blocks, {byte_mb!r} MB in bytes", key="size_mb, byte_mb",
                         allowed=f"{LEAST_MB} and more, and no more bytes than blocks")
    if files < 0:
        raise InputError(f"{files!r} times 1024 files", key="files", allowed="0 and more")
    if not direct and size_mb < TIMES_MEMORY * (memory := memory_mb(machine)):
        raise InputError(f"{size_mb!r} MB fit the page cache of {machine.name}, which has {memory} MB",
                         key="size_mb", allowed=f"{TIMES_MEMORY * memory} and more, or direct=True")

"""bonnie++'s test of metadata: empty files made, looked up and deleted, in order and in none."""

import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from labbook.errors import InputError, LabbookError, LabError, SystemFailure
from labbook.workloads.files import bonnie_text as bonnie_host
from labbook.workloads.machines import bonnie_csv

PROGRAM = Path(__file__).with_name("on_host") / "bonnie_progress.py"
NAME = "bonnie"


@dataclass(frozen=True)
class Load:
    """`rows`: a row a phase, in their order: phase ("sequential_create", "sequential_stat",
    "sequential_delete", and "random_" of each), started_s, seconds, files, told_per_s.

    `metrics`: {phase}_per_s, as bonnie++ tells it: NaN for a phase of less than half a second,
    which it does not tell; by_clock_{phase}_per_s of all phases, by what its progress says and our
    clock, the files' names made up and sync() included; seconds, from the first phase's begin to
    the last one's end; clients_cpu_s, of bonnie++ itself. `csv`: bonnie++'s own line. `started`: seconds since the epoch, by our
    clock, at which started_s is 0.
    """

    rows: pd.DataFrame
    metrics: dict
    csv: str
    started: float


def bonnie(host, path, *, directories: int, files: int = 1024, seconds_at_most: float,
           clock_offset_s: float = 0) -> Load:
    """Let bonnie++ on the host go through its phases in the folder `path`, which may be a mounted
    one: with `directories` of `files` empty files each, in all a multiple of 1024.

    clock_offset_s: how far the host's clock is ahead of ours. SystemFailure, with how far it came,
    when it fails or is not done within `seconds_at_most`; what it made is then left there, and on a
    mount that hangs also its process, until the mount ends. It has the kernel write out all file
    systems of the machine (sync) now and again.
    """
    if not bonnie_host.fits(directories, files):
        raise InputError(f"{directories!r} directories of {files!r} files", key="files",
                         allowed=f"in all a multiple of {bonnie_host.THOUSAND}")
    log = _run(host, str(path), directories, files, seconds_at_most)
    phases, last = bonnie_host.told(log)
    try:
        csv = bonnie_csv.line(last["printed"])
        found = bonnie_host.rates(csv)
    except (ValueError, TypeError) as error:
        raise SystemFailure(f"{host.name}: bonnie++ told no rates: {error}", log=log) from None
    rows = bonnie_host.rows(phases, found, directories * files)
    if list(rows.phase) != list(bonnie_csv.FILES):
        raise SystemFailure(f"{host.name}: bonnie++ went through other phases", log=log)
    began = float(rows.started_s.iloc[0])
    rows = rows.assign(started_s=rows.started_s - began)
    made = _metrics(rows) | {"clients_cpu_s": last["cpu_s"]}
    return Load(rows, made, csv, began - clock_offset_s)


def _metrics(rows) -> dict:
    last = rows.iloc[-1]
    return {**{f"{row.phase}_per_s": row.told_per_s for row in rows.itertuples()},
            **{f"by_clock_{row.phase}_per_s": row.files / row.seconds for row in rows.itertuples()},
            "seconds": float(last.started_s + last.seconds)}


def _run(host, path, directories, files, seconds) -> str:
    """Its progress and its last words."""
    if host.run(f"test -x {bonnie_csv.PROGRAM}", check=False).exit_code:
        raise LabError(f"{host.name}: no bonnie++ there", remedy=bonnie_csv.REMEDY)
    host.run(f"mkdir -p {NAME}")
    host.put(PROGRAM, host.root / NAME / PROGRAM.name)
    user = "root" if host.login.user == "root" else ""
    process = host.start(NAME, shlex.join(
        (host.python, "-I", "-S", f"{host.root}/{NAME}/{PROGRAM.name}",
         *bonnie_host.command(path, directories, files, user))), env={"LC_ALL": "C"})
    try:
        host.wait_for(lambda: not process.alive(), f"bonnie++ to end in {path}", seconds, process,
                      interval=0.1)
    except BaseException:
        with suppress(LabbookError):  # one that hangs ends with the mount
            process.kill()
        raise
    log = process.log_tail(1000)
    if process.exit_code() or (bonnie_host.told(log)[1] or {"exit": 1})["exit"]:
        raise SystemFailure(f"{host.name}: bonnie++ failed in {path}", log=log)
    return log

"""bonnie++'s test of metadata: create, stat and delete empty files, sequentially and at random."""

import json
import math
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from labbook.errors import InputError, LabbookError, LabError, SystemFailure
from labbook.workloads.machines import bonnie_csv

PROGRAM = Path(__file__).with_name("on_host") / "bonnie_progress.py"
NAME = "bonnie"
THOUSAND = 1024     # files: the unit of bonnie++'s counts
COLUMNS = ("phase", "started_s", "seconds", "files", "told_per_s")


@dataclass(frozen=True)
class Load:
    """`rows`: a row a phase, in their order: phase ("sequential_create", "sequential_stat",
    "sequential_delete", and "random_" of each), started_s, seconds, files, told_per_s.

    `metrics`: {phase}_per_s, as bonnie++ prints it: NaN for a phase of less than half a second, for
    which it prints none; by_clock_{phase}_per_s of all phases, by its progress and our clock, which
    includes making the files' names and sync(); seconds, from the first phase's begin to the last
    one's end; clients_cpu_s, of bonnie++ itself. `csv`: bonnie++'s own line. `started`: seconds
    since the epoch, by our clock, at which started_s is 0.
    """

    rows: pd.DataFrame
    metrics: dict
    csv: str
    started: float


def bonnie(host, path, *, directories: int, files: int = 1024, seconds_at_most: float,
           clock_offset_s: float = 0) -> Load:
    """Run bonnie++ on the host in the folder `path`, which may be on a mount: `directories` of
    `files` empty files each, in all a multiple of 1024.

    clock_offset_s: how far the host's clock is ahead of ours. SystemFailure, with its progress, when
    it fails or does not end within `seconds_at_most`; its files then stay there, and on a mount that
    hangs its process too, until the mount ends. It calls sync() now and then, which writes out all
    file systems of the machine.
    """
    if not fits(directories, files):
        raise InputError(f"{directories!r} directories of {files!r} files", key="files",
                         allowed=f"in all a multiple of {THOUSAND}")
    log = _run(host, str(path), directories, files, seconds_at_most)
    phases, last = parse_log(log)
    try:
        csv = bonnie_csv.line(last["printed"])
        found = parse_rates(csv)
    except (ValueError, TypeError) as error:
        raise SystemFailure(f"{host.name}: bonnie++ printed no rates: {error}", log=log) from None
    rows = phase_rows(phases, found, directories * files)
    if list(rows.phase) != list(bonnie_csv.FILES):
        raise SystemFailure(f"{host.name}: bonnie++ went through other phases", log=log)
    began = float(rows.started_s.iloc[0])
    rows = rows.assign(started_s=rows.started_s - began)
    made = _metrics(rows) | {"clients_cpu_s": last["cpu_s"]}
    return Load(rows, made, csv, began - clock_offset_s)


def _metrics(rows) -> dict:
    last = rows.iloc[-1]
    return {**{f"{row.phase}_per_s": row.told_per_s for row in rows.itertuples()},
            **{f"by_clock_{row.phase}_per_s": row.files / row.seconds if row.seconds else math.nan
               for row in rows.itertuples()},
            "seconds": float(last.started_s + last.seconds)}


def _run(host, path, directories, files, seconds) -> str:
    """bonnie_progress's log."""
    if host.run(f"test -x {bonnie_csv.PROGRAM}", check=False).exit_code:
        raise LabError(f"{host.name}: no bonnie++ there", remedy=bonnie_csv.REMEDY)
    host.run(f"mkdir -p {NAME}")
    host.put(PROGRAM, host.root / NAME / PROGRAM.name)
    user = "root" if host.login.user == "root" else ""
    process = host.start(NAME, shlex.join(
        (host.python, "-I", "-S", f"{host.root}/{NAME}/{PROGRAM.name}",
         *command(path, directories, files, user))), env={"LC_ALL": "C"})
    try:
        host.wait_for(lambda: not process.alive(), f"bonnie++ to end in {path}", seconds, process,
                      interval=0.1)
    except BaseException:
        with suppress(LabbookError):  # a process that hangs ends with the mount
            process.kill()
        raise
    log = process.log_tail(1000)
    if process.exit_code() or (parse_log(log)[1] or {"exit": 1})["exit"]:
        raise SystemFailure(f"{host.name}: bonnie++ failed in {path}", log=log)
    return log


def command(folder: str, directories: int, files: int, user: str = "") -> list[str]:
    """bonnie++'s command line; `user`: it must be named when root runs it."""
    thousands = directories * files // THOUSAND
    arguments = [bonnie_csv.PROGRAM, "-d", folder, "-s", "0", "-r", "0", "-m", "lab",
                 "-n", f"{thousands}:0:0:{directories}"]
    return [*arguments, "-u", user] if user else arguments


def fits(directories: int, files: int) -> bool:
    return directories >= 1 and files >= 1 and directories * files % THOUSAND == 0


def parse_rates(csv: str) -> dict[str, float]:
    """{phase: files a second} of bonnie++'s line; NaN where it was too fast to print a rate."""
    return {phase: rate for phase, (rate, _) in bonnie_csv.numbers(csv, bonnie_csv.FILES).items()}


def parse_log(log: str) -> tuple[list[dict], dict | None]:
    """(the phases that ended, the last line; None before the end) of bonnie_progress's log."""
    lines = []
    for line in log.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:  # another program's line, or an incomplete one
            continue
    return ([each for each in lines if "phase" in each],
            next((each for each in lines if "printed" in each), None))


def phase_rows(phases: list[dict], found: dict[str, float], files: int) -> pd.DataFrame:
    """COLUMNS, a row a phase; started_s by the host's clock, since the epoch."""
    return pd.DataFrame([(each["phase"], each["began_s"], each["ended_s"] - each["began_s"], files,
                          found[each["phase"]]) for each in phases], columns=list(COLUMNS))

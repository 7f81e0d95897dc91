"""What bonnie++ is told, and what it printed: pure text."""

import json

import pandas as pd

from labbook.workloads.machines import bonnie_csv

THOUSAND = 1024     # files, by which bonnie++ counts them
COLUMNS = ("phase", "started_s", "seconds", "files", "told_per_s")


def command(folder: str, directories: int, files: int, user: str = "") -> list[str]:
    """Its words for so many directories of so many empty files each; `user`: root must say it."""
    thousands = directories * files // THOUSAND
    words = [bonnie_csv.PROGRAM, "-d", folder, "-s", "0", "-r", "0", "-m", "lab",
             "-n", f"{thousands}:0:0:{directories}"]
    return [*words, "-u", user] if user else words


def fits(directories: int, files: int) -> bool:
    return directories >= 1 and files >= 1 and directories * files % THOUSAND == 0


def rates(csv: str) -> dict[str, float]:
    """{phase: files a second} as bonnie++ tells them; NaN where it was too fast for it to tell."""
    return {phase: rate for phase, (rate, _) in bonnie_csv.numbers(csv, bonnie_csv.FILES).items()}


def told(log: str) -> tuple[list[dict], dict | None]:
    """(the phases that ended, the last words) of bonnie_progress's log; None before the end."""
    lines = []
    for line in log.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:  # not its own, or cut short
            continue
    return ([each for each in lines if "phase" in each],
            next((each for each in lines if "printed" in each), None))


def rows(phases: list[dict], found: dict[str, float], files: int) -> pd.DataFrame:
    """COLUMNS, a row a phase; started_s by the host's clock, since the epoch."""
    return pd.DataFrame([(each["phase"], each["began_s"], each["ended_s"] - each["began_s"], files,
                          found[each["phase"]]) for each in phases], columns=list(COLUMNS))

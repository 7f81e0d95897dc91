"""What bonnie++ is told, and what it printed: pure text."""

import json
import math

import pandas as pd

THOUSAND = 1024     # files, by which bonnie++ counts them
# Where a line of its format 1.98 (of bonnie++ 2.00) has the rate of each phase; the processor's
# share of it is the field after.
FORMAT = "1.98"
FIELD = {"sequential_create": 26, "sequential_stat": 28, "sequential_delete": 30,
         "random_create": 32, "random_stat": 34, "random_delete": 36}
DIRECTORIES, FILES = 24, 21
TOO_FAST = "+++++"  # a phase of less than half a second
COLUMNS = ("phase", "started_s", "seconds", "files", "told_per_s")


PROGRAM = "/usr/sbin/bonnie++"  # not in the path of everybody who logs in


def command(folder: str, directories: int, files: int, user: str = "") -> list[str]:
    """Its words for so many directories of so many empty files each; `user`: root must say it."""
    thousands = directories * files // THOUSAND
    words = [PROGRAM, "-d", folder, "-s", "0", "-r", "0", "-m", "lab",
             "-n", f"{thousands}:0:0:{directories}"]
    return [*words, "-u", user] if user else words


def fits(directories: int, files: int) -> bool:
    return directories >= 1 and files >= 1 and directories * files % THOUSAND == 0


def line(printed: str) -> str:
    """The CSV line among what it printed; ValueError when there is none of the known format."""
    found = [line for line in printed.splitlines() if line.startswith(f"{FORMAT},")]
    if len(found) != 1 or len(found[0].split(",")) <= max(FIELD.values()):
        raise ValueError(f"no line of its format {FORMAT}")
    return found[0]


def rates(csv: str) -> dict[str, float]:
    """{phase: files a second} as bonnie++ tells them; NaN where it was too fast for it to tell."""
    fields = csv.split(",")
    return {phase: _rate(fields[field]) for phase, field in FIELD.items()}


def _rate(word: str) -> float:
    return math.nan if word in ("", TOO_FAST) else float(word)


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

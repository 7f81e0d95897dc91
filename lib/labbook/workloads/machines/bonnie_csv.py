"""bonnie++, and the line of numbers that it ends with, as bon_csv2html(1) tells its fields. Pure text."""

import math

PROGRAM = "/usr/sbin/bonnie++"      # not in the path of everybody who logs in
REMEDY = "Type: apt-get install bonnie++; in the study's lab.yml name it: needs: {packages: [bonnie++]}"
FORMAT = "1.98"         # of bonnie++ 2.00
TOO_FAST = "+"          # it fills with these what took less than half a second
# Where each phase's rate is; the processor's share of it, in percent, is the field after.
BLOCKS = {"put_c": 9, "put_block": 11, "rewrite": 13, "get_c": 15, "get_block": 17, "seeks": 19}
FILES = {"sequential_create": 26, "sequential_stat": 28, "sequential_delete": 30,
         "random_create": 32, "random_stat": 34, "random_delete": 36}
FIELDS = 50


def line(printed: str) -> str:
    """The line among what it printed; ValueError when there is none of the known format, or more."""
    found = [each for each in printed.splitlines() if each.startswith(f"{FORMAT},")]
    if len(found) != 1 or len(found[0].split(",")) != FIELDS:
        raise ValueError(f"no line of its format {FORMAT}")
    return found[0]


def numbers(csv: str, phases: dict[str, int]) -> dict[str, tuple[float, float]]:
    """{phase: (rate, percent of the processor)}; NaN where it was not asked, or too fast to tell."""
    fields = csv.split(",")
    return {phase: (_number(fields[at]), _number(fields[at + 1])) for phase, at in phases.items()}


def _number(word: str) -> float:
    return math.nan if not word.strip(TOO_FAST) else float(word)

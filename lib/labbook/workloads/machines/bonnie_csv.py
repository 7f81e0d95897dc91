"""bonnie++'s output: the line of CSV at its end, whose fields bon_csv2html(1) describes. Pure text."""

import math

PROGRAM = "/usr/sbin/bonnie++"      # not in every user's PATH
REMEDY = "Type: apt-get install bonnie++; in the study's lab.yml name it: needs: {packages: [bonnie++]}"
FORMAT = "1.98"         # of bonnie++ 2.00
TOO_FAST = "+"          # stands for what took less than half a second
# The field of each phase's rate; the next field is its CPU percentage.
BLOCKS = {"put_c": 9, "put_block": 11, "rewrite": 13, "get_c": 15, "get_block": 17, "seeks": 19}
FILES = {"sequential_create": 26, "sequential_stat": 28, "sequential_delete": 30,
         "random_create": 32, "random_stat": 34, "random_delete": 36}
FIELDS = 50


def line(printed: str) -> str:
    """The line of CSV in the output; ValueError unless there is exactly one of the known format."""
    found = [each for each in printed.splitlines() if each.startswith(f"{FORMAT},")]
    if len(found) != 1 or len(found[0].split(",")) != FIELDS:
        raise ValueError(f"no line of its format {FORMAT}")
    return found[0]


def numbers(csv: str, phases: dict[str, int]) -> dict[str, tuple[float, float]]:
    """{phase: (rate, CPU percentage)}; NaN where it was not run, or too fast to be measured."""
    fields = csv.split(",")
    return {phase: (_number(fields[at]), _number(fields[at + 1])) for phase, at in phases.items()}


def _number(word: str) -> float:
    return math.nan if not word.strip(TOO_FAST) else float(word)

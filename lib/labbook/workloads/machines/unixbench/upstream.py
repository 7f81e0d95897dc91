"""UnixBench itself, where a user has a copy of it: run, and its report read."""

import re
import shlex

from labbook.errors import SystemFailure
from labbook.workloads.machines.unixbench.scores import TESTS, UPSTREAM

NUMBER = r"\s+([0-9]+(?:\.[0-9]+)?)"


def command(folder: str, copies: int, passes: int) -> str:
    return f"cd {shlex.quote(folder)} && ./Run -c {copies} -i {passes}"


def scores(said: str) -> dict[str, float]:
    """{test's name: its result} of the table of indices at the report's end.

    SystemFailure when a test is missing there, and when there are tables of several runs.
    """
    found = {}
    for test in TESTS:
        lines = re.findall(rf"^{re.escape(test.title)}{NUMBER}{NUMBER}{NUMBER}\s*$", said, re.M)
        if len(lines) != 1:
            raise SystemFailure(f"{UPSTREAM}'s report has {len(lines)} results of {test.title}",
                                log=said[-2000:])
        found[test.name] = float(lines[0][1])
    return found

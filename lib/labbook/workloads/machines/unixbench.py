"""Twelve tests by the published definitions of UnixBench 5, in C of our own, and how they are run
and scored.

Their sources lie in sources/unixbench. A user's copy of UnixBench itself can be run instead.
"""

import json
import re
import shlex
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from labbook.errors import InputError, SystemFailure
from labbook.workloads.machines import compiled

STYLE = "UnixBench-style"
UPSTREAM = "UnixBench"
RATED = 10              # the index of the baseline, a SPARCstation 20-61 of 1995
MINUTE = 60
SOURCES = ("main.c", "dhrystone.c", "whetstone.c", "kernel_calls.c", "shell.c")
OTHER_FILES = ("bench.h", "script.sh")
PROGRAM = "unixbench_style"
FOLDER = "unixbench"
COMPILER = "gcc"
FLAGS = ("-O2", "-std=gnu11")
PACKAGES = ("gcc", "libc6-dev")
MOST_COPIES, MOST_PASSES = 64, 10
OTHER_SECONDS = 300     # for what is not measured: files, the scripts' last rounds on emulated guests
SLOWDOWN = 1.5          # how much longer than their nominal time all tests may take
COLUMNS = ["test", "number", "score", "took_s"]
NUMBER = r"\s+([0-9]+(?:\.[0-9]+)?)"


@dataclass(frozen=True)
class Test:
    """`title`: UnixBench's name for it; `often`: ten passes by default, else three; `seconds`: of a
    pass; `baseline`: the score with index 10, in `unit`."""

    name: str
    title: str
    unit: str
    baseline: float
    seconds: float
    often: bool

    __test__ = False    # no test of pytest's

    @property
    def metric(self) -> str:
        return f"{self.name}_{self.unit.lower()}"

    def passes(self, passes: int) -> int:
        """How many passes, of `passes` of the frequent tests: UnixBench's rule, three to ten."""
        return passes if self.often else max(1, (passes + 1) // 3)

    def rate(self, result: dict) -> float:
        """All copies' rates in a pass, summed, in the test's unit."""
        per_second = sum(n / s for n, s in zip(result["counts"], result["took_s"]))
        return per_second * (MINUTE if self.unit == "lpm" else 1)


# Baselines: UnixBench 5's table, also in table 8 of the report (which has 42 for shell_1). Times and
# passes are UnixBench's own.
TESTS = (
    Test("dhrystone", "Dhrystone 2 using register variables", "lps", 116700, 10, True),
    Test("whetstone", "Double-Precision Whetstone", "MWIPS", 55, 10, True),
    Test("execl", "Execl Throughput", "lps", 43, 30, False),
    Test("copy_1024", "File Copy 1024 bufsize 2000 maxblocks", "KBps", 3960, 30, False),
    Test("copy_256", "File Copy 256 bufsize 500 maxblocks", "KBps", 1655, 30, False),
    Test("copy_4096", "File Copy 4096 bufsize 8000 maxblocks", "KBps", 5800, 30, False),
    Test("pipe", "Pipe Throughput", "lps", 12440, 10, True),
    Test("context", "Pipe-based Context Switching", "lps", 4000, 10, True),
    Test("spawn", "Process Creation", "lps", 126, 30, False),
    Test("shell_1", "Shell Scripts (1 concurrent)", "lpm", 42.4, 60, False),
    Test("shell_8", "Shell Scripts (8 concurrent)", "lpm", 6, 60, False),
    Test("syscall", "System Call Overhead", "lps", 15000, 10, True))


@dataclass(frozen=True)
class Load:
    """`rows`: a row a pass: test, number, score (in the test's unit), took_s. `metrics`: the
    scores as NAME_UNIT (dhrystone_lps, whetstone_mwips, copy_1024_kbps, shell_1_lpm, ...), each
    test's NAME_index, `index` of all, and `suite`, by which it must be named wherever it is shown.
    `started`: seconds since the epoch, by our clock.
    """

    rows: pd.DataFrame
    metrics: dict
    started: float


def unixbench_style(machine, *, copies: int, passes: int = 10, share_of_time: float = 1.0,
                    programs: str = "") -> Load:
    """Run the twelve tests, `copies` of each at a time.

    passes: of the short tests; the long ones have three tenths. share_of_time: of the 10 to 60 s of
    each pass. The program lies in `unixbench` below the machine's folder, as `build` makes it;
    `programs`: the folder of an upstream UnixBench on the machine, which is run instead, in its own
    time. SystemFailure when a test fails or the suite takes half as long again as it should.
    """
    _check(copies, passes, share_of_time, programs)
    started = time.time()
    if programs:
        output = machine.finish(f"unixbench-{machine.name}",
                                upstream_command(programs, copies, passes), seconds(passes, 1), UPSTREAM)
        scores, rows = upstream_scores(output), []
    else:
        output = machine.finish(f"unixbench-{machine.name}",
                                command(machine.program(FOLDER, PROGRAM), copies, passes, share_of_time),
                                seconds(passes, share_of_time), STYLE)
        rows = passes_of(output, passes)
        scores = {test.name: score([row["score"] for row in rows if row["test"] == test.name])
                  for test in TESTS}
    rows = pd.DataFrame(rows, columns=COLUMNS)
    return Load(rows, metrics(scores) | {"suite": UPSTREAM if programs else STYLE}, started)


def one_pass(machine, test: Test, *, copies: int, share_of_time: float) -> dict:
    """A row of `Load.rows`: one pass of one test, in seconds; for machines that are tested in turn. See
    `unixbench_style`."""
    _check(copies, 1, share_of_time, "")
    line = shlex.join([str(PurePosixPath(machine.folder) / FOLDER / PROGRAM), test.name,
                       f"{test.seconds * share_of_time:g}", str(copies)])
    scratch = str(PurePosixPath(machine.folder) / FOLDER / "scratch")
    output = machine.run(f"export LC_ALL=C; mkdir -p {scratch} && cd {scratch} && {line}",
                         timeout=OTHER_SECONDS + SLOWDOWN * test.seconds).stdout
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemFailure(f"{STYLE}: no pass of {test.name}", log=output[-2000:])
    return _row(test, 0, json.loads(lines[-1]))


def load_of(rows: list[dict], started: float) -> Load:
    """The Load of one pass of each test."""
    scores = {row["test"]: row["score"] for row in rows}
    return Load(pd.DataFrame(rows, columns=COLUMNS), metrics(scores) | {"suite": STYLE}, started)


def command(program: str, copies: int, passes: int, share: float) -> str:
    """The shell command: every test's passes, in a scratch folder that is removed afterwards. The
    locale is the same on all machines, since sort's decides how long the scripts take."""
    scratch = shlex.quote(str(PurePosixPath(program).with_name("scratch")))
    program = shlex.quote(program)
    runs = [f"{program} {test.name} {test.seconds * share:g} {copies}"
            for test in TESTS for _ in range(test.passes(passes))]
    return (f"export LC_ALL=C; rm -rf {scratch}; mkdir -p {scratch} && cd {scratch} && "
            + " && ".join(runs) + f" && cd / && rm -rf {scratch}")


def seconds(passes: int, share: float) -> float:
    """How long the suite may take."""
    return OTHER_SECONDS + SLOWDOWN * share * sum(t.seconds * t.passes(passes) for t in TESTS)


def passes_of(output: str, passes: int) -> list[dict]:
    """A row a pass; SystemFailure when some are missing."""
    results = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    rows = []
    for test in TESTS:
        mine = [each for each in results if each["test"] == test.name]
        if len(mine) != test.passes(passes):
            raise SystemFailure(f"{STYLE}: {len(mine)} passes of {test.name}", log=output[-2000:])
        rows += [_row(test, number, each) for number, each in enumerate(mine)]
    return rows


def _row(test, number, result) -> dict:
    return {"test": test.name, "number": number, "score": test.rate(result), "took_s": max(result["took_s"])}


def _check(copies, passes, share, programs):
    if not 1 <= copies <= MOST_COPIES:
        raise InputError(f"{copies!r} copies", key="copies", allowed=f"1 to {MOST_COPIES}")
    if not 1 <= passes <= MOST_PASSES:
        raise InputError(f"{passes!r} passes", key="passes", allowed=f"1 to {MOST_PASSES}")
    if not 0.001 <= share <= 1 or (programs and share != 1):
        raise InputError(f"{share!r} of the tests' time", key="share_of_time",
                         allowed="1, since UnixBench takes its own" if programs else "0.001 to 1")


def score(passes) -> float:
    """The geometric mean of the passes without the worst third."""
    best_first = sorted(passes, reverse=True)
    return geometric_mean(best_first[:len(best_first) - len(best_first) // 3])


def metrics(scores: dict[str, float]) -> dict[str, float]:
    """{test.metric: score, NAME_index, and index, of all}; `scores` by the tests' names."""
    indices = {test.name: scores[test.name] / test.baseline * RATED for test in TESTS}
    return {**{test.metric: scores[test.name] for test in TESTS},
            **{f"{name}_index": index for name, index in indices.items()},
            "index": geometric_mean(list(indices.values()))}


def geometric_mean(values) -> float:
    """0 when one of the values is."""
    values = np.asarray(values, dtype=float)
    return float(np.exp(np.log(values).mean())) if (values > 0).all() else 0.0


def build(host, folder=f"benchmarks/{FOLDER}", compiler: str = COMPILER) -> str:
    """Path of the program on the host, beside its script; compiled when it is not up to date."""
    here = Path(__file__).parent / "sources" / FOLDER
    made = compiled.compiled(
        host, folder, [here / name for name in SOURCES + OTHER_FILES],
        {PROGRAM: [*SOURCES, "-lm"]}, compiler=compiler, flags=FLAGS, packages=PACKAGES)
    return str(PurePosixPath(made[PROGRAM]))


def facts(host, folder=f"benchmarks/{FOLDER}") -> dict:
    """The compiler's version line and its flags."""
    return compiled.facts_of(host, folder, FOLDER)


def upstream_command(folder: str, copies: int, passes: int) -> str:
    return f"cd {shlex.quote(folder)} && ./Run -c {copies} -i {passes}"


def upstream_scores(output: str) -> dict[str, float]:
    """{test's name: its result} of the table of indices at the report's end.

    SystemFailure when a test is missing there, and when there are tables of several runs.
    """
    found = {}
    for test in TESTS:
        lines = re.findall(rf"^{re.escape(test.title)}{NUMBER}{NUMBER}{NUMBER}\s*$", output, re.M)
        if len(lines) != 1:
            raise SystemFailure(f"{UPSTREAM}'s report has {len(lines)} results of {test.title}",
                                log=output[-2000:])
        found[test.name] = float(lines[0][1])
    return found

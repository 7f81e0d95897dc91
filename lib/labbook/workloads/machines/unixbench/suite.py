"""All twelve tests in a place, one after the other, some copies of each at a time."""

import json
import shlex
import time
from dataclasses import dataclass
from pathlib import PurePosixPath

import pandas as pd

from labbook.errors import InputError, SystemFailure
from labbook.workloads.machines.unixbench import upstream
from labbook.workloads.machines.unixbench.build import FOLDER, PROGRAM
from labbook.workloads.machines.unixbench.scores import STYLE, TESTS, UPSTREAM, metrics, score

MOST_COPIES, MOST_PASSES = 64, 10
BESIDE_SECONDS = 300    # of what is not measured: files, the scripts' last rounds (of emulated guests)
SLOWER = 1.5            # than its time a test may be at most, in the whole


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


def unixbench_style(place, *, copies: int, passes: int = 10, share_of_time: float = 1.0,
                    programs: str = "") -> Load:
    """Run the twelve tests, `copies` of each at a time.

    passes: of the short tests; of the long ones three tenths. share_of_time: of the 10 to 60 s of
    each. The program lies in `unixbench` below the place's folder, as `build` makes it; `programs`
    names the folder of an upstream UnixBench there, which is run instead, in its own time.
    SystemFailure when a test fails or all of it takes half as long again as it should.
    """
    _check(copies, passes, share_of_time, programs)
    started = time.time()
    if programs:
        said = place.finish(f"unixbench-{place.name}", upstream.command(programs, copies, passes),
                            seconds(passes, 1), UPSTREAM)
        scores, rows = upstream.scores(said), []
    else:
        said = place.finish(f"unixbench-{place.name}",
                            command(place.program(FOLDER, PROGRAM), copies, passes, share_of_time),
                            seconds(passes, share_of_time), STYLE)
        rows = passed(said, passes)
        scores = {test.name: score([row["score"] for row in rows if row["test"] == test.name])
                  for test in TESTS}
    rows = pd.DataFrame(rows, columns=["test", "number", "score", "took_s"])
    return Load(rows, metrics(scores) | {"suite": UPSTREAM if programs else STYLE}, started)


def command(program: str, copies: int, passes: int, share: float) -> str:
    """The shell's words: every test's passes, in a scratch folder that is gone afterwards. Places have
    one language, since that of sort decides how long the scripts take."""
    scratch = shlex.quote(str(PurePosixPath(program).with_name("scratch")))
    program = shlex.quote(program)
    runs = [f"{program} {test.name} {test.seconds * share:g} {copies}"
            for test in TESTS for _ in range(test.passes(passes))]
    return (f"export LC_ALL=C; rm -rf {scratch}; mkdir -p {scratch} && cd {scratch} && "
            + " && ".join(runs) + f" && cd / && rm -rf {scratch}")


def seconds(passes: int, share: float) -> float:
    """How long all of it may take."""
    return BESIDE_SECONDS + SLOWER * share * sum(t.seconds * t.passes(passes) for t in TESTS)


def passed(said: str, passes: int) -> list[dict]:
    """A row a pass; SystemFailure when some are missing."""
    told = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    rows = []
    for test in TESTS:
        mine = [each for each in told if each["test"] == test.name]
        if len(mine) != test.passes(passes):
            raise SystemFailure(f"{STYLE}: {len(mine)} passes of {test.name}", log=said[-2000:])
        rows += [{"test": test.name, "number": number, "score": test.rate(each),
                  "took_s": max(each["took_s"])} for number, each in enumerate(mine)]
    return rows


def _check(copies, passes, share, programs):
    if not 1 <= copies <= MOST_COPIES:
        raise InputError(f"{copies!r} copies", key="copies", allowed=f"1 to {MOST_COPIES}")
    if not 1 <= passes <= MOST_PASSES:
        raise InputError(f"{passes!r} passes", key="passes", allowed=f"1 to {MOST_PASSES}")
    if not 0.001 <= share <= 1 or (programs and share != 1):
        raise InputError(f"{share!r} of the tests' time", key="share_of_time",
                         allowed="1, since UnixBench takes its own" if programs else "0.001 to 1")

"""What a seek costs on a disk: random reads beside sequential ones, measured by fio. Pure text.

The study's verdicts that need a disk that seeks depend on it: a ratio near 1 says that it does not.
"""

import json
import shlex
from statistics import mean

from labbook.errors import LabError

BLOCK_BYTES = 128 << 10     # the kernel's usual read-ahead
ROUNDS = 2                  # of each kind, in turns, so that a slow moment does not hit one alone
MEBIBYTE = 1 << 20
LEAST_BYTES, MOST_BYTES = 64 * MEBIBYTE, 1024 * MEBIBYTE
KINDS = {"sequential": "read", "random": "randread"}


def size_bytes(free_bytes: int) -> int:
    """Of the file that is read: large, so that the seeks are long, but half of what is free at most."""
    size = min(MOST_BYTES, free_bytes // 2) // MEBIBYTE * MEBIBYTE
    if size < LEAST_BYTES:
        raise LabError(f"{free_bytes / 1e6:.0f} MB are free, and {2 * LEAST_BYTES / 1e6:.0f} MB are "
                       "needed to find out what a seek costs", remedy="Give the host a larger disk")
    return size


def command(file: str, size: int, seconds: float) -> str:
    """fio's command line: the file is written, then read for `seconds` in all, one read at a time."""
    each_ms = max(1, round(seconds * 1000 / (ROUNDS * len(KINDS))))
    words = ["fio", "--output-format=json", f"--filename={file}", f"--size={size}", "--direct=1",
             "--ioengine=psync", "--name=layout", "--rw=write", f"--bs={MEBIBYTE}", "--end_fsync=1"]
    for number in range(ROUNDS):
        for kind, way in KINDS.items():
            words += [f"--name={kind}-{number}", "--stonewall", f"--rw={way}",
                      f"--bs={BLOCK_BYTES}", "--norandommap", f"--randseed={number + 1}",
                      "--time_based", f"--runtime={each_ms}ms"]
    return shlex.join(words)


def result(said: str) -> dict:
    """sequential_ms, random_ms (of one read, the mean), ratio, and the `ratios` of the rounds.

    LabError when fio did not read.
    """
    try:
        jobs = {job["jobname"]: job for job in json.loads(said[said.index("{"):])["jobs"]}
        times = {kind: [jobs[f"{kind}-{i}"]["read"]["lat_ns"]["mean"] / 1e6 for i in range(ROUNDS)]
                 for kind in KINDS}
    except (ValueError, KeyError, TypeError):
        raise LabError(f"fio gave no times: {said.strip()[-300:] or 'nothing'}") from None
    if not all(value > 0 for values in times.values() for value in values):
        raise LabError("fio read nothing: the disk is slower than the time it was given")
    sequential, random = mean(times["sequential"]), mean(times["random"])
    return {"sequential_ms": sequential, "random_ms": random, "ratio": random / sequential,
            "ratios": [r / s for s, r in zip(times["sequential"], times["random"])]}

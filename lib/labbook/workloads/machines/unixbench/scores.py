"""The twelve tests, and how their passes become scores and an index: as UnixBench 5 defines it."""

from dataclasses import dataclass

import numpy as np

STYLE = "UnixBench-style"
UPSTREAM = "UnixBench"
RATED = 10              # the index of the baseline, a SPARCstation 20-61 of 1995
MINUTE = 60


@dataclass(frozen=True)
class Test:
    """`title` is UnixBench's name for it; `often`: of ten passes, else of three."""

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
        """Three where the frequent ones have ten, and never none: as UnixBench divides them."""
        return passes if self.often else max(1, (passes + 1) // 3)

    def rate(self, told: dict) -> float:
        """Of what all copies told of a pass, together, in the test's unit."""
        per_second = sum(n / s for n, s in zip(told["counts"], told["took_s"]))
        return per_second * (MINUTE if self.unit == "lpm" else 1)


# Baselines: UnixBench 5's table, as also the report's table 8 prints it (which gives the last but
# one as 42). Times and passes are UnixBench's own.
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
    """0 when one of them is."""
    values = np.asarray(values, dtype=float)
    return float(np.exp(np.log(values).mean())) if (values > 0).all() else 0.0

"""CPU of processes on client hosts through time, so that each phase of a load has a share of its own."""

import math
import shlex
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np

from labbook.errors import LabbookError
from labbook.lab.clock import ahead_s

PROGRAM = Path(__file__).with_name("on_host") / "cpu_samples.py"
SAMPLER = "cpu_samples"     # name of the process, and of its folder on a host
BETWEEN_S = 0.1
END_SECONDS = 5


class CpuWatch:
    """Samples of the CPU time of processes, from the start of the block to its end.

    Processes that start later are not counted.
    """

    def __init__(self, processes, between_s: float = BETWEEN_S):
        self._between_s, self._samples, self._hosts = between_s, [], {}
        for process in processes:
            self._hosts.setdefault(process.host.name, (process.host, []))[1].append(process)

    def __enter__(self) -> "CpuWatch":
        with ExitStack() as ends:       # those that were started end where one cannot be
            for host, processes in self._hosts.values():
                ends.callback(self._end, host)
                host.run(f"mkdir -p {SAMPLER}")
                host.put(PROGRAM, f"{SAMPLER}/{PROGRAM.name}")
                host.start(SAMPLER, shlex.join((
                    host.python, "-I", "-S", f"{host.root}/{SAMPLER}/{PROGRAM.name}", f"{host.root}/{SAMPLER}/samples",
                    str(self._between_s), *(str(process.pid) for process in processes))))
            ends.pop_all()
        return self

    def __exit__(self, kind, *_):
        errors = [error for host, _ in self._hosts.values() if (error := self._end(host))]
        if errors and kind is None:     # the first error is the one to report
            raise errors[0]

    def _end(self, host) -> LabbookError | None:
        """Stop the host's sampler, if it was started, and take its samples; the error, if that failed."""
        try:
            if (sampler := host.process(SAMPLER)) is None:
                return None
            sampler.stop(END_SECONDS)
            self._samples.append(samples(host.get(f"{SAMPLER}/samples").decode(), ahead_s(host)))
        except LabbookError as error:
            return error
        finally:
            with suppress(LabbookError):
                host.run(f"rm -rf {SAMPLER}")

    def used(self, from_s: float, to_s: float) -> float:
        """CPU seconds between two times (epoch, the driver's clock), all hosts together; NaN without samples."""
        return used(self._samples, from_s, to_s)


def samples(text: str, ahead_s: float) -> np.ndarray:
    """An array of (epoch seconds by the driver's clock, CPU seconds); an incomplete last line is dropped."""
    whole = text[:text.rfind("\n") + 1]
    return np.array([line.split() for line in whole.splitlines()], dtype=float).reshape(-1, 2) - [ahead_s, 0]


def used(of_hosts, from_s: float, to_s: float) -> float:
    """The growth between two times of the sum of these samples, interpolated."""
    if not of_hosts or not all(len(each) for each in of_hosts):
        return math.nan
    return float(sum(np.diff(np.interp([from_s, to_s], each[:, 0], each[:, 1]))[0] for each in of_hosts))

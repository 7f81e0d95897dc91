"""What a user sees of a fleet at work: which machine measures what, and how long it still takes."""

import os
import re
import shutil
import sys
import time

from labbook.pipeline.executing.driver import Unbroken
from labbook.pipeline.executing.progress import LINE_EVERY_S, duration
from labbook.pipeline.fleet.simulated import simulate

NOW_S = 1.0         # between two states of the line on a terminal
LEFT_EVERY_S = 5.0  # between two simulations of what is left, which take long for many jobs


class Shown:
    """Lines about events, and the state: a line that is redrawn on a terminal, elsewhere one a minute."""

    def __init__(self, stream=None, clock=time.monotonic):
        self.stream, self._clock = stream or Unbroken(sys.stderr), clock
        self.live = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self._last, self._left = clock(), None

    def say(self, line: str) -> None:
        print(f"{self._cleared()}fleet: {line}", file=self.stream, flush=True)

    def show(self, pool) -> None:
        """The state, if it is time for it."""
        now = self._clock()
        if now - self._last < (NOW_S if self.live else LINE_EVERY_S):
            return
        self._last = now
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write(self._cleared() + state(pool, self.left_s(pool))[:width])
            self.stream.flush()
        else:
            lines = [f"fleet: {state(pool, self.left_s(pool))}", *(f"  {line}" for line in machines(pool))]
            print("\n".join(lines), file=self.stream, flush=True)

    def left_s(self, pool) -> float | None:
        """As the function left_s, of some seconds ago at most."""
        now = self._clock()
        if self._left is None or now - self._left[0] >= LEFT_EVERY_S:
            self._left = now, left_s(pool)
        return self._left[1]

    def end(self) -> None:
        self.stream.write(self._cleared())

    def _cleared(self) -> str:
        return "\r\033[K" if self.live else ""


def state(pool, seconds: float | None) -> str:
    """All in a line: "3 of 4 machines measure, 1 is lost  12 jobs wait  about 2 h 05 min left". seconds: that are
    left, or None."""
    all_of = list(pool.scheduler.machines.values())
    lost, aside = sum(one.lost for one in all_of), sum(one.aside is not None for one in all_of)
    parts = [f"{sum(one.job is not None for one in all_of)} of {len(all_of)} machines measure"]
    parts[0] += f", {lost} lost" * bool(lost) + f", {aside} set aside" * bool(aside)
    waiting = len(pool.scheduler.waiting)
    parts.append(f"{waiting} job{'s' * (waiting != 1)} wait{'s' * (waiting == 1)}")
    if seconds is not None:
        parts.append(f"about {duration(seconds)} left")
    return "  ".join(parts)


def left_s(pool) -> float | None:
    """Expected seconds until the jobs of now are measured; None where no machine is there."""
    if not any(not one.lost and not one.aside for one in pool.scheduler.machines.values()):
        return None
    return simulate(pool.scheduler, now=time.time()).seconds


def machines(pool) -> list[str]:
    """A line a machine: what it measures, or why nothing."""
    return [f"{name}: {_of(one, pool.talks[name].status)}" for name, one in sorted(pool.scheduler.machines.items())]


def _of(machine, status: dict) -> str:
    if machine.lost:
        return "lost"
    if machine.aside:
        return f"set aside: {machine.aside.splitlines()[0]}"
    if not machine.job:
        return f"free, {machine.done} points measured"
    counted = f", {status['done']} of {status['total']} points" if status.get("total") else ""
    left = f", about {duration(status['left_s'])}" if status.get("left_s") is not None else ""
    return f"{machine.job.name}{counted}{left}"


def rows(pool) -> list[dict]:
    """The same for `labbook status`: {machine, state (measures, free, lost, aside), job, points, done, total}."""
    found = []
    for name, one in sorted(pool.scheduler.machines.items()):
        status = pool.talks[name].status
        what = "lost" if one.lost else "aside" if one.aside else "measures" if one.job else "free"
        found.append({"machine": name, "state": what, "job": one.job and one.job.name, "points": one.done,
                      "done": status.get("done"), "total": status.get("total")})
    return found


def in_a_line(why: str) -> str:
    """Why a job ended, in a line: the first of a text, and after a mere number of points the next one."""
    first, *rest = [line.strip() for line in why.splitlines() if line.strip()] or ["no reason"]
    return f"{first}: {rest[0]}" if rest and re.fullmatch(r"[0-9]+ points? failed", first) else first

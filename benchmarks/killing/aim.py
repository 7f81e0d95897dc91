"""Waits for a moment of a process's story, and kills it, or its privileged helper, there."""

import random
import signal
import time
from dataclasses import dataclass

import helper_kill

LOOK_S = 0.001
BEGINS_WITHIN_S = 600


@dataclass(frozen=True)
class Shot:
    """What a kill hit: `hit` whether the process lived until then; `during`: the phase at that moment."""

    hit: bool
    during: str
    waited_s: float


# What comes right before a phase where it is worth a kill: servers start once the lab is up, and a point
# is loaded once they have been started and filled.
AFTER = {"systems": ("up",), "load": ("systems", "fill")}


def begins(lines: list[dict], phase: str) -> int | None:
    """The number of the line at which a phase begins that is worth a kill."""
    for number, line in enumerate(lines):
        if line["edge"] == "begin" and line["phase"] == phase and (
                phase not in AFTER or line.get("after") in AFTER[phase]):
            return number
    return None


def lengths(lines: list[dict]) -> dict[str, list[float]]:
    """{phase: [seconds from there until it ended, or one within it began]}."""
    lines = [line for line in lines if line["edge"] != "point"]
    found = {phase: begins(lines, phase) for phase in {line["phase"] for line in lines}}
    return {phase: [lines[at + 1]["at_s"] - lines[at]["at_s"]] for phase, at in found.items()
            if at is not None and at + 1 < len(lines)}


def phase_now(lines: list[dict]) -> str:
    """The innermost phase that has begun; "between" when none has."""
    now = "between"
    for line in lines:
        if line["edge"] == "begin":
            now = line["phase"]
        elif line["edge"] == "end":
            now = "between"
    return now


def kill_in(process, story, phase: str, after_s: float, kill) -> Shot | None:
    """Wait until the phase begins and `after_s` more, then `kill()`, which returns whether it hit.

    `story()` reads the lines written so far. None when the process ended before the phase began.
    """
    until = time.monotonic() + BEGINS_WITHIN_S
    while begins(story(), phase) is None:
        if process.poll() is not None or time.monotonic() > until:
            return None
        time.sleep(LOOK_S)
    time.sleep(after_s)
    hit = kill()
    return Shot(hit, phase_now(story()), after_s)


def kill_driver(process) -> bool:
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def kill_helper(process, under_way) -> bool:
    """Kill the privileged helper that the process waits for, as soon as there is one while
    `under_way()`; False when there was none."""
    while process.poll() is None and under_way():
        pid = helper_kill.helper_of(process.pid)
        if pid is not None:
            return helper_kill.kill(pid)
    return False


def moment(chance: random.Random, seconds: float) -> float:
    return chance.uniform(0, seconds)

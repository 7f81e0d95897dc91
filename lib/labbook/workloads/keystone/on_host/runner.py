"""Keystone's clients of one host: `python -m labbook.workloads.keystone.on_host.runner OUT`.

With `times` in the spec the clients share that many calls, and whoever is free makes the next one; without, they call
until the program's input is closed. The results have no rows but, of each client, `calls`: [call, step, started_s,
seconds, error, user]. A call that fails is a row with its error, and so is the step that failed. With `think_s` a
client pauses before each call, for times with this mean, exponentially distributed, which `seed` and its number decide.
A stream's clients also keep a `history`: [started_s, seconds, error, user tried, made_s, seen] of each step that
creates or lists (see KeystoneCall).
"""

import mmap
import os
import random
import signal
import sys
import time
from contextlib import contextmanager

from labbook.workloads.clients.on_host.memory import Memory
from labbook.workloads.clients.on_host.runner import (
    Runner,
    cpu_seconds,
    main,
    save_part,
    sleep_until,
    until_input_closes,
)
from labbook.workloads.keystone.on_host.calls import LOGGED_IN, STEPS, KeystoneCall

MOST_TIMES = 50_000           # what a pipe holds, a byte each
ERROR_LETTERS = 240           # half of them the first, half the last, where the cause stands
AGAIN_SECONDS = 0.2           # an interruption may come where nothing notices it


class OutOfTime(BaseException):  # so that no library takes it for one of its own
    """The call has taken as long as one may."""


class Client:
    """Makes calls while `turn()`."""

    def __init__(self, spec: dict, number: int, part: str, turn):
        self.spec, self.number, self.steps = spec, number, STEPS[spec["scenario"]]
        self._part, self._turn, self._calls = part, turn, []
        self._history = [] if spec["times"] is None else None
        self._login = KeystoneCall(spec["credentials"]).logged_in() if spec["scenario"] in LOGGED_IN else (None, None)
        self._pauses = random.Random(f"{spec['seed']} {number}")

    def call(self, number: int, now) -> None:
        """Make one call; add its row and, before it, its steps'. `now()`: seconds since the
        start."""
        call, begun = KeystoneCall(self.spec["credentials"], now, self._login), now()
        error = ""
        try:
            with at_most(self.spec["call_seconds"]):
                for step in self.steps:
                    at = now()
                    try:
                        getattr(call, step)()
                    except BaseException as failed:
                        error = error_text(failed, self.spec["call_seconds"])
                        raise
                    finally:
                        self._calls.append((number, step, at, now() - at, error, call.user))
                        self._note(call, step)
        except (Exception, OutOfTime) as failed:
            error = error or error_text(failed, self.spec["call_seconds"])
        self._calls.append((number, "", begun, now() - begun, error, call.user))

    def _note(self, call, step) -> None:
        """Add the last step to the history, if it reads what it creates, or lists."""
        if self._history is not None and step in ("create_user", "list_users"):
            _, _, at, seconds, error, _ = self._calls[-1]
            self._history.append((at, seconds, error, call.tried if step == "create_user" else "",
                                  call.made_s, call.seen))

    def measure(self, start: float) -> None:
        zero, cpu, number = sleep_until(start), cpu_seconds(), 0
        memory = Memory(self.spec["clients"])

        def now():
            return (time.perf_counter_ns() - zero) / 1e9

        while self._pause(now) < self.spec["seconds_at_most"] and self._turn():
            self.call(number, now)
            memory.look()
            number += 1
        save_part(self._part, client=self.number, cpu_s=cpu_seconds() - cpu, calls=self._calls,
                  collections=memory.collections, history=self._history or [])

    def _pause(self, now) -> float:
        """Think before the next call, at most until the load ends: when the pause is over."""
        if self.spec["think_s"]:
            seconds = self._pauses.expovariate(1 / self.spec["think_s"])
            time.sleep(max(0, min(seconds, self.spec["seconds_at_most"] - now())))
        return now()


@contextmanager
def at_most(seconds: float):
    """Raise OutOfTime in the block once it has run that long, and again until it ends."""
    within = True

    def interrupt(*_):
        if within:
            raise OutOfTime

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        within = False
        signal.setitimer(signal.ITIMER_REAL, 0)


def error_text(error: BaseException, call_seconds: float) -> str:
    """A row's error, its type first, never empty."""
    text = f"no answer within {call_seconds:g} s" if isinstance(error, OutOfTime) else str(error)
    text, half = f"{type(error).__name__}: {text}", ERROR_LETTERS // 2
    return text if len(text) <= ERROR_LETTERS else f"{text[:half]} ... {text[-half:]}"


class Turns:
    """Which calls are made: `times` shared by all clients, or any number until `stop`."""

    def __init__(self, times: int | None):
        self._stopped, self._left = mmap.mmap(-1, 1), None
        if times is not None:
            self._left, given = os.pipe()
            os.write(given, bytes(times))
            os.close(given)

    def __call__(self) -> bool:
        return not self._stopped[0] and (self._left is None or bool(os.read(self._left, 1)))

    def stop(self) -> None:
        self._stopped[0] = 1


class Users(Runner):
    """A host's clients of Keystone."""

    def __init__(self, spec: dict, out: str):
        super().__init__(spec, out)
        for name in [n for n in os.environ if n.lower().endswith("_proxy")]:
            del os.environ[name]  # no proxy leads to the lab's servers
        self._turns = Turns(spec["times"])

    def client(self, number):
        return Client(self.spec, number, self.part(number), self._turns)

    def lead(self, forks) -> bool:
        if self.spec["times"] is None:
            until_input_closes()
            self._turns.stop()
        return forks.wait()


if __name__ == "__main__":
    sys.exit(main(Users))

"""A session: the study's lab, and the objects that the current block set up in it.

The lab is brought up on first use. It is taken down at the end of the study, after a failure, on an
interruption and when the interpreter exits.
"""

import atexit
import os
import signal
import sys
import threading
import warnings
from contextlib import contextmanager


class Session:
    """`bring_up()` returns a running lab."""

    def __init__(self, bring_up):
        self._bring_up = bring_up
        self._lab = self._block = self._facts = None
        self.apart_for = None       # the experiment that has hosts, or models of disks, of its own in the lab
        self._created = {}          # (arm, number): results of the block's setup() calls, in order
        self._used_up = set()       # keys of those that serve one attempt alone
        self.failed_starts = 0      # consecutive failures to bring the lab up
        self._process = None
        self._old_handler = None

    def up(self):
        """The lab; brought up on the first call."""
        if self._lab is None:
            self._handle_exit()
            try:
                self._lab = self._bring_up()
            except Exception:
                self.failed_starts += 1
                raise
            self.failed_starts = 0
        return self._lab

    def fit(self, experiment: str | None) -> None:
        """Take down a lab without what this experiment has of its own, or with that of another one; None has none."""
        if experiment != self.apart_for:
            self.down()
            self.apart_for = experiment

    def facts(self) -> dict:
        """The lab's facts, queried once per lab; empty without a lab."""
        if self._facts is None and self._lab is not None:
            self._facts = self._lab.facts()
        return self._facts or {}

    def enter(self, point) -> bool:
        """Destroy the set-up of another block, and of this block what is used up. True when the point is the first
        of its block in this lab."""
        block = (point.experiment, point.block)
        is_first = block != self._block
        try:
            self._clear(None if is_first else [key for key in self._created if key in self._used_up])
        except Exception as error:      # a new lab is clean as well
            warnings.warn(f"a block's set-up could not be destroyed, so a new lab is used: {error}", stacklevel=3)
            self.down()
            is_first = True
        self._block = block
        return is_first

    def create_once(self, number: int, make, arm=None, used_up=False):
        """The result of this block's setup() call number `number` of an arm: of `make()` when called
        first. used_up: the next attempt does not get it."""
        if (arm, number) not in self._created:
            self._created[arm, number] = make()
            if used_up:
                self._used_up.add((arm, number))
        return self._created[arm, number]

    def arms(self) -> list:
        """The arms that are set up, in order; None stands for what all arms share."""
        return list(dict.fromkeys(arm for arm, _ in self._created))

    def destroy_others(self, arm) -> None:
        """Destroy what is set up of other arms."""
        self._clear([key for key in self._created if key[0] not in (None, arm)])

    def _clear(self, keys=None):
        keys = list(self._created) if keys is None else keys
        created = {key: self._created.pop(key) for key in keys}
        self._used_up -= set(keys)
        for result in reversed(created.values()):
            for one in reversed(result) if isinstance(result, (list, tuple)) else (result,):
                if hasattr(one, "destroy"):
                    one.destroy()

    def down(self) -> None:
        """Take the lab down with its processes, if it is up. Signals are held meanwhile."""
        if self._process not in (None, os.getpid()):
            return      # a forked child's copy: the lab is its parent's
        lab, self._lab = self._lab, None
        self._created, self._used_up, self._block, self._facts = {}, set(), None, None
        try:
            if lab is not None:
                with signals_held():
                    lab.down()
        finally:
            self._restore_handlers()

    def _handle_exit(self):
        """Take the lab down on SIGTERM and when the interpreter exits."""
        self._process = os.getpid()
        atexit.register(self.down)
        if self._old_handler is None and _in_main_thread():
            self._old_handler = signal.signal(signal.SIGTERM, self._terminated)

    def _restore_handlers(self):
        atexit.unregister(self.down)
        if self._old_handler is not None and _in_main_thread():
            signal.signal(signal.SIGTERM, self._old_handler)
            self._old_handler = None

    def _terminated(self, number, _frame):
        if os.getpid() != self._process:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        raise KeyboardInterrupt("terminated")


@contextmanager
def signals_held():
    """Delay Ctrl-C and SIGTERM until the block ends; a second signal interrupts at once."""
    if not _in_main_thread():
        yield
        return
    received = []

    def hold(number, _frame):
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt
        print("taking the lab down; press Ctrl-C again to stop at once", file=sys.stderr)

    old = {number: signal.signal(number, hold) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    if received:
        raise KeyboardInterrupt


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()

"""A session: the study's lab and what the current block has set up in it.

The lab is brought up on first use and taken down at the end, after a failure, on an interruption
and when the interpreter exits, so that it never outlives the study.
"""

import atexit
import os
import signal
import sys
import threading
import warnings
from contextlib import contextmanager


class Session:
    def __init__(self, bring_up):
        self._bring_up = bring_up
        self._lab = self._block = self._facts = None
        self._things = {}           # results of the block's setup() calls, in order
        self.failed_to_rise = 0     # times in a row
        self._process = None
        self._old_handler = None

    def up(self):
        """The lab; brought up on the first call."""
        if self._lab is None:
            self._watch()
            try:
                self._lab = self._bring_up()
            except Exception:
                self.failed_to_rise += 1
                raise
            self.failed_to_rise = 0
        return self._lab

    def facts(self) -> dict:
        """The lab's facts, queried once per lab; empty without a lab."""
        if self._facts is None and self._lab is not None:
            self._facts = self._lab.facts()
        return self._facts or {}

    def enter(self, point) -> bool:
        """Destroy what another block set up. True when the point starts a block on this lab."""
        block = (point.experiment, point.block)
        if block == self._block:
            return False
        try:
            self._clear()
        except Exception as error:      # a fresh lab is clean, too
            warnings.warn(f"the lab is made anew, since clearing it failed: {error}", stacklevel=3)
            self.down()
        self._block = block
        return True

    def made(self, number: int, make):
        """The result of this block's setup() call number `number`."""
        if number not in self._things:
            self._things[number] = make()
        return self._things[number]

    def _clear(self):
        things, self._things = self._things, {}
        for thing in reversed(things.values()):
            for one in reversed(thing) if isinstance(thing, (list, tuple)) else (thing,):
                if hasattr(one, "destroy"):
                    one.destroy()

    def down(self) -> None:
        """Take the lab down, if it is up; its processes end with it. Signals wait meanwhile."""
        if self._process not in (None, os.getpid()):
            return      # a forked child's copy: the lab is its parent's
        lab, self._lab = self._lab, None
        self._things, self._block, self._facts = {}, None, None
        try:
            if lab is not None:
                with signals_held():
                    lab.down()
        finally:
            self._unwatch()

    def _watch(self):
        """From now on SIGTERM and the interpreter's end take the lab down first."""
        self._process = os.getpid()
        atexit.register(self.down)
        if self._old_handler is None and _in_main_thread():
            self._old_handler = signal.signal(signal.SIGTERM, self._terminated)

    def _unwatch(self):
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
    """Put off Ctrl-C and SIGTERM until the block ends; a second one ends it at once."""
    if not _in_main_thread():
        yield
        return
    held = []

    def hold(number, _frame):
        held.append(number)
        if len(held) > 1:
            raise KeyboardInterrupt
        print("taking the lab down; once more to stop at once", file=sys.stderr)

    old = {number: signal.signal(number, hold) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    if held:
        raise KeyboardInterrupt


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()

"""A stop that is asked for at any moment of a notebook's execution."""

import os
import signal
from types import SimpleNamespace

import pytest

from labbook.pipeline.executing.execute import Interrupted, Stop


def stop(monkeypatch):
    """A Stop with a kernel, and what it did to processes."""
    done = []
    monkeypatch.setattr(os, "_exit", lambda code: done.append(("exit", code)))
    monkeypatch.setattr(os, "kill", lambda pid, number: done.append((pid, number)))
    made = Stop()
    made.kernels = SimpleNamespace(provisioner=SimpleNamespace(pid=4711))
    return made, done


def test_before_the_first_cell_the_process_ends_and_its_kernel_with_it(monkeypatch):
    made, done = stop(monkeypatch)
    made.ask()
    assert done[0] == ("exit", 1)


def test_later_the_running_cell_is_interrupted_and_no_other_begins(monkeypatch):
    made, done = stop(monkeypatch)
    made.check()
    made.ask()
    assert done == [(4711, signal.SIGINT)]
    with pytest.raises(Interrupted):
        made.check()

"""Servers whose clocks do not go as this machine's."""

from types import SimpleNamespace

import pytest

from labbook.errors import SystemFailure
from labbook.papers.cloud_platforms import clocks


@pytest.fixture
def ours(monkeypatch):
    """This machine's clock; a call of a server takes 20 ms of it."""
    now = SimpleNamespace(s=1000.0)
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: now.s))
    return now


def server(now, rate):
    def run(command):
        now.s += 0.02
        return SimpleNamespace(stdout=f"{(now.s - 0.01) * rate} 1.0\n")

    return SimpleNamespace(name=f"server at {rate}", here=False, run=run)


@pytest.mark.parametrize("rate, passed, right", [
    (1.0, 60, True), (1.005, 60, True), (4.7, 60, False), (0.9, 60, False), (1.05, 60, False),
    (1.05, 0.1, True)])       # of a tenth of a second the readings tell nothing
def test_a_clock_that_goes_wrong_is_named_with_its_rate(rate, passed, right, ours):
    watched = clocks.Clocks([server(ours, 1.0), server(ours, rate)])
    ours.s += passed
    if right:
        watched.check()
        return
    with pytest.raises(SystemFailure, match=f"server at {rate}'s clock goes {rate:.3g} times as fast"):
        watched.check()


def test_the_bare_nodes_clock_is_this_machines(ours):
    clocks.Clocks([SimpleNamespace(name="node", here=True)]).check()

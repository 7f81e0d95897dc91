"""What a link's check finds where several pairs of hosts share it."""

from types import SimpleNamespace

import pytest

from labbook.errors import LabError
from labbook.lab.link.endpoints import NOTHING_ASKED
from labbook.lab.link.link import Link

SUMMARY = "{sent} packets transmitted, {back} received\nrtt min/avg/max/mdev = {ms}/{ms}/{ms}/0.1 ms\n"


class Host:
    """A user's host, whose pings to others come back as `answers` says: {(from, to): (how many of 10, ms)}."""

    def __init__(self, name, site, address, answers, asked):
        self.name, self.site, self.role, self.address = name, site, "db", address
        self.login = SimpleNamespace(address=f"192.0.2.{address[-1]}", port=22)
        self._answers, self._asked = answers, asked

    def may(self, what):
        return True

    def process(self, name):
        return None

    def run(self, command, **_):
        if "ping" in command:
            back, ms = self._answers[self.address, command.split()[-1]]
            return SimpleNamespace(stdout=SUMMARY.format(sent=10, back=back, ms=ms), stderr="")
        return SimpleNamespace(stdout=self._asked, stderr="", exit_code=0)


def link_of(answers, asked=""):
    hosts = [Host("h1", "a", "10.0.0.1", answers, asked), Host("h2", "b", "10.0.0.2", answers, asked),
             Host("h3", "b", "10.0.0.3", answers, asked)]
    return Link(SimpleNamespace(id="t1", routers={}, site=lambda site: [h for h in hosts if h.site == site]), "a", "b")


ONE, OTHER = ("10.0.0.1", "10.0.0.2"), ("10.0.0.1", "10.0.0.3")


def test_a_link_without_settings_may_have_any_delay_and_may_not_lose():
    assert link_of({ONE: (10, 40.0), OTHER: (10, 3.0)}).check()["measured_rtt_ms"] == 40.0
    with pytest.raises(LabError, match="h1 to h3.*lost 6 of 10"):
        link_of({ONE: (10, 40.0), OTHER: (4, 3.0)}).check()


def test_the_pair_that_is_not_as_asked_counts_also_where_another_strays_further(monkeypatch):
    """Only the pair with the worst round trip was judged, so the losses of another passed."""
    link = link_of({ONE: (10, 51.0), OTHER: (4, 50.2)})
    asked = {**NOTHING_ASKED, "rtt_ms": 50.0}
    for end in link._ends:
        end._asked = asked
        monkeypatch.setattr(end, "forget", lambda: None)
        monkeypatch.setattr(end, "is_working", lambda: True)
    with pytest.raises(LabError, match="h1 to h3.*lost 6 of 10"):
        link.check()

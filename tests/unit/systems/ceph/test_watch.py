"""Samplers of metadata servers end where one of them does not begin."""

from types import SimpleNamespace

import pytest

from labbook.errors import SystemFailure
from labbook.systems.ceph import watch


class Host:
    """A host whose sampler gives a first sample, or does not."""

    def __init__(self, name, gives):
        self.name, self.gives, self.sampler = name, gives, None

    def run(self, command, check=True):
        return SimpleNamespace(exit_code=0)

    def start(self, *_):
        self.sampler = SimpleNamespace(kill=lambda: setattr(self, "sampler", None))

    def process(self, _name):
        return self.sampler

    def wait_for(self, look, what, *_):
        if not self.gives:
            raise SystemFailure(f"waited for {what}")


def test_no_sampler_goes_on_where_one_gives_no_first_sample(monkeypatch):
    """The others went on, and asked the next cluster at the same place."""
    monkeypatch.setattr(watch, "tools", lambda *_: "sample")
    hosts = [Host("mds1", True), Host("mds2", False), Host("mds3", True)]
    mdss = [SimpleNamespace(id=host.name, host=host, home="h", socket="s", process=SimpleNamespace(alive=lambda: True))
            for host in hosts]
    with pytest.raises(SystemFailure, match="the first sample"):
        watch.Watch(mdss, 0.25, ["mds1", "mds2", "mds3"]).begin()
    assert [host.sampler for host in hosts] == [None] * 3

"""Hosts whose processes the kernel killed are named with their limit of memory, others not at all."""

from types import SimpleNamespace

import pytest

from labbook.errors import LabError
from labbook.lab import Lab


def test_a_host_without_a_limit_is_not_called_short_of_memory():
    """The kernel counts also what it ended because the whole machine had no more."""
    lab = Lab.__new__(Lab)
    lab.id = "t1"
    lab.hosts = {name: SimpleNamespace(name=name, limits=limits) for name, limits in (
        ("free", {"disk": {"size": 1 << 30}}), ("small", {"memory": 64 << 20}))}
    lab._provider = SimpleNamespace(ended_for_memory=lambda lab_id, host: 2)
    assert lab.short_of_memory() == [
        "small had too little memory (64 MB): the kernel killed 2 of its processes"]


def test_a_host_without_a_quota_takes_none_and_is_not_asked():
    lab, asked = Lab.__new__(Lab), []
    lab.id = "t1"
    lab.hosts = {name: SimpleNamespace(name=name, limits=limits) for name, limits in (
        ("h1", {"quota": 0.5}), ("h2", {"memory": 64 << 20}))}
    lab._provider = SimpleNamespace(limit=lambda lab_id, host, quota: asked.append((host.name, quota)))
    with pytest.raises(LabError, match="h2 came up without a quota"):
        lab.limit("h2", 0.5)
    for quota in (None, 0.2):
        lab.limit("h1", quota)
    assert asked == [("h1", None), ("h1", 0.2)] and lab.hosts["h1"].limits == {"quota": 0.2}


def test_a_host_whose_own_disk_lies_on_a_full_one_is_named():
    lab = Lab.__new__(Lab)
    lab._made = {"hosts": [{"name": name, "left": left} for name, left in (("a", 0), ("b", 1 << 20), ("c", 0))]}
    lab.hosts = {name: SimpleNamespace(name=name, limits=limits) for name, limits in (
        ("a", {"disk": {"size": 1 << 30}}), ("b", {"disk": {"size": 1 << 30}}), ("c", {}))}
    lab._provider = SimpleNamespace(space_below=lambda made, host: made["left"])
    assert lab.short_of_space() == ["the disk below the one of a is full, so that what a wrote may be lost"]


def test_a_modelled_disk_that_fails_or_has_ended_is_named():
    lab, modelled = Lab.__new__(Lab), {"disk": {"size": 1 << 30, "model": "hdd_2010"}}
    lab.id = "t1"
    lab.hosts = {name: SimpleNamespace(name=name, limits=limits) for name, limits in (
        ("well", modelled), ("full", modelled), ("dead", modelled), ("plain", {"disk": {"size": 1 << 30}}))}

    def ask(lab_id, host, command):
        if host.name == "dead":
            raise LabError("connection refused")
        return {"failed": 3 * (host.name == "full"), "full": host.name == "full"}

    lab._provider = SimpleNamespace(ask_disk=ask)
    assert lab.broken_disks() == [
        "the modelled disk of full failed 3 requests: the disk below it is full",
        "the modelled disk of dead has ended, so that all requests to it fail (connection refused)"]


def test_hosts_go_on_after_a_stop_while_they_are_frozen(monkeypatch):
    """The stop comes once they are frozen, out of the call that froze them."""
    lab, did = Lab.__new__(Lab), []
    monkeypatch.setattr(Lab, "_freezers", {"a", "b"})
    lab.id = "t1"
    lab.hosts = {name: SimpleNamespace(name=name) for name in ("a", "b")}

    def freeze(lab_id, hosts, frozen):
        did.append(([host.name for host in hosts], frozen))
        if frozen:
            raise KeyboardInterrupt

    lab._provider = SimpleNamespace(freeze=freeze)
    with pytest.raises(KeyboardInterrupt), lab.only("a"):
        pass
    assert did == [(["b"], True), (["b"], False)]


def test_it_goes_down_though_what_was_made_outside_of_it_fails_in_any_way():
    lab, did = Lab.__new__(Lab), []
    lab._before_down, lab._take_down = [lambda: did.append("first"), lambda: {}["gone"]], lambda: did.append("down")
    with pytest.raises(KeyError):
        lab.down()
    assert did == ["down"]
    lab.down()
    assert did == ["down", "first", "down"]

"""Hosts whose processes the kernel killed are told with their limit of memory, others not at all."""

from types import SimpleNamespace

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

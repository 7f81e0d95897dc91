"""How much clients may grow while nothing collects their garbage."""

import ctypes
import gc

import pytest

from labbook.workloads.clients.on_host import memory
from labbook.workloads.clients.on_host.memory import Memory


class Loop:
    """Garbage that only the collector can free."""

    left = 0

    def __init__(self, size: int):
        self.mine, self.ballast = self, bytearray(b"x") * size
        Loop.left += 1

    def __del__(self):
        Loop.left -= 1


@pytest.fixture
def off():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)    # what earlier tests have freed would hide the growth
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def test_garbage_is_collected_between_calls_and_memory_has_a_bound(off, monkeypatch):
    monkeypatch.setattr(memory, "COLLECT_BYTES", 32 << 20)
    watch, most = Memory(clients=2), 0
    for _ in range(200):          # 200 MiB in all, of which a client may keep 16
        Loop(1 << 20)
        watch.look()
        most = max(most, Loop.left)
    assert 5 < watch.collections < 50 and most < 100     # what earlier tests have freed hides some of the growth


def test_memory_that_is_in_use_is_an_error(off):
    watch, kept = Memory(clients=8), []
    with pytest.raises(MemoryError, match="grown by [6-8]. MiB, more than its share of 64 MiB"):
        for _ in range(200):
            kept.append(Loop(1 << 20))
            watch.look()
    assert len(kept) < 100

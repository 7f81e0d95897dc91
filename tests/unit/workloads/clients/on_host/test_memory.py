"""How much clients may grow while nothing collects their garbage."""

import ctypes
import gc
import subprocess
import sys

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


# In a process of its own: memory that earlier tests have freed would hide a client's growth.
GARBAGE = """
import gc, runpy
found = runpy.run_path("FILE")
gc.disable()
found["memory"].COLLECT_BYTES = 32 << 20
watch, most = found["Memory"](clients=2), 0
for _ in range(200):          # 200 MiB in all, of which a client may keep 16
    found["Loop"](1 << 20)
    watch.look()
    most = max(most, found["Loop"].left)
print(watch.collections, most)
"""


def test_garbage_is_collected_between_calls_and_memory_has_a_bound():
    done = subprocess.run([sys.executable, "-c", GARBAGE.replace("FILE", __file__)], capture_output=True, text=True)
    collections, most = map(int, done.stdout.split())
    assert 5 < collections < 50 and most < 40


def test_memory_that_is_in_use_is_an_error(off):
    watch, loops = Memory(clients=8), []
    with pytest.raises(MemoryError, match="grown by [6-8]. MiB, more than its share of 64 MiB"):
        for _ in range(200):
            loops.append(Loop(1 << 20))
            watch.look()
    assert len(loops) < 100

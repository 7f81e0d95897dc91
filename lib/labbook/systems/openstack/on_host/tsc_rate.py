"""Prints the rate of the processor's time-stamp counter (TSC), kHz, by the machine's own clock.

The instruction that reads the counter is called as a function of ten bytes, since no library offers it.
"""

import ctypes
import mmap
import time

READ_TSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")     # rdtsc; shl rdx, 32; or rax, rdx; ret
SECONDS = 0.25
TRIES = 50      # of a pair of readings, of which the closest counts: others were interrupted


def reader():
    """A function that reads the counter."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(READ_TSC)
    function = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    function.code = code    # as long as the function is there
    return function


def both(read) -> tuple[int, int]:
    """(ns, counter) at one moment."""
    found = []
    for _ in range(TRIES):
        before, counter, after = time.monotonic_ns(), read(), time.monotonic_ns()
        found.append((after - before, (before + after) // 2, counter))
    return min(found)[1:]


def rate_khz(seconds: float = SECONDS) -> int:
    read = reader()
    began, first = both(read)
    time.sleep(seconds)
    ended, last = both(read)
    return round((last - first) * 1e6 / (ended - began))


if __name__ == "__main__":
    print(rate_khz())

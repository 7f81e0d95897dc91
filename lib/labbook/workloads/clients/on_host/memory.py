"""Memory of a client: garbage is not collected while it measures, and yet has a bound.

Python's collector would stop a client in the middle of a call, for as long as the client has many
objects. So it is off (see runner.main), and what only it can free stays. A client looks between two
calls at how much it has grown, and collects by itself when that is much.
"""

import gc
import os

COLLECT_BYTES = 128 << 20   # growth of all clients of a host together, before they collect
MOST_BYTES = 512 << 20      # and the most, which is an error
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Memory:
    """What a client's own process has grown by since this was made; `look` after a call, before the
    next one is timed."""

    def __init__(self, clients: int):
        """`clients`: how many share the host's bounds."""
        self._collect, self._most = COLLECT_BYTES // clients, MOST_BYTES // clients
        self._file = os.open("/proc/self/statm", os.O_RDONLY)
        self._first = self._last = self._bytes()
        self.collections = 0

    def look(self) -> None:
        """Collect when the client has grown by a lot since the last time; MemoryError when it is too
        large even so."""
        if self._bytes() - self._last < self._collect:
            return
        gc.collect()
        self.collections += 1
        self._last = self._bytes()
        grown = self._last - self._first
        if grown > self._most:
            raise MemoryError(f"a client has grown by {grown >> 20} MiB, more than its share of "
                              f"{self._most >> 20} MiB")

    def _bytes(self) -> int:
        """Resident and not shared with other processes through a mapping."""
        _, resident, shared, *_ = os.pread(self._file, 200, 0).split()
        return (int(resident) - int(shared)) * PAGE_BYTES

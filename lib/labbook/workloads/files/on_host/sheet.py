"""Where a metadata client writes what it does: memory shared with the process that started it.

A call on a file system that has lost its server may never return, and no signal ends it: what the
client did before, and what it is at, is known all the same.
"""

import mmap
import os
import struct

ROW = struct.Struct("<ddHHBB")    # started_s, seconds, directory, errno, phase, op
BLOCKED = 0xFFFF                  # in place of an errno: the call did not come back
HEAD_BYTES = 64
_COUNT, _CPU, _DONE = struct.Struct("<q"), struct.Struct("<d"), struct.Struct("<q")
_BUSY = struct.Struct("<dHBB")    # since when, or IDLE; directory, phase, op
_COUNT_AT, _CPU_AT, _DONE_AT, _BUSY_AT = 0, 8, 16, 24
IDLE = -1e9
MOST_ROWS = 8_000_000


class Sheet:
    """A file in memory, sparse until it is written; made by the parent, before it forks."""

    def __init__(self, path: str, most_rows: int = MOST_ROWS):
        self.most_rows, size = most_rows, HEAD_BYTES + most_rows * ROW.size
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.ftruncate(file, size)
            self._memory = mmap.mmap(file, size)
        finally:
            os.close(file)
        self._count = 0
        self.rest()

    def busy(self, since_s: float, directory: int, phase: int, op: int) -> None:
        """A call begins."""
        _BUSY.pack_into(self._memory, _BUSY_AT, since_s, directory, phase, op)

    def add(self, *row) -> bool:
        """The call is over: `row` as in ROW; whether there is room for another."""
        ROW.pack_into(self._memory, HEAD_BYTES + self._count * ROW.size, *row)
        self._count += 1
        _COUNT.pack_into(self._memory, _COUNT_AT, self._count)
        return self._count < self.most_rows

    def rest(self) -> None:
        """No call is under way."""
        _BUSY.pack_into(self._memory, _BUSY_AT, IDLE, 0, 0, 0)

    def used(self, cpu_s: float) -> None:
        _CPU.pack_into(self._memory, _CPU_AT, cpu_s)

    def finish(self) -> None:
        self.rest()
        _DONE.pack_into(self._memory, _DONE_AT, 1)

    # what the parent asks

    @property
    def count(self) -> int:
        return _COUNT.unpack_from(self._memory, _COUNT_AT)[0]

    @property
    def cpu_s(self) -> float:
        return _CPU.unpack_from(self._memory, _CPU_AT)[0]

    @property
    def done(self) -> bool:
        return bool(_DONE.unpack_from(self._memory, _DONE_AT)[0])

    def at(self) -> tuple[float, int, int, int] | None:
        """The call that is under way: since when, directory, phase, op."""
        found = _BUSY.unpack_from(self._memory, _BUSY_AT)
        return None if found[0] == IDLE else found

    def rows(self, now_s: float) -> bytes:
        """All rows; the last one is of the call that is under way and will not be waited for."""
        raw = self._memory[HEAD_BYTES:HEAD_BYTES + self.count * ROW.size]
        if self.done or (at := self.at()) is None:
            return raw
        since, directory, phase, op = at
        return raw + ROW.pack(since, now_s - since, directory, BLOCKED, phase, op)

"""One metadata client: goes through its plan's phases and writes a row an operation.

It writes into a sheet: memory shared with the process that started it. A call on a file system that
has lost its server may never return, and no signal ends it: what the client did before, and which
call it is in, is known all the same.
"""

import errno
import mmap
import os
import struct
import time

from labbook.workloads.clients.on_host.memory import Memory
from labbook.workloads.clients.on_host.runner import cpu_seconds, sleep_until
from labbook.workloads.files.on_host.calls import FUNCTIONS, RMDIR
from labbook.workloads.files.on_host.patterns import Deep, Mixed, Renames, Wide
from labbook.workloads.files.on_host.plans import Hot, Plan

PLANS = {"bonnie": Plan, "remount": Plan, "remount_in_order": Plan, "creates": Plan, "mixed": Mixed, "hot": Hot, "deep": Deep, "wide": Wide,
         "renames": Renames}
GATE_SECONDS = 0.003   # between checks whether a phase may begin
LOST_SECONDS = 0.05    # pause after an error of AT_ONCE
AT_ONCE = {errno.ENOTCONN, errno.ESHUTDOWN, errno.EIO, errno.EROFS, errno.ENOSPC, errno.EACCES}
CPU_EVERY = 256        # calls, between two notes of the CPU time used
NAP_NS = 200_000_000   # how long a client that is ahead of its schedule does not check for the end
ROW = struct.Struct("<ddHHBB")    # started_s, seconds, directory, errno, phase, op
BLOCKED = 0xFFFF                  # in place of an errno: the call did not return
HEAD_BYTES = 64
_COUNT, _CPU, _DONE = struct.Struct("<q"), struct.Struct("<d"), struct.Struct("<q")
_BUSY = struct.Struct("<dHBB")    # since when, or IDLE; directory, phase, op
_COUNT_AT, _CPU_AT, _DONE_AT, _BUSY_AT = 0, 8, 16, 24
IDLE = -1e9
MOST_ROWS = 8_000_000             # of a client


class Client:
    """Shared with the host's other clients: `gates`: when each phase begins (seconds since the
    epoch; 0: not decided); `arrived`: how many phases each client has finished; `stopped`: a byte,
    1 at the end."""

    def __init__(self, spec: dict, number: int, sheet: "Sheet", gates, arrived, stopped):
        self.spec, self.number, self._sheet = spec, number, sheet
        self._gates, self._arrived, self._stopped = gates, arrived, stopped
        self._zero = time.perf_counter_ns()
        self._at, self._parent = number - spec["first_client"], os.getppid()
        paths = spec["paths"]
        mine = dict(spec, path=paths[self._at % len(paths)],
                    fresh=[each[self._at % len(each)] for each in spec.get("fresh", ())])
        os.makedirs(f"{mine['path']}/{spec['folder']}", exist_ok=True)
        self._plan = PLANS[spec["pattern"]](mine, number)
        rate = spec["rate_per_s"]
        self._every = spec["all_clients"] / rate * 1e9 if rate else 0
        self._before(spec["phases"][0])
        self._memory = Memory(spec["clients"])

    def measure(self, start: float) -> None:
        """`start`: when the clients of all hosts start, seconds since the epoch."""
        try:
            self._measure(start)
        except BaseException:
            self._stopped[0] = 1   # or the others would wait
            raise

    def _measure(self, start):
        self._gates[0] = start
        self._used = cpu_seconds()
        self._zero = sleep_until(start)
        self._deadline = self._zero + int(self.spec["seconds_at_most"] * 1e9)
        self._due = self._zero + self.number * self._every / self.spec["all_clients"]
        for number, phase in enumerate(self.spec["phases"]):
            if number:
                self._before(phase, number)
                self._arrived[self._at] = number
                if not self._gate(number):
                    break
            if not self._make_calls(number, phase):
                break
        else:
            self._remove_folders(number, phase)
        self._note_cpu()
        self._sheet.finish()

    def _before(self, phase: str, number: int = 0) -> None:
        """Make what the phase needs. OSError when it cannot be made."""
        self._without_rows(self._plan.before(phase), number)

    def _remove_folders(self, number: int, phase: str) -> None:
        """After a last delete: remove the folders, unless others still have files in them."""
        if phase.endswith("delete"):
            self._without_rows(self._plan.emptied(), number)
            folder = f"{self._plan.spec['path']}/{self.spec['folder']}"
            self._without_rows((call for call in [(RMDIR, 0, None, folder, None)]), number)

    def _without_rows(self, calls, number: int) -> None:
        """Make calls that are not measured. A directory that is not empty stays."""
        answer = None
        while True:
            try:
                code, directory, *arguments = calls.send(answer)
            except StopIteration:
                return self._sheet.rest()
            self._sheet.busy((time.perf_counter_ns() - self._zero) / 1e9, directory, number, code)
            answer = None
            try:
                answer = FUNCTIONS[code](*arguments)
            except OSError:
                if code != RMDIR:
                    raise

    def _gate(self, number: int) -> bool:
        """Wait until the phase begins; False when it never will."""
        while not (start := self._gates[number]):
            if self._stopped[0] or os.getppid() != self._parent:
                return False
            time.sleep(GATE_SECONDS)
        time.sleep(max(0, start - time.time()))
        return True

    def _make_calls(self, number: int, phase: str) -> bool:
        """Make the phase's calls; False when the end came first."""
        clock, sheet, stopped, zero = time.perf_counter_ns, self._sheet, self._stopped, self._zero
        until, deadline, answer = clock() + int(self.spec["phase_s"] * 1e9), self._deadline, None
        calls = self._plan.calls(phase, lambda: clock() < until)
        for_next, made = calls.send, 0
        while True:
            try:
                code, directory, *arguments = for_next(answer)
            except StopIteration:
                return True
            if self._every:
                self._wait_for_turn()
            begin, failed = clock(), 0
            if stopped[0] or begin > deadline:
                return False
            began_s = (begin - zero) / 1e9
            sheet.busy(began_s, directory, number, code)
            try:
                answer = FUNCTIONS[code](*arguments)
            except OSError as error:
                answer, failed = None, error.errno
            took_s = (clock() - begin) / 1e9
            if not sheet.add(began_s, took_s, directory, failed, number, code):
                return False
            sheet.busy(began_s + took_s, directory, number, code)   # the plan may read a directory
            if not (made := made + 1) % CPU_EVERY:
                self._note_cpu()
            if failed in AT_ONCE:
                sheet.rest()
                time.sleep(LOST_SECONDS)

    def _note_cpu(self) -> None:
        self._sheet.used(cpu_seconds() - self._used)
        self._memory.look()

    def _wait_for_turn(self) -> None:
        """Wait until the next call is due, on a schedule of equal distances."""
        self._sheet.rest()
        while not self._stopped[0] and (left := self._due - time.perf_counter_ns()) > 0:
            time.sleep(min(left, NAP_NS) / 1e9)
        self._due += self._every


class Sheet:
    """A client's rows and its call under way: a sparse file in memory, made by the parent before it
    forks."""

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
        """The call has ended: `row` as in ROW. Whether there is room for another."""
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

    # What the parent reads.

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
        """All rows; a call still under way is the last one, BLOCKED, and ends at `now_s`."""
        raw = self._memory[HEAD_BYTES:HEAD_BYTES + self.count * ROW.size]
        if self.done or (at := self.at()) is None:
            return raw
        since, directory, phase, op = at
        return raw + ROW.pack(since, now_s - since, directory, BLOCKED, phase, op)

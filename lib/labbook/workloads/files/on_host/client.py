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

from labbook.workloads.clients.on_host.runner import cpu_seconds, sleep_until
from labbook.workloads.files.on_host.calls import FUNCTIONS, RMDIR
from labbook.workloads.files.on_host.patterns import Deep, Mixed, Renames, Wide
from labbook.workloads.files.on_host.plans import Hot, Plan

PLANS = {"bonnie": Plan, "mixed": Mixed, "hot": Hot, "deep": Deep, "wide": Wide,
         "renames": Renames}
GATE_SECONDS = 0.003   # between looks whether a phase may begin
LOST_SECONDS = 0.05    # after an error that comes at once, again and again
AT_ONCE = {errno.ENOTCONN, errno.ESHUTDOWN, errno.EIO, errno.EROFS, errno.ENOSPC, errno.EACCES}
TOLD_EVERY = 256       # calls, between two notes of the CPU time used
NAP_NS = 200_000_000   # how long a client that is ahead of its times does not look whether to stop
ROW = struct.Struct("<ddHHBB")    # started_s, seconds, directory, errno, phase, op
BLOCKED = 0xFFFF                  # in place of an errno: the call did not come back
HEAD_BYTES = 64
_COUNT, _CPU, _DONE = struct.Struct("<q"), struct.Struct("<d"), struct.Struct("<q")
_BUSY = struct.Struct("<dHBB")    # since when, or IDLE; directory, phase, op
_COUNT_AT, _CPU_AT, _DONE_AT, _BUSY_AT = 0, 8, 16, 24
IDLE = -1e9
MOST_ROWS = 8_000_000


class Client:
    """`gates`: when each phase begins (epoch; 0: not known), `arrived`: how many phases each of the
    host's clients is through with, `stopped`: a byte; all shared."""

    def __init__(self, spec: dict, number: int, sheet: "Sheet", gates, arrived, stopped):
        self.spec, self.number, self._sheet = spec, number, sheet
        self._gates, self._arrived, self._stopped = gates, arrived, stopped
        self._zero = time.perf_counter_ns()
        self._at, self._parent = number - spec["first_client"], os.getppid()
        paths = spec["paths"]
        place = dict(spec, path=paths[self._at % len(paths)])
        self._folder = f"{place['path']}/{spec['folder']}"
        os.makedirs(self._folder, exist_ok=True)
        self._plan = PLANS[spec["pattern"]](place, number)
        rate = spec["rate_per_s"]
        self._every = spec["all_clients"] / rate * 1e9 if rate else 0
        self._before(spec["phases"][0])

    def measure(self, start: float) -> None:
        """`start`: when the clients of all hosts start, seconds since the epoch."""
        try:
            self._measure(start)
        except BaseException:
            self._stopped[0] = 1   # the others are not to wait
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
            if not self._through(number, phase):
                break
        else:
            self._leave_nothing(number, phase)
        self._tell_cpu()
        self._sheet.finish()

    def _before(self, phase: str, number: int = 0) -> None:
        """What must be there when the phase begins. OSError when it cannot be made."""
        self._without_rows(self._plan.before(phase), number)

    def _leave_nothing(self, number: int, phase: str) -> None:
        """After a last delete: the folders too, as far as nobody is at work in them."""
        if phase.endswith("delete"):
            self._without_rows(self._plan.emptied(), number)
            self._without_rows((call for call in [(RMDIR, 0, None, self._folder, None)]), number)

    def _without_rows(self, calls, number: int) -> None:
        """Calls that do not count. A directory that is not empty stays."""
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
        """Wait until the phase may begin; False when it never will."""
        while not (start := self._gates[number]):
            if self._stopped[0] or os.getppid() != self._parent:
                return False
            time.sleep(GATE_SECONDS)
        time.sleep(max(0, start - time.time()))
        return True

    def _through(self, number: int, phase: str) -> bool:
        """Make the phase's calls; False when it was cut short."""
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
            if not (made := made + 1) % TOLD_EVERY:
                self._tell_cpu()
            if failed in AT_ONCE:
                sheet.rest()
                time.sleep(LOST_SECONDS)

    def _tell_cpu(self) -> None:
        self._sheet.used(cpu_seconds() - self._used)

    def _wait_for_turn(self) -> None:
        """Calls have times of their own, all equally far apart; who is late does not wait."""
        self._sheet.rest()
        while not self._stopped[0] and (left := self._due - time.perf_counter_ns()) > 0:
            time.sleep(min(left, NAP_NS) / 1e9)
        self._due += self._every


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

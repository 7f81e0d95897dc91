"""One metadata client: goes through its plan's phases and writes a row an operation."""

import errno
import os
import time

from labbook.workloads.clients.on_host.forks import cpu_seconds
from labbook.workloads.files.on_host.calls import FUNCTIONS, RMDIR
from labbook.workloads.files.on_host.patterns import Mixed, Renames
from labbook.workloads.files.on_host.plans import Hot, Plan
from labbook.workloads.files.on_host.sheet import Sheet
from labbook.workloads.files.on_host.trees import Deep, Wide

PLANS = {"bonnie": Plan, "mixed": Mixed, "hot": Hot, "deep": Deep, "wide": Wide,
         "renames": Renames}
GATE_SECONDS = 0.003   # between looks whether a phase may begin
LOST_SECONDS = 0.05    # after an error that comes at once, again and again
AT_ONCE = {errno.ENOTCONN, errno.ESHUTDOWN, errno.EIO, errno.EROFS, errno.ENOSPC, errno.EACCES}
TOLD_EVERY = 256       # calls, between two notes of the CPU time used
NAP_NS = 200_000_000   # how long a client that is ahead of its times does not look whether to stop


class Client:
    """`gates`: when each phase begins (epoch; 0: not known), `arrived`: how many phases each of the
    host's clients is through with, `stopped`: a byte; all shared."""

    def __init__(self, spec: dict, number: int, sheet: Sheet, gates, arrived, stopped):
        os.dup2(2, 1)   # our parent's output ends with it, also where we cannot
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
        time.sleep(max(0, start - time.time()))
        self._zero = time.perf_counter_ns() + int((start - time.time()) * 1e9)
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

"""Linux I/O priorities of a process's threads, told apart by their names.

The schedulers bfq and mq-deadline go by them; none and kyber do not.
"""

import re
import shlex
from contextlib import nullcontext, suppress
from pathlib import Path

from labbook.errors import InputError, LabbookError, LabError, SystemFailure
from labbook.lab.disk.on_host import iowatch

WATCH = Path(iowatch.__file__)
CLASSES = tuple(iowatch.CLASSES)
LEVELS = range(8)
READY_SECONDS = 20
NAMES = {number: name for name, number in iowatch.CLASSES.items()}
# All of the session that a process leads: what was started may be a shell around the server.
SESSION = 'pgrep -s "$(cut -d" " -f1 {folder}/ids)"'


def io_class(process, threads: str, klass: str, level: int = 4) -> "IoClass":
    """Give the threads of a running process whose names (15 characters at most) have the regular
    expression `threads` in them an I/O class, now and whenever such a thread comes.

    klass: one of CLASSES ("none" is what they had); level: 0, which goes first, to 7, for realtime
    and best-effort. A small program on the host sees to it, in a tenth of a second, until `end()`
    or the lab's end. Several such with names apart may run beside each other. InputError for what
    cannot be; LabError where the host does not allow it: realtime takes root.
    """
    _check(threads, klass, level)
    return IoClass(process, threads, klass, level).begin()


class IoClass:
    """Use `io_class`. In a `with` block it ends with the block."""

    def __init__(self, process, threads, klass, level):
        self.process, self.host = process, process.host
        self.threads, self.klass, self.level = threads, klass, level
        self._watch = None

    def begin(self) -> "IoClass":
        host, root = self.host, self.process.root or self.klass == "realtime"
        if root and not host.may("limits"):
            raise LabError(f"{host.name}: the I/O class {self.klass} takes root, and nothing allows it",
                           remedy="Add limits to the host's `allow` if you agree, or choose "
                                  "best-effort or idle")
        host.put(WATCH, WATCH.name)
        self._watch = host.start(self._free_name(), self._command(), root=root)
        try:
            host.wait_for(lambda: "ready " in self._watch.log_tail(), "the I/O classes",
                          READY_SECONDS, process=self._watch, interval=0.02)
        except SystemFailure as error:
            raise LabError(f"{error.message}: {error.log}") from None
        return self

    def end(self) -> None:
        """Threads get back the class that they had by themselves."""
        self._watch.stop()

    def now(self) -> list[dict]:
        """tid (as the host numbers it), name, klass, level of every thread of the process."""
        said = self.host.run(f"{self._command()} --show", root=self.process.root).stdout
        rows = (line.split(" ", 2) for line in said.splitlines())
        return [{"tid": int(tid), "name": name, **_words(int(priority))}
                for tid, priority, name in rows]

    def seen(self) -> list[dict]:
        """Each klass and level that threads of the process had at once, at that look since `begin()`
        at which they had the most of them; also after the end, and of threads that are gone."""
        told = self._watch.log_tail().splitlines()
        most = [line for line in told if line.startswith("most ")][-1]
        return [_words(int(priority)) for priority in most.split()[1:]]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        with suppress(LabbookError) if kind else nullcontext():     # it would hide what went wrong
            self.end()

    def _command(self) -> str:
        host = self.host
        found = host.run(SESSION.format(folder=shlex.quote(self.process.folder)), check=False,
                         root=self.process.root).stdout.split()
        if not found:
            raise SystemFailure(f"{self.process.name} on {host.name} does not run",
                                log=self.process.log_tail())
        return shlex.join([host.python, "-I", "-S", str(host.root / WATCH.name),
                           *(f"--pid={pid}" for pid in found), f"--threads={self.threads}",
                           f"--class={self.klass}", f"--level={self.level}"])

    def _free_name(self) -> str:
        """Of the watch, beside those of others of this process that run."""
        for number in range(1, 100):
            name = f"{self.process.name}-io-{number}"
            left = self.host.process(name)
            if left is None or not left.alive():
                return name
        raise LabError(f"{self.host.name}: a hundred I/O classes of {self.process.name}")


def _check(threads, klass, level):
    try:
        re.compile(threads)
    except (re.error, TypeError) as error:
        raise InputError(f"{threads!r} is no regular expression: {error}", key="threads") from None
    if klass not in CLASSES:
        raise InputError(f"no I/O class {klass!r}", key="klass", allowed=CLASSES)
    if level not in LEVELS or isinstance(level, bool):
        raise InputError(f"no I/O level {level!r}", key="level", allowed="0 (goes first) to 7")


def _words(priority) -> dict:
    return {"klass": NAMES.get(priority >> iowatch.CLASS_SHIFT, "unknown"), "level": priority & 7}

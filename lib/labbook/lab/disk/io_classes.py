"""Set the Linux I/O priority of a process's threads, selected by their names.

The schedulers bfq and mq-deadline honour it; none and kyber do not.
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
# All processes of the session: the one that was started may be a shell around the server.
SESSION = 'pgrep -s "$(cut -d" " -f1 {folder}/ids)"'


def io_class(process, threads: str, klass: str, level: int = 4) -> "IoClass":
    """Give an I/O class to the threads of a running process whose names match `threads`.

    threads: a regular expression, searched in the name (at most 15 characters); klass: one of
    CLASSES ("none": the default); level: 0 (first) to 7, for realtime and best-effort. A program on
    the host applies it within a tenth of a second, also to threads that start later, until `end()`
    or the lab's end. Several may run for a process with different names, each with a class and level of its own:
    each takes its own away from all threads of other names. InputError for invalid values, and for a class and
    level that threads of the process are given already; LabError where the host's owner does not allow it:
    realtime needs root.
    """
    _check(threads, klass, level)
    return IoClass(process, threads, klass, level).begin()


class IoClass:
    """Returned by `io_class`. As a context manager it ends with the block."""

    def __init__(self, process, threads, klass, level):
        self.process, self.host = process, process.host
        self.threads, self.klass, self.level = threads, klass, level
        self._watch = None

    def begin(self) -> "IoClass":
        """Start the program on the host; return when it has looked at all threads once."""
        host, root = self.host, self.process.root or self.klass == "realtime"
        if root and not host.may("limits"):
            raise LabError(f"{host.name}: the I/O class {self.klass} takes root, and nothing allows it",
                           remedy="Add limits to the host's `allow` if you agree, or choose "
                                  "best-effort or idle")
        host.put(WATCH, WATCH.name)
        self._watch = host.start(self._name(), self._command(), root=root)
        try:
            host.wait_for(lambda: "ready " in self._watch.log_tail(), "the I/O classes",
                          READY_SECONDS, process=self._watch, interval=0.02)
        except BaseException as error:
            with suppress(LabbookError):    # a program that goes on would hold the class against a second try
                self._watch.stop()
            if isinstance(error, SystemFailure):
                raise LabError(f"{error.message}: {error.log}") from None
            raise
        return self

    def end(self) -> None:
        """Stop; the threads lose the class."""
        self._watch.stop()

    def now(self) -> list[dict]:
        """A dict of tid (the host's number), name, klass and level for every thread of the process."""
        output = self.host.run(f"{self._command()} --show", root=self.process.root).stdout
        rows = (line.split(" ", 2) for line in output.splitlines())
        return [{"tid": int(tid), "name": name, **_words(int(priority))}
                for tid, priority, name in rows]

    def seen(self) -> list[dict]:
        """The largest set of (klass, level) that threads of the process had at one moment since
        `begin()`, as dicts. Works after `end()` too."""
        lines = self._watch.log_tail().splitlines()
        most = [line for line in lines if line.startswith("most ")][-1]
        return [_words(int(priority)) for priority in most.split()[1:]]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        with suppress(LabbookError) if kind else nullcontext():     # it would hide the error of the block
            self.end()

    def _command(self) -> str:
        host = self.host
        pids = host.run(SESSION.format(folder=shlex.quote(self.process.folder)), check=False,
                         root=self.process.root).stdout.split()
        if not pids:
            raise SystemFailure(f"{self.process.name} on {host.name} does not run",
                                log=self.process.log_tail())
        return shlex.join([host.python, "-I", "-S", str(host.root / WATCH.name),
                           *(f"--pid={pid}" for pid in pids), f"--threads={self.threads}",
                           f"--class={self.klass}", f"--level={self.level}"])

    def _name(self) -> str:
        """The name of the watch as a process: one for each class and level of this process. InputError while it
        runs."""
        name = f"{self.process.name}-io-{self.process.pid}-{iowatch.value(self.klass, self.level)}"
        watch = self.host.process(name)
        if watch is not None and watch.alive():
            raise InputError(
                f"other threads of {self.process.name} have the I/O class {self.klass}, level {self.level}",
                key="klass", allowed="another class or level, or one expression for all these threads")
        return name


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

"""Keep the Linux I/O priority of a process's threads, selected by name, while this runs.

Standard library only: `python3 -I -S iowatch.py --pid 812 --threads '^Stream' --class idle`. Threads
start, end and change their names, so all are checked periodically. A thread whose name no longer
matches, or that inherited the priority from its creator, loses it.

It prints `ready` after the first check, and `most` with the kernel's numbers of the priorities that
threads have at one moment, whenever these are more than before. It ends when the processes end. Upon
SIGTERM it resets the priorities.
"""

import argparse
import contextlib
import ctypes
import os
import platform
import re
import signal
import time

PAUSE_S = 0.1       # reading the names of 150 threads takes about 1.5 ms
CLASSES = {"none": 0, "realtime": 1, "best-effort": 2, "idle": 3}
CLASS_SHIFT, OF_A_THREAD = 13, 1        # linux/ioprio.h
CALLS = {"x86_64": (251, 252), "aarch64": (30, 31), "riscv64": (30, 31), "ppc64le": (273, 274),
         "s390x": (282, 283)}           # ioprio_set, ioprio_get
ENDINGS = (signal.SIGTERM, signal.SIGINT)
_libc = ctypes.CDLL(None, use_errno=True)


def value(klass, level):
    """The kernel's number; classes idle and none have no levels."""
    return CLASSES[klass] << CLASS_SHIFT | (level if klass in ("realtime", "best-effort") else 0)


def set_priority(tid, priority):
    """OSError when it is not permitted, ProcessLookupError when the thread has ended."""
    _call(0, OF_A_THREAD, tid, priority)


def priority_of(tid):
    return _call(1, OF_A_THREAD, tid)


def _call(which, *arguments):
    if platform.machine() not in CALLS:
        raise OSError(f"no ioprio calls known for {platform.machine()}")
    done = _libc.syscall(CALLS[platform.machine()][which], *arguments)
    if done < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"ioprio: {os.strerror(number)}")
    return done


def threads(pid):
    """{tid: name} of a process; {} when it has ended."""
    names = {}
    try:
        tids = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return names
    for tid in tids:
        try:
            with open(f"/proc/{pid}/task/{tid}/comm") as name:
                names[int(tid)] = name.read().rstrip("\n")
        except OSError:
            continue    # it ended meanwhile
    return names


class Watch:
    def __init__(self, pids, names, priority):
        self.pids, self.names, self.priority = pids, re.compile(names), priority
        self._seen = {}     # tid: name at the last check
        self._most = set()  # the largest set of priorities at one check

    def look(self):
        """Check all threads once; False when no process runs any more."""
        there = {}
        for pid in self.pids:
            there |= threads(pid)
        for tid, name in there.items():
            if self._seen.get(tid) != name:
                self._settle(tid, name)
        self._seen = there
        self._note(there)
        return bool(there)

    def give_back(self):
        """Reset the priority of all threads."""
        for tid in self._seen:
            self._settle(tid, None)

    def _note(self, tids):
        """Print the priorities that these threads have, if they are more than at any earlier check."""
        found = set()
        for tid in tids:
            with contextlib.suppress(ProcessLookupError):
                found.add(priority_of(tid))
        if len(found) > len(self._most):
            self._most = found
            print("most", *sorted(found), flush=True)

    def _settle(self, tid, name):
        try:
            if name is not None and self.names.search(name):
                set_priority(tid, self.priority)
            elif priority_of(tid) == self.priority:
                set_priority(tid, 0)
        except ProcessLookupError:
            pass


def _settings(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pid", type=int, action="append", required=True)
    parser.add_argument("--threads", required=True, help="a regular expression, found in the name")
    parser.add_argument("--class", dest="klass", choices=CLASSES, required=True)
    parser.add_argument("--level", type=int, choices=range(8), default=4, help="0 goes first")
    parser.add_argument("--show", action="store_true", help="print the current priorities, and end")
    return parser.parse_args(arguments)


def show(pids):
    """A line a thread: tid, the kernel's number of the priority, name."""
    for tid, name in sorted(pair for pid in pids for pair in threads(pid).items()):
        try:
            print(tid, priority_of(tid), name)
        except ProcessLookupError:
            pass


def main(arguments=None):
    settings = _settings(arguments)
    if settings.show:
        return show(settings.pid)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    watch = Watch(settings.pid, settings.threads, value(settings.klass, settings.level))
    watch.look()
    print(f"ready {time.time():.3f}", flush=True)
    while not signal.sigtimedwait(ENDINGS, PAUSE_S):
        if not watch.look():
            return None
    return watch.give_back()


if __name__ == "__main__":
    main()

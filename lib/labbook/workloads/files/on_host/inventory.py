"""Asks for all metadata of names: `python -m labbook.workloads.files.on_host.inventory SPEC OUT`.

SPEC is a JSON file (see files.inventory.take), OUT a JSON list of rows. Forked workers ask, each for
one name at a time; while one waits long others take its place, so that a name that hangs delays no
other. In the end workers that hang are left behind.

Names are grouped by directory, a directory itself with what lies in it: that is what a metadata
server owns, and so what hangs or does not.
"""

import errno
import json
import os
import select
import signal
import stat
import sys
import time
from collections import Counter, deque

THERE, MISSING, UNOBTAINABLE, NOT_ASKED = "there", "missing", "unobtainable", "not asked"
KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "link"))
TIMEOUT, LIKE_OTHERS, NO_TIME = "timeout", "like others of its directory", "no time left to ask"
WORKERS = 4          # at once, those with slow calls aside
SLOW_SECONDS = 0.25
MOST_WORKERS = 64
ENOUGH = 3           # calls at once in a directory; when all time out, its other names are not asked


class Worker:
    """A process that takes a name and answers with its row; `name`: the one it is asking for."""

    def __init__(self, path: str):
        self.name, self.since, self.until = None, 0.0, 0.0
        to_it, self._names = os.pipe()
        self.rows, from_it = os.pipe()
        if (pid := os.fork()) == 0:
            for end in (self._names, self.rows):
                os.close(end)
            _serve(path, os.fdopen(to_it), os.fdopen(from_it, "w"))
        for end in (to_it, from_it):
            os.close(end)
        self._pid, self._buffer = pid, b""

    def ask(self, name: str, seconds: float) -> None:
        self.name, self.since = name, time.monotonic()
        self.until = self.since + seconds
        os.write(self._names, json.dumps(name).encode() + b"\n")

    def answer(self) -> dict | None:
        """The row, once all of it has come."""
        read = os.read(self.rows, 1 << 20)
        if not read:
            raise RuntimeError(f"the worker that asked for {self.name!r} has died")
        self._buffer += read
        if not self._buffer.endswith(b"\n"):
            return None
        row, self._buffer, self.name = json.loads(self._buffer), b"", None
        return row

    def leave(self) -> None:
        """SIGKILL, which has no effect as long as the call has no answer."""
        os.kill(self._pid, signal.SIGKILL)
        for end in (self._names, self.rows):
            os.close(end)


def _serve(path, names, rows):
    signal.alarm(0)
    try:
        for line in names:
            rows.write(json.dumps(row_of(path, json.loads(line))) + "\n")
            rows.flush()
    finally:
        os._exit(0)     # never the parent's code, whatever was raised


class Inventory:
    """Asks for names; without any, for everything below the path."""

    def __init__(self, spec: dict):
        self._spec, self._walks = spec, spec["names"] is None
        names = ["."] if self._walks else spec["names"]
        self._folders = {os.path.dirname(name) for name in names}
        self._waiting: dict[str, deque] = {}    # names to ask for, by directory
        self._hung, self._workers, self.rows = Counter(), [], []
        for name in names:
            self._waiting.setdefault(self._folder(name), deque()).append(name)

    def _folder(self, name) -> str:
        """The directory that a name is grouped with."""
        return name if name in self._folders else os.path.dirname(name) or "."

    def run(self) -> list[dict]:
        """All rows, in the order of the names."""
        order = {name: i for i, name in enumerate(self._spec["names"] or ())}
        until = time.monotonic() + self._spec["seconds"]
        while self._hand_out(until) or self._at_work():
            self._collect()
        for names in self._waiting.values():
            for name in names:
                self._without(name, NOT_ASKED, NO_TIME)
        for worker in self._workers:
            worker.leave()
        return sorted(self.rows, key=lambda row: order.get(row["name"], row["name"]))

    def _at_work(self):
        return [worker for worker in self._workers if worker.name is not None]

    def _room(self) -> bool:
        """Whether one more worker may ask: those whose call is slow do not count."""
        at_work, now = self._at_work(), time.monotonic()
        quick = sum(now - worker.since < SLOW_SECONDS for worker in at_work)
        return quick < WORKERS and len(at_work) < MOST_WORKERS

    def _hand_out(self, until) -> bool:
        """Give names to free workers: whether one was given."""
        given = False
        while time.monotonic() < until and self._room():
            if (name := self._next()) is None:
                break
            free = next((worker for worker in self._workers if worker.name is None), None)
            if free is None:
                free = Worker(self._spec["path"])
                self._workers.append(free)
            free.ask(name, self._spec["call_seconds"])
            given = True
        return given

    def _next(self) -> str | None:
        """A name to ask for; names in directories with timeouts come last."""
        busy = Counter(self._folder(worker.name) for worker in self._at_work())
        for folder in sorted(self._waiting, key=lambda one: self._hung[one] > 0):
            if not self._waiting[folder]:
                del self._waiting[folder]
            elif busy[folder] + self._hung[folder] < ENOUGH:
                return self._waiting[folder].popleft()
        return None

    def _collect(self) -> None:
        """Take the answers that have come, and give up those that are too late."""
        busy, now = {worker.rows: worker for worker in self._at_work()}, time.monotonic()
        soon = [worker.until for worker in busy.values()]
        soon += [slow for worker in busy.values() if (slow := worker.since + SLOW_SECONDS) > now]
        for ready in select.select([*busy], [], [], max(0, min(soon) - now))[0]:
            if (row := busy[ready].answer()) is not None:
                self._add(row)
        for worker in self._at_work():
            if worker.until < time.monotonic():
                self._without(worker.name, UNOBTAINABLE, TIMEOUT)
                self._hangs(self._folder(worker.name))
                worker.leave()
                self._workers.remove(worker)

    def _hangs(self, folder: str) -> None:
        """A name of the directory had no answer in time; after ENOUGH of them none is asked."""
        self._hung[folder] += 1
        if self._hung[folder] >= ENOUGH:
            for name in self._waiting.pop(folder, ()):
                self._without(name, UNOBTAINABLE, LIKE_OTHERS)

    def _add(self, row) -> None:
        self.rows.append(row)
        self._hung.pop(self._folder(row["name"]), None)
        if self._walks and row.get("kind") == "directory":
            entries = [os.path.normpath(os.path.join(row["name"], entry))
                       for entry in json.loads(row["entries"])]
            self._waiting.setdefault(row["name"], deque()).extend(entries)

    def _without(self, name, state, why) -> None:
        self.rows.append({"name": name, "state": state, "error": why, "seconds": 0.0})


def row_of(path: str, name: str) -> dict:
    """The row of a name: the results of lstat and the other calls, or the error."""
    began = time.monotonic()
    try:
        row = {"state": THERE, "error": "", **attributes(os.path.join(path, name))}
    except OSError as error:
        word = errno.errorcode.get(error.errno, str(error.errno))
        row = {"state": MISSING if error.errno == errno.ENOENT else UNOBTAINABLE, "error": word}
    return {"name": name, "seconds": time.monotonic() - began, **row}


def attributes(place: str) -> dict:
    found = os.lstat(place)
    kind = next((word for is_it, word in KINDS if is_it(found.st_mode)), "other")
    return {
        "kind": kind, "ino": found.st_ino, "mode": found.st_mode, "uid": found.st_uid,
        "gid": found.st_gid, "nlink": found.st_nlink, "size": found.st_size,
        "mtime_ns": found.st_mtime_ns, "ctime_ns": found.st_ctime_ns, "xattrs": xattrs(place),
        "target": os.readlink(place) if kind == "link" else None,
        "entries": json.dumps(sorted(os.listdir(place))) if kind == "directory" else None,
    }


def xattrs(place: str) -> str:
    try:
        names = os.listxattr(place, follow_symlinks=False)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        names = []
    return json.dumps({name: os.getxattr(place, name, follow_symlinks=False).decode("latin-1")
                       for name in sorted(names)})


def main(spec_path: str, out: str) -> int:
    with open(spec_path) as file:
        spec = json.load(file)
    rows = Inventory(spec).run()
    with open(out, "w") as file:
        json.dump(rows, file)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Asks for all metadata of names: `python -m labbook.workloads.inventory_runner SPEC OUT`.

SPEC is a JSON file (see inventory.take), OUT a JSON list of rows. Forked workers ask, each for one
name at a time; one that gets no answer is left behind, and another takes its place.
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

THERE, MISSING, UNOBTAINABLE = "there", "missing", "unobtainable"
TIMEOUT, LIKE_OTHERS, NO_TIME = "timeout", "like others of its directory", "no time left to ask"
WORKERS = 4
ENOUGH = 2   # timeouts in a directory that gave nothing after them: the rest of it is not asked
KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "link"))


def asked(path: str, name: str) -> dict:
    """The row of a name."""
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


class Worker:
    """A process that is given a name and answers with its row, `name` while it is at it."""

    def __init__(self, path: str):
        self.name, self.until = None, 0.0
        to_it, self._names = os.pipe()
        self.rows, from_it = os.pipe()
        if (pid := os.fork()) == 0:
            for end in (self._names, self.rows):
                os.close(end)
            _serve(path, os.fdopen(to_it), os.fdopen(from_it, "w"))
        for end in (to_it, from_it):
            os.close(end)
        self._pid, self._kept = pid, b""

    def ask(self, name: str, until: float) -> None:
        self.name, self.until = name, until
        os.write(self._names, json.dumps(name).encode() + b"\n")

    def answer(self) -> dict | None:
        """The row, once it is there as a whole."""
        read = os.read(self.rows, 1 << 20)
        if not read:
            raise RuntimeError(f"the worker that asked for {self.name!r} has died")
        self._kept += read
        if not self._kept.endswith(b"\n"):
            return None
        row, self._kept, self.name = json.loads(self._kept), b"", None
        return row

    def leave(self) -> None:
        """SIGKILL, which may come to nothing as long as the call has no answer."""
        os.kill(self._pid, signal.SIGKILL)
        for end in (self._names, self.rows):
            os.close(end)


def _serve(path, names, rows):
    signal.alarm(0)
    for line in names:
        rows.write(json.dumps(asked(path, json.loads(line))) + "\n")
        rows.flush()
    os._exit(0)


class Inventory:
    """Asks for names, and where none are given for all that is found below the path."""

    def __init__(self, spec: dict):
        self._spec, self._walks = spec, spec["names"] is None
        self._queue = deque(["."] if self._walks else spec["names"])
        self._later, self._hung, self._workers, self.rows = deque(), Counter(), [], []

    def run(self) -> list[dict]:
        """All rows, the given names' in their order."""
        order = {name: i for i, name in enumerate(self._spec["names"] or ())}
        until = time.monotonic() + self._spec["seconds"]
        while self._hand_out(until) or self._at_work():
            self._collect()
        for name in (*self._queue, *self._later):
            self._without(name, NO_TIME)
        for worker in self._workers:
            worker.leave()
        return sorted(self.rows, key=lambda row: order.get(row["name"], row["name"]))

    def _at_work(self):
        return [worker for worker in self._workers if worker.name is not None]

    def _hand_out(self, until) -> bool:
        """Give names to whoever is free: whether one was given."""
        given = False
        while time.monotonic() < until and len(self._at_work()) < WORKERS:
            if (name := self._next()) is None:
                break
            free = next((worker for worker in self._workers if worker.name is None), None)
            if free is None:
                free = Worker(self._spec["path"])
                self._workers.append(free)
            free.ask(name, time.monotonic() + self._spec["call_seconds"])
            given = True
        return given

    def _next(self) -> str | None:
        """A name to ask for; those of directories with timeouts come last."""
        while self._queue:
            if not self._hung[os.path.dirname(self._queue[0])]:
                return self._queue.popleft()
            self._later.append(self._queue.popleft())
        while self._later:
            name = self._later.popleft()
            if self._hung[os.path.dirname(name)] < ENOUGH:
                return name
            self._without(name, LIKE_OTHERS)
        return None

    def _collect(self) -> None:
        """Answers, as soon as there are some, and the end of waiting for others."""
        busy = {worker.rows: worker for worker in self._at_work()}
        left = min(worker.until for worker in busy.values()) - time.monotonic()
        for ready in select.select([*busy], [], [], max(0, left))[0]:
            if (row := busy[ready].answer()) is not None:
                self._add(row)
        for worker in self._at_work():
            if worker.until < time.monotonic():
                self._without(worker.name, TIMEOUT)
                self._hung[os.path.dirname(worker.name)] += 1
                worker.leave()
                self._workers.remove(worker)

    def _add(self, row) -> None:
        self.rows.append(row)
        self._hung.pop(os.path.dirname(row["name"]), None)
        if self._walks and row.get("kind") == "directory":
            self._queue.extend(os.path.normpath(os.path.join(row["name"], entry))
                               for entry in json.loads(row["entries"]))

    def _without(self, name, why) -> None:
        self.rows.append({"name": name, "state": UNOBTAINABLE, "error": why, "seconds": 0.0})


def main(spec_path: str, out: str) -> int:
    with open(spec_path) as file:
        spec = json.load(file)
    rows = Inventory(spec).run()
    with open(out, "w") as file:
        json.dump(rows, file)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Clients of files whose every call is part of a history:
`python -m labbook.workloads.files.on_host.registers OUT`.

In each folder are registers and a set. A register is a file: who writes it makes a new file with the
value in it and renames it over the old one; who reads it opens it by its name. The set is a
directory: clients add files of names that never existed, and list it. All clients do all of that.

A step is [op, key, value, begun_s, ended_s, outcome, error]. The beginning of each is written down before
it is made, since a call on a file system that has lost its server may never return.
"""

import json
import mmap
import os
import random
import sys
import time
from io import BytesIO

from labbook.workloads.clients.on_host.memory import Memory
from labbook.workloads.clients.on_host.runner import (
    Runner,
    cpu_seconds,
    main,
    sleep_until,
    until_input_closes,
)
from labbook.workloads.files.on_host.runner import leave

WRITE, READ, LIST = "write", "read", "list"
OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
THERE = "there"             # the value of what is in a set
REPLACE, ADD = "replace", "add"     # the two kinds of writes
WEIGHTS = {REPLACE: 3, READ: 4, ADD: 2, LIST: 1}
SET = "set"                 # the name of a folder's set
BLOCKED = "blocked"         # the error of a call that did not return
NAP_SECONDS = 0.2           # between two looks whether to stop
MOST_BYTES = 4096           # of a value
FILE_MODE = 0o600


class NotSent(Exception):
    """The step had failed before the call that could have had an effect."""


class Client:
    """`number` counts over all hosts."""

    def __init__(self, spec: dict, number: int, part: str, stopped):
        self.spec, self.number, self._stopped = spec, number, stopped
        paths = spec["paths"]
        self._folders = folders_of(spec, paths[(number - spec["first_client"]) % len(paths)])
        for folder in self._folders:
            os.makedirs(f"{folder}/{SET}", exist_ok=True)
        self._draw = random.Random(f"{spec['seed']} {number}")
        self._diary = Diary(part)

    def measure(self, start: float) -> None:
        zero, cpu = sleep_until(start), cpu_seconds()
        memory, every, count = Memory(self.spec["clients"]), 1 / self.spec["calls_per_s"], 0

        def now():
            return (time.perf_counter_ns() - zero) / 1e9

        due = every * self.number / self.spec["all_clients"]
        while self._wait(due, now):
            due = max(due + every, now())       # calls that were missed are not made up for
            self.call(count, now)
            self._diary.used(cpu_seconds() - cpu)
            memory.look()
            count += 1

    def call(self, count: int, now) -> None:
        """Make one call, and write down its step."""
        kind, = self._draw.choices(list(WEIGHTS), WEIGHTS.values())
        at = self._draw.randrange(len(self._folders))
        folder, value = self._folders[at], None
        if kind in (REPLACE, READ):
            key = register_key(at, self._draw.randrange(self.spec["keys"]))
            value = f"{self.number}.{count}" if kind == REPLACE else None
        else:
            key, value = (member_key(at, f"{self.number}.{count}"), THERE) if kind == ADD else (set_key(at), None)
        op = WRITE if kind in (REPLACE, ADD) else kind
        self._diary.begin(op, key, value, now())
        try:
            found, error, outcome = self._make(kind, folder, key, value, count), "", OK
        except (OSError, NotSent) as raised:
            found, error = value, f"{type(raised).__name__}: {raised}"
            outcome = outcome_of(op, raised)
        self._diary.end(found, now(), outcome, error)

    def _make(self, kind: str, folder: str, key: str, value, count: int):
        """The value that was written or read."""
        name = key.rpartition("/")[2]
        if kind == REPLACE:
            replace(f"{folder}/{name}", f"{folder}/new-{self.number}.{count}", value)
        elif kind == ADD:
            os.close(os.open(f"{folder}/{SET}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
        elif kind == READ:
            return value_of(f"{folder}/{name}")
        else:
            return [key + member for member in os.listdir(f"{folder}/{SET}")]
        return value

    def _wait(self, due: float, now) -> bool:
        """Wait for the next call's time; False at the end."""
        while not self._stopped[0] and now() < self.spec["seconds_at_most"]:
            if (left := due - now()) <= 0:
                return True
            time.sleep(min(left, NAP_SECONDS))
        return False


def folders_of(spec: dict, path: str) -> list[str]:
    return [f"{path}/{folder}" for folder in spec["folders"]]


def register_key(folder: int, number: int) -> str:
    return f"{folder}/r{number}"


def set_key(folder: int) -> str:
    """The prefix of its members' keys."""
    return f"{folder}/{SET}/"


def member_key(folder: int, name: str) -> str:
    return set_key(folder) + name


def replace(path: str, new: str, value: str) -> None:
    """Give the file at `path` this value, at once. NotSent when it certainly has the old one."""
    try:
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        try:
            os.write(file, value.encode())
        finally:
            os.close(file)
    except OSError as error:
        raise NotSent(f"{type(error).__name__}: {error}") from error
    os.rename(new, path)


def value_of(path: str) -> str | None:
    """The value in a file; None if there is no file."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return os.read(file, MOST_BYTES).decode(errors="backslashreplace")
    finally:
        os.close(file)


def outcome_of(op: str, error: Exception) -> str:
    """How a call ended that raised this error. Whatever a server answers, it may have done what it was
    asked for: a client asks a server that took over again, which may find it done."""
    return UNKNOWN if op == WRITE and not isinstance(error, NotSent) else FAILED


def contents(spec: dict) -> list[tuple[dict, dict]]:
    """Of each of the host's paths ({key: value} of the registers, {prefix: keys} of the sets): called in a
    host's engine."""
    found = []
    for path in spec["paths"]:
        folders = folders_of(spec, path)
        found.append((
            {register_key(at, number): value_of(f"{folder}/{register_key(at, number).rpartition('/')[2]}")
             for at, folder in enumerate(folders) for number in range(spec["keys"])},
            {set_key(at): [member_key(at, name) for name in os.listdir(f"{folder}/{SET}")]
             for at, folder in enumerate(folders)}))
    return found


class Diary:
    """A client's steps, in a file: lines of JSON, which another process can read at any time."""

    def __init__(self, path: str):
        self._file = open(path, "w", buffering=1)

    def begin(self, *step) -> None:
        """op, key, value, begun_s."""
        self._write("begin", *step)

    def end(self, *step) -> None:
        """value, ended_s, outcome, error."""
        self._write("end", *step)

    def used(self, cpu_s: float) -> None:
        self._write("cpu", cpu_s)

    def _write(self, *line) -> None:
        self._file.write(json.dumps(line) + "\n")


def read_diary(path: str, cut_s: float | None) -> tuple[list[list], float, bool]:
    """(steps, CPU seconds, whether a call had not returned) of a diary. That call is the last step,
    given up at `cut_s`: nobody knows whether it had an effect."""
    steps, begun, cpu_s = [], None, 0.0
    with open(path) as file:
        lines = [json.loads(line) for line in file if line.endswith("\n")]
    for kind, *rest in lines:
        if kind == "begin":
            begun = rest
        elif kind == "end":
            (op, key, _, begun_s), (value, *ending) = begun, rest
            steps.append([op, key, value, begun_s, *ending])
            begun = None
        else:
            cpu_s, = rest
    if begun:
        steps.append([*begun, cut_s, UNKNOWN if begun[0] == WRITE else FAILED, BLOCKED])
    return steps, cpu_s, begun is not None


class Registers(Runner):
    """A host's clients."""

    def __init__(self, spec: dict, out: str):
        super().__init__(spec, out)
        self._stopped = mmap.mmap(-1, 1)
        self._heads = {}

    def client(self, number):
        return Client(self.spec, number, self.part(number), self._stopped)

    def lead(self, forks) -> bool:
        until_input_closes()
        self._stopped[0] = 1
        cut_s = leave(forks, self.spec["call_seconds"])
        well = forks.wait() if cut_s is None else True
        for number in self.numbers:
            history, cpu_s, blocked = read_diary(self.part(number), cut_s)
            well = well and (cut_s is not None or not blocked)
            self._heads[number] = {"client": number, "cpu_s": cpu_s, "history": history}
        return well

    def head(self, number):
        return self._heads[number]

    def rows(self, number):
        return BytesIO()


if __name__ == "__main__":
    sys.exit(main(Registers))

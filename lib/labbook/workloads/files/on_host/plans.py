"""Which calls a metadata client makes, phase by phase: bonnie++'s plan, and the base of others.

The rules of bonnie++ 2.00, observed in its system calls: file i of N is named by ten hexadecimal
digits of i, with up to twelve random letters after them (sequential) or before them (random). A
directory is full when it has one file more than asked for, so that the last one has fewer.
Sequential stat and delete go through the directories and take names in the order of readdir; random
ones go through all names in a random order. Delete removes the directories too. Left out is the
sync() after create and delete: it is the whole machine's, and does not involve FUSE.
"""

import os
import random
import string
from typing import NamedTuple

from labbook.workloads.files.on_host.calls import (
    CREATE,
    ENTER,
    MKDIR,
    MKDIR_ONCE,
    NAMES,
    OPEN,
    RMDIR,
    STAT,
    UNLINK,
)

LETTERS = string.ascii_letters + string.digits
MOST_LETTERS = 12
ONCE = ("delete",)   # phases that cannot be repeated


class Files(NamedTuple):
    """A set of files: `folder`, open; its `path`, None where the folder has other files too; each
    directory's path below the folder, and the names of its files."""

    folder: int
    path: str | None
    places: list[str]
    names: list[list[str]]

    def all(self) -> list[tuple[int, str]]:
        """(number of the directory, name relative to the folder) of each file."""
        return [(number, f"{place}/{name}")
                for number, (place, names) in enumerate(zip(self.places, self.names))
                for name in names]


def file_names(files: int, directories: int, draw: random.Random, letters_first: bool,
               tail: str = "") -> list[list[str]]:
    """The names that bonnie++ would give, of each directory; `tail` makes them unique to a
    client."""
    found = [[] for _ in range(directories)]
    for i in range(files * directories):
        letters = "".join(draw.choices(LETTERS, k=draw.randint(0, MOST_LETTERS)))
        parts = (letters, f"{i:010x}") if letters_first else (f"{i:010x}", letters)
        found[i // (files + 1)].append("".join(parts) + tail)
    return found


class Plan:
    """bonnie++'s plan, and a client's state: the sets of files that it has made.

    `spec`: path and folder (where it works), directories, files, shared, pins, homes, seed; fresh: further
    mounts of the same file system, of which each phase of rereading goes on in the next.
    """

    def __init__(self, spec: dict, number: int):
        self.spec, self.number = spec, number
        self.draw = random.Random(f"{spec['seed']} {number}")
        self.sets: list[Files] = []
        self._fresh = list(spec.get("fresh", ()))

    def before(self, phase: str):
        """Calls before the phase begins, which are not measured."""
        if phase.endswith("create"):
            yield from self.emptied()
            yield from self.new_set(phase)
        elif phase.endswith("reread"):
            yield from self.move_on()

    def move_on(self):
        """Open all folders in the next fresh mount, and leave the earlier one."""
        before, after = self.spec["path"], self._fresh.pop(0)
        self.spec = dict(self.spec, path=after)
        for number, made in enumerate(self.sets):
            path = made.path and after + made.path.removeprefix(before)
            folder = yield OPEN, 0, None, path or after, None
            os.close(made.folder)
            self.sets[number] = made._replace(folder=folder, path=path)

    def calls(self, phase: str, more):
        """The phase's calls; repeated as long as `more()`, which is called after each pass."""
        act = getattr(self, phase.rpartition("_")[2])
        yield from act(phase)
        while self.repeats(phase) and more():
            if phase.endswith("create") and not (yield from self.new_set(phase)):
                return
            yield from act(phase)

    def repeats(self, phase: str) -> bool:
        return phase.rpartition("_")[2] not in ONCE

    def new_set(self, phase: str):
        """Make a folder and its directories: whether the folder could be made."""
        own, tail = ("", f"-{self.number}") if self.spec["shared"] else (f"-{self.number}", "")
        name, homes = f"{phase}{own}.{len(self.sets)}", self.spec["homes"]
        path = self.spec["path"] if homes else f"{self.spec['path']}/{self.spec['folder']}/{name}"
        folder = yield OPEN, 0, None, path, None
        if folder is None:
            return False
        code, places = MKDIR_ONCE if self.spec["shared"] else MKDIR, self.places()
        if homes:
            places = [f"{self._in_turn(homes, number)}/{self.spec['folder']}-{name}-{place}"
                      for number, place in enumerate(places)]
        for number, place in enumerate(places):
            yield code, number, folder, place, self.pin(number)
        self.sets.append(Files(folder, None if homes else path, places, file_names(
            self.spec["files"], len(places), self.draw, "sequential" not in phase, tail)))
        return True

    def places(self) -> list[str]:
        return [f"{number:05d}" for number in range(self.spec["directories"])]

    def pin(self, number: int) -> int | None:
        """The rank for a directory."""
        return self._in_turn(self.spec["pins"], number)

    def _in_turn(self, items, number: int):
        """The item for a directory, in turn; clients with directories of their own begin at
        different ones."""
        first = 0 if self.spec["shared"] else self.number
        return items[(first + number) % len(items)] if items else None

    def create(self, _):
        """All files of the last set."""
        made = self.sets[-1]
        for number, name in made.all():
            yield CREATE, number, made.folder, name, None

    def stat(self, phase):
        yield from self._through(STAT, phase)

    reread = stat

    def delete(self, phase):
        yield from self._through(UNLINK, phase)
        if self.own():
            yield from self._folders_too()

    def emptied(self):
        """Remove what is left of shared directories; the last client can."""
        yield from self._folders_too()

    def own(self) -> bool:
        """Whether no other client works in the directories."""
        return not self.spec["shared"]

    def _folders_too(self):
        """Remove directories, the last one first, since one may lie in another."""
        while self.sets:
            made = self.sets.pop(0)
            for number, place in reversed([*enumerate(made.places)]):
                yield RMDIR, number, made.folder, place, None
            os.close(made.folder)
            if made.path is not None:
                yield RMDIR, 0, None, made.path, None

    def _through(self, code: int, phase: str):
        """A call for each file, in the order of readdir or at random."""
        for made in self.sets:
            if "sequential" in phase:
                yield from self._in_order_of_readdir(code, made)
                continue
            files = made.all()
            self.draw.shuffle(files)
            for number, name in files:
                yield code, number, made.folder, name, None

    def _in_order_of_readdir(self, code: int, made: Files):
        for number, (place, names) in enumerate(zip(made.places, made.names)):
            entered = yield ENTER, number, made.folder, place, None
            if entered is None:
                continue
            opened, entries = entered
            mine = frozenset(names)
            try:
                with entries:
                    for entry in entries:
                        if entry.name in mine:
                            yield code, number, opened, entry.name, None
            except OSError:   # readdir failed: called again, it is a row
                yield NAMES, number, made.folder, place, None
            finally:
                os.close(opened)


class Hot(Plan):
    """All clients in one directory, which stays the same however often files are made in it."""

    def __init__(self, spec: dict, number: int):
        super().__init__(dict(spec, directories=1, shared=True), number)

    def new_set(self, phase: str):
        number = len(self.sets)
        if not number:
            return (yield from super().new_set(phase))
        names = file_names(self.spec["files"], 1, self.draw, "sequential" not in phase, f"-{self.number}.{number}")
        first = self.sets[0]
        self.sets.append(first._replace(folder=os.dup(first.folder), names=names))
        return True

    def _folders_too(self):
        for again in self.sets[1:]:     # of the same directory
            os.close(again.folder)
        del self.sets[1:]
        yield from super()._folders_too()

"""Metadata clients' plans beside bonnie++'s: mixed calls, renames, and trees of directories."""

from labbook.workloads.files.on_host.calls import (
    CREATE,
    MKDIR,
    NAMES,
    OPEN,
    RENAME,
    RMDIR,
    STAT,
    UNLINK,
)
from labbook.workloads.files.on_host.plans import ONCE, Files, Plan, file_names

# Weights of a mixed client's calls; it creates as many files as it deletes.
MIX = {STAT: 60, CREATE: 12, UNLINK: 12, RENAME: 12, NAMES: 4}
NEXT, WEIGHTS = tuple(MIX), tuple(MIX.values())
DRAWN = 1024   # calls at once


class Mixed(Plan):
    """Calls on files that exist at the start; a pass has as many calls as there are files."""

    def before(self, phase):
        yield from self.new_set(phase)
        yield from self.create(phase)
        self._there, self._made = self.sets[0].all(), 0

    def mixed(self, _):
        left = self.spec["files"] * self.spec["directories"]
        while left > 0:
            for code in self.draw.choices(NEXT, WEIGHTS, k=min(left, DRAWN)):
                yield from self._one(code)
            left -= DRAWN

    def _one(self, code):
        there, (folder, _, places, _) = self._there, self.sets[0]
        if code == CREATE or not there:
            number = int(self.draw.random() * len(places))
            name = self._new(places[number])
            if (yield CREATE, number, folder, name, None):
                there.append((number, name))
            return
        at = int(self.draw.random() * len(there))
        number, name = there[at]
        if code == NAMES:
            yield NAMES, number, folder, places[number], None
        elif code == STAT:
            yield STAT, number, folder, name, None
        elif code == UNLINK:
            there[at] = there[-1]
            there.pop()
            yield UNLINK, number, folder, name, None
        else:
            new = self._new(places[number])
            if (yield RENAME, number, folder, name, new):
                there[at] = number, new

    def _new(self, place: str) -> str:
        """A name that never existed."""
        self._made += 1
        return f"{place}/n{self._made:09x}-{self.number}"


class Renames(Plan):
    """Rename each file in its directory; then move each to the next directory."""

    def before(self, phase):
        if not self.sets:
            yield from self.new_set(phase)
            yield from self.create(phase)
            self._there, self._turn = self.sets[0].all(), 0

    def rename(self, _):
        yield from self._each(0)

    def across(self, _):
        yield from self._each(1)

    def _each(self, further: int):
        """Move each file `further` directories on."""
        folder, _, places, _ = self.sets[0]
        self._turn += 1
        for at, (number, name) in enumerate(self._there):
            then = (number + further) % len(places)
            first = name.rpartition("/")[2].partition("~")[0]
            new = f"{places[then]}/{first}~{self._turn:x}"
            if (yield RENAME, number, folder, name, new):
                self._there[at] = then, new


class Wide(Plan):
    """A tree is a folder of `directories` directories, each with `files` files. With `shared` all
    clients' trees lie in one folder, else in one of each client's own."""

    def before(self, phase):
        if phase == "mkdir":
            own = "" if self.spec["shared"] else f"-{self.number}"
            self._path = f"{self.spec['path']}/{self.spec['folder']}/trees{own}"
            self._trees = yield OPEN, 0, None, self._path, None

    def repeats(self, phase):
        return phase not in (*ONCE, "mkdir")

    def places(self):
        return [f"{number:x}" for number in range(self.spec["directories"])]

    def mkdir(self, phase):
        yield from self.new_set(phase)

    def new_set(self, _):
        """Make a further tree: whether it could be made. Its files are named by `create`."""
        top, places = f"{len(self.sets):x}-{self.number}", self.places()
        if not (yield MKDIR, 0, self._trees, top, None):
            return False
        path = f"{self._path}/{top}"
        folder = yield OPEN, 0, None, path, None
        if folder is None:
            return False
        for number, place in enumerate(places):
            yield MKDIR, number, folder, place, self.pin(number)
        self.sets.append(Files(folder, path, places, []))
        return True

    def create(self, _):
        """All files of the last tree, if any."""
        for made in self.sets[-1:]:
            made.names.extend(file_names(self.spec["files"], len(made.places), self.draw, True))
            for number, name in made.all():
                yield CREATE, number, made.folder, name, None

    def readdir(self, _):
        for made in self.sets:
            for number, place in enumerate(made.places):
                yield NAMES, number, made.folder, place, None

    def emptied(self):
        yield RMDIR, 0, None, self._path, None

    def own(self):
        return True


class Deep(Wide):
    """Each directory lies in the one before it."""

    def places(self):
        return ["/".join(["d"] * (number + 1)) for number in range(self.spec["directories"])]

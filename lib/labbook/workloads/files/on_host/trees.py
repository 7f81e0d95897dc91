"""Metadata clients' plans for trees: directories beside each other or each in the one before."""

from labbook.workloads.files.on_host.calls import CREATE, MKDIR, NAMES, OPEN, RMDIR
from labbook.workloads.files.on_host.plans import ONCE, Files, Plan, file_names


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
        """A further tree: whether it is there. Its files are named when they are made."""
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
        """All files of the last tree, if there is one."""
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

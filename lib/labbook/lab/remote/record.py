"""What this machine writes down of the hosts that a lab has: enough to reach and clean them later."""

import getpass
import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from labbook.lab.host.host import Host, Login
from labbook.lab.local.journal import Journal

IN_USE = "in-use"       # in a host's root folder: which lab has it; .new-folders, beside it, tells
                        # what the root folder took
MARK = "LABBOOK_LAB"    # in the environment of all that runs in a lab's hosts
WITHOUT_ROOT = {"software"}     # kinds of `allow` that take no sudo


@dataclass(frozen=True)
class Taken:
    """A host of the user's that a lab takes. `new_folders`: the lab's root folder took,
    the innermost first; they go again when they are empty."""

    name: str
    data: str
    login: Login
    root: str
    python: str
    allow: tuple[str, ...]
    new_folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, real, new_folders=()) -> "Taken":
        return cls(real.name, real.data, real.login, str(real.root), real.python,
                   tuple(sorted(real.allow)), tuple(new_folders))

    @property
    def sudo(self) -> bool:
        return bool(set(self.allow) - WITHOUT_ROOT)

    def lab_folder(self, lab_id: str) -> PurePosixPath:
        return PurePosixPath(self.root) / lab_id

    def host(self) -> Host:
        """For what is done to the host itself, outside of any lab host's folder and limits."""
        return Host(self.name, "", "", self.data, self.login, PurePosixPath("/"), self.python,
                    sudo=self.sudo, allow=frozenset(self.allow))


def write(folder: Path, taken: Taken) -> None:
    Journal(folder).write("taken", **asdict(taken))


def write_undone(folder: Path, taken: Taken) -> None:
    Journal(folder).write("undone", name=taken.name)


def still_taken(folder: Path) -> list[Taken]:
    """Hosts on which something may be left, from the journal in the lab's state folder."""
    left = {}
    for entry in Journal(folder).entries():
        kind = entry.pop("made")
        if kind == "undone":
            left.pop(entry["name"], None)
        elif kind == "taken":
            entry["login"] = login_of(entry["login"])
            left[entry["name"]] = Taken(**{k: tuple(v) if isinstance(v, list) else v
                                           for k, v in entry.items()})
    return list(left.values())


def login_of(facts: dict) -> Login:
    return Login(**{**facts, "jump": login_of(facts["jump"]) if facts["jump"] else None})


def driver() -> str:
    """Who takes hosts: user@machine, and what tells machines of one name apart."""
    import hashlib

    try:
        machine = Path("/etc/machine-id").read_text()
    except OSError:
        machine = ""
    mark = hashlib.sha256(machine.encode()).hexdigest()[:6]
    return f"{getpass.getuser()}@{platform.node()} ({mark})"


def claim(lab_id: str, time: str) -> str:
    """The content of a host's `in-use` file: a line of JSON."""
    return json.dumps({"lab": lab_id, "by": driver(), "time": time})

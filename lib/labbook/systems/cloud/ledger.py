"""The ledger of what was made on a cloud, and its removal by the ledger.

Each resource is recorded before it is made, under a unique name, so that it can be found and removed
even if its id was never received.
"""

import os
import re
import secrets
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from labbook.errors import InputError, LabbookError
from labbook.lab.journal import Journal

JOURNAL = "journal"     # name of the file
ORDER = ("server", "volume", "image", "key", "flavor")   # of removal: users before what they use
SECONDS, INTERVAL_S = 300, 1.0
# How long a resource is looked for that was requested before a kill and never reported: the cloud
# may still be making it.
LOOK_S = 5.0


@dataclass
class Entry:
    """What may be on the cloud under `name`. ids: None until the cloud has answered."""

    kind: str
    name: str
    ids: list[str] | None = None
    gone: set[str] = field(default_factory=set)

    @property
    def left(self) -> bool:
        return self.ids is None or not set(self.ids) <= self.gone


class Ledger:
    """In memory, for a cloud that is removed with its lab.

    mark: the study's id, which every resource carries and every name begins with.
    """

    def __init__(self, mark: str):
        self.mark = mark
        self.entries: dict[str, Entry] = {}
        self._run = secrets.token_hex(2)    # the cloud may still have names of an earlier run

    @contextmanager
    def making(self, kind: str, label: str = ""):
        """Record an entry, yield it, and record the ids that the caller puts into it.

        After an error the entry remains as one that may have been made, unless the cloud refused.
        """
        label = re.sub("[^A-Za-z0-9]+", "-", label)     # allowed in names by every cloud
        name = "-".join(filter(None, (self.mark, self._run, str(len(self.entries) + 1), label)))
        entry = self.entries[name] = Entry(kind, name)
        self._write(kind, name=name)
        try:
            yield entry
        except LabbookError as error:
            refused = isinstance(error, InputError) or getattr(error, "refused", False)
            if refused and not getattr(error, "perhaps_made", False):
                self.record_removed(entry)
            raise
        self._write("known", name=name, ids=entry.ids)

    def record_gone(self, ids) -> None:
        """Record that the resources with these ids are gone."""
        ids = set(ids)
        for entry in self.left():
            if mine := ids & set(entry.ids or ()):
                entry.gone |= mine
                self._write("gone", name=entry.name, ids=sorted(mine))

    def record_removed(self, entry: Entry) -> None:
        """Record that no resource has the entry's name any more."""
        entry.ids = []
        self._write("known", name=entry.name, ids=[])

    def left(self) -> list[Entry]:
        """Entries that may still be on the cloud, oldest first."""
        return [entry for entry in self.entries.values() if entry.left]

    def _write(self, made: str, **facts) -> None:
        pass


class JournaledLedger(Ledger):
    """In a folder's journal, which survives this process, a reboot and a power failure."""

    def __init__(self, mark: str, folder: Path):
        super().__init__(mark)
        self._journal = Journal(folder)
        for line in self._journal.entries():
            self._read(line)

    def begin(self, **about) -> None:
        """Record which cloud it is and how it is reached."""
        self._write("cloud", mark=self.mark, **about)

    def about(self) -> dict:
        """What `begin` recorded; {} before."""
        return next((line for line in self._journal.of("cloud")), {})

    def _read(self, line):
        kind, name = line["made"], line.get("name")
        if kind == "known":
            self.entries[name].ids = line["ids"]
        elif kind == "gone":
            self.entries[name].gone |= set(line["ids"])
        elif kind == "cloud":
            self.mark = line["mark"]
        else:
            self.entries[name] = Entry(kind, name)

    def _write(self, made, **facts):
        self._journal.write(made, **facts)
        with open(self._journal.path, "rb") as file:
            os.fsync(file.fileno())     # the cloud survives this machine's power failure


def remove(api, ledger, seconds: float = SECONDS) -> list[str]:
    """Remove everything in the ledger, kind by kind; returns a line for each failure with its reason."""
    problems = []
    try:
        for kind in ORDER:
            problems += _remove(api, ledger, kind, seconds)
    except LabbookError as error:   # the cloud does not answer: the rest would fail too
        problems.append(str(error))
    return problems


def _remove(api, ledger, kind, seconds):
    began, why = time.monotonic(), {}
    pending = [entry for entry in ledger.left() if entry.kind == kind]
    seen = set()    # names that the cloud has listed; a moment after their making it may not list them yet
    while pending:
        passed = time.monotonic() - began
        pending = [e for e in pending if not _gone(api, ledger, e, seen, passed, why)]
        if pending and passed > seconds:
            return [f"{kind} {e.name} stays: {why.get(e.name, f'not gone within {seconds:g} s')}"
                    for e in pending]
        if pending:
            time.sleep(INTERVAL_S)
    return []


def _gone(api, ledger, entry, seen, passed, why) -> bool:
    """Whether nothing of the entry is left; if something is, its removal is requested (again)."""
    ids = api.find(entry.kind, entry.name, entry.ids or ())
    if ids:
        seen.add(entry.name)
    elif entry.name in seen or passed >= LOOK_S:
        ledger.record_removed(entry)
        return True
    for one in ids:
        try:
            api.delete(entry.kind, one)
        except InputError:              # credentials or permissions: repeating would not help
            raise
        except LabbookError as error:   # still in use: requested again later
            why[entry.name] = str(error)
    return False

"""The journal of what was made on a cloud: each thing is written down before it is made, under a
name that nothing else has, so that it is found there even when its id was never learnt."""

import os
import re
import secrets
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from labbook.errors import InputError, LabbookError
from labbook.lab.local.journal import Journal

JOURNAL = "journal"     # the file's name in its folder
ORDER = ("server", "volume", "image", "key", "flavor")   # what uses another goes before it
SECONDS, INTERVAL_S = 300, 1.0
# For so long what was asked for before a kill, and never heard of, is looked for: the cloud may
# still have been at it.
LOOK_S = 5.0


@dataclass
class Entry:
    """Something of `kind` that may be on the cloud under `name`. `ids`: None before it is known
    whether it was made."""

    kind: str
    name: str
    ids: list[str] | None = None
    gone: set[str] = field(default_factory=set)

    @property
    def left(self) -> bool:
        return self.ids is None or not set(self.ids) <= self.gone


class Ledger:
    """In memory, for a cloud that goes with its lab. `mark` is the study's id: what is made carries
    it, and its name begins with it."""

    def __init__(self, mark: str):
        self.mark = mark
        self.entries: dict[str, Entry] = {}
        self._run = secrets.token_hex(2)    # a cloud may still know the names of the run before

    @contextmanager
    def making(self, kind: str, label: str = ""):
        """Yields the entry, which is written down by then; put its ids in. After an error it stays
        as one that may have been made, unless the cloud said that it refused."""
        label = re.sub("[^A-Za-z0-9]+", "-", label)     # what every cloud takes in every name
        name = "-".join(filter(None, (self.mark, self._run, str(len(self.entries) + 1), label)))
        entry = self.entries[name] = Entry(kind, name)
        self._write(kind, name=name)
        try:
            yield entry
        except LabbookError as error:
            if isinstance(error, InputError) or getattr(error, "refused", False):
                self.strike_entry(entry)
            raise
        self._write("known", name=name, ids=entry.ids)

    def strike(self, ids) -> None:
        """These are gone from the cloud."""
        ids = set(ids)
        for entry in self.left():
            if mine := ids & set(entry.ids or ()):
                entry.gone |= mine
                self._write("gone", name=entry.name, ids=sorted(mine))

    def strike_entry(self, entry: Entry) -> None:
        """Nothing under the entry's name is on the cloud any more."""
        entry.ids = []
        self._write("known", name=entry.name, ids=[])

    def left(self) -> list[Entry]:
        """What may still be there, oldest first."""
        return [entry for entry in self.entries.values() if entry.left]

    def _write(self, made: str, **facts) -> None:
        pass


class KeptLedger(Ledger):
    """In a folder's `journal`, which outlives this process, a reboot and a power cut."""

    def __init__(self, mark: str, folder: Path):
        super().__init__(mark)
        self._journal = Journal(folder)
        for line in self._journal.entries():
            self._read(line)

    def begin(self, **about) -> None:
        """Write down what cloud it is and how it is reached."""
        self._write("cloud", mark=self.mark, **about)

    def about(self) -> dict:
        """What `begin` wrote; {} when nothing was made here."""
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
            os.fsync(file.fileno())     # what is made elsewhere outlives this machine's power


def remove(api, ledger, seconds: float = SECONDS) -> list[str]:
    """All of it, kind by kind; returns what could not be removed and why, a line each."""
    problems = []
    try:
        for kind in ORDER:
            problems += _remove(api, ledger, kind, seconds)
    except LabbookError as error:   # the cloud does not answer: the rest would not go either
        problems.append(str(error))
    return problems


def _remove(api, ledger, kind, seconds):
    began, why = time.monotonic(), {}
    pending = [entry for entry in ledger.left() if entry.kind == kind]
    seen = {entry.name for entry in pending if entry.ids is not None}
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
    """Whether nothing of the entry is there any more; else what is there is asked to go, again."""
    ids = api.find(entry.kind, entry.name, entry.ids or ())
    if ids:
        seen.add(entry.name)
    elif entry.name in seen or passed >= LOOK_S:
        ledger.strike_entry(entry)
        return True
    for one in ids:
        try:
            api.delete(entry.kind, one)
        except InputError:              # credentials, or leave: asking again would not help
            raise
        except LabbookError as error:   # in use yet: it is asked again
            why[entry.name] = str(error)
    return False

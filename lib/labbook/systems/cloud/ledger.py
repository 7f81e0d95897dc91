"""The journal of what was made on a cloud: each thing is written down before it is made, under a
name that nothing else has, so that it is found there even when its id was never learnt."""

import os
import re
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from labbook.errors import InputError, LabbookError
from labbook.lab.local.journal import Journal

JOURNAL = "journal"     # the file's name in its folder


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

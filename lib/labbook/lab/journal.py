"""The journal of a lab: each thing is written down before it is made; `down` undoes what it names.

One JSON object a line. A line that a crash cut short names a thing that was never made. `Journal`
reads and writes a file of this machine; on a user's host a shell appends to one with
`append_command`, and `parse` reads what that host returns. Standard library only.
"""

import json
import os
import shlex
from pathlib import Path

from labbook.lab.kernel import boot_id
from labbook.syncing import sync_folder


class Journal:
    """The file `journal` in a folder. Every entry has `made`, the kind of thing, and its facts."""

    def __init__(self, folder: Path):
        self.path = Path(folder) / "journal"

    def write(self, made: str, **facts) -> None:
        """Append an entry, on a line of its own also after a line that was cut short.

        It is on disk before this returns: a thing that survives a power cut must be found.
        """
        is_new = not self.path.exists()
        line = json.dumps({"made": made, **facts}) + "\n"
        with open(self.path, "a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else f"\n{line}"
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_folder(self.path.parent)

    def entries(self) -> list[dict]:
        """All entries, oldest first; [] when there is no journal."""
        try:
            return parse(self.path.read_text())
        except FileNotFoundError:
            return []

    def of(self, made: str) -> list[dict]:
        """Entries of one kind, oldest first."""
        return [entry for entry in self.entries() if entry["made"] == made]

    def this_boot(self) -> bool:
        """Whether the lab came up since this machine's last boot."""
        return any(entry.get("boot") == boot_id() for entry in self.of("lab"))


def parse(text: str) -> list[dict]:
    """Entries of a journal's text, oldest first, without empty lines and those that a crash cut short."""
    entries = []
    for line in text.splitlines():
        try:
            entries.append(json.loads(line))
        except ValueError:
            continue
    return entries


def append_command(entry: dict, path) -> str:
    """A shell command that appends an entry to a host's journal, unless that very line is in it; after an
    empty line, since the last one may be cut short."""
    line, journal = shlex.quote(json.dumps(entry)), shlex.quote(str(path))
    return f"grep -qxF {line} {journal} 2> /dev/null || printf '\\n%s\\n' {line} >> {journal}"

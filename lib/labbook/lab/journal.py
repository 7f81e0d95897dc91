"""The lab's record: each thing is written down before it is made, and struck out by undoing all.

One JSON object a line. A line cut short by a crash is of a thing that was never made.
"""

import json
import os
from pathlib import Path

from labbook.lab.local.kernel import boot_id


class Journal:
    def __init__(self, folder: Path):
        self.path = Path(folder) / "journal"

    def write(self, made: str, **facts) -> None:
        line = json.dumps({"made": made, **facts}) + "\n"
        with open(self.path, "a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else f"\n{line}"
            file.write(line.encode())

    def entries(self) -> list[dict]:
        """What was made in this boot, oldest first; [] when nothing was or it is long gone."""
        try:
            lines = self.path.read_text().splitlines()
        except FileNotFoundError:
            return []
        entries = []
        for line in lines:
            try:
                entries.append(json.loads(line))
            except ValueError:
                continue
        return entries

    def of(self, made: str) -> list[dict]:
        return [e for e in self.entries() if e["made"] == made]

    def this_boot(self) -> bool:
        return any(e.get("boot") == boot_id() for e in self.of("lab"))

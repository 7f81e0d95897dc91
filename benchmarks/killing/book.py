"""A scratch checkout with the five studies, the commands of labbook in it, and what it has on disk."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from killing import phases
from killing.studies import STUDIES, Study
from machine_state import MARK

from labbook.paths import cache_dir
from labbook.study.records.record import read_meta

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "lib"
WATCH = "from killing import phases\n\nphases.watch(study)"


class Book:
    """`folder`: kept between calls, so that points accumulate; `places`: folders whose files must be
    after a command as they were before. Records are its own, the cache is the user's."""

    def __init__(self, folder: Path):
        self.folder = folder.absolute()
        self.records = self.folder / "records" / _digest_of_library()
        self.log, self.mark = self.folder / "phases.jsonl", f"kills-{os.getpid()}"
        self._short = Path(tempfile.mkdtemp(prefix="lk-"))   # names of sockets must be short
        self._cache, self._aside = cache_dir() / "artifacts", self.folder / "aside"
        self.places = [self._short, self.folder / "state", self._cache / ".drafts"]
        self.repeats = {}
        self._make()

    def close(self):
        shutil.rmtree(self._short)

    def variables(self, points: int | None = None) -> dict:
        return {**os.environ, "LABBOOK_ROOT": str(self.folder), "LABBOOK_RECORDS": str(self.records),
                "XDG_STATE_HOME": str(self.folder / "state"), "XDG_RUNTIME_DIR": str(self._short),
                "TMPDIR": str(self._short), MARK: self.mark,
                "PYTHONPATH": os.pathsep.join(map(str, (LIBRARY, ROOT / "benchmarks", ROOT / "tests/lab"))),
                phases.LOG: str(self.log), phases.POINTS: str(points or "")}

    def run_command(self, study: str, phase: str, more: bool) -> list[str]:
        """Of `labbook run`; with `more`, for one repeat more than the last time."""
        kind = (study, phase in STUDIES[study].in_fault)
        self.repeats[kind] = self.repeats.get(kind, self._done(*kind)) + more
        given = STUDIES[study].parameters(phase, max(1, self.repeats[kind]))
        return ["run", study, *(word for name, value in given.items() for word in ("-p", name, json.dumps(value)))]

    def _done(self, study, fault) -> int:
        """The most repeats that have a record."""
        name = (STUDIES[study].faults if fault else STUDIES[study].grows).partition(".")[0]
        return max((_repeat(path) for path in self._files(f"{study}/{name}")), default=0)

    def start(self, command, points=None, output=subprocess.DEVNULL):
        """Begin a command of labbook."""
        return self.program("labbook.cli", *command, points=points, output=output)

    def program(self, module, *arguments, points=None, output=subprocess.DEVNULL):
        """Begin a module as a program, with a new log of its phases."""
        self.log.unlink(missing_ok=True)
        return subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=self.folder, text=True,
                                env=self.variables(points), stdin=subprocess.DEVNULL, stdout=output,
                                stderr=subprocess.STDOUT)

    def labbook(self, *arguments, points=None, seconds=900):
        """A command to its end: (exit code, its output)."""
        process = self.start(arguments, points, subprocess.PIPE)
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            return "it did not end", output
        return process.returncode, output

    def story(self) -> list[dict]:
        """The phases of the run that was started last."""
        try:
            return [json.loads(line) for line in self.log.read_text().split("\n")[:-1]]
        except FileNotFoundError:
            return []

    def finished(self) -> dict[str, str]:
        """{key of a point: digest of its record}."""
        return {path.stem: _digest(path) for path in self._files("*/*")}

    def has(self, study: str) -> bool:
        """Whether it has been measured once."""
        return bool(self._done(study, fault=False))

    def superseded(self) -> list[str]:
        """Records that a later measurement replaced, but for those that were measured again for noise."""
        return [str(path) for path in self.records.rglob("superseded/*") if not self._was_noisy(path)]

    @staticmethod
    def _was_noisy(path: Path) -> bool:
        """Whether the record that replaced this one, of the same key, says that it was measured again."""
        record = path.parent.parent / f"{path.name.partition('-')[0]}.parquet"
        return record.exists() and "measured_again" in read_meta(record)["provenance"]["during"]

    def unfinished(self) -> list[str]:
        return [str(path) for path in self.records.rglob(".tmp*")]

    def _files(self, below):
        return [path for path in self.records.glob(f"*/{below}/[!.]*.parquet") if ".series." not in path.name]

    def forget(self, study: str) -> None:
        """Put aside what the study fills once, of what the user's cache has."""
        for pattern in STUDIES[study].once:
            for entry in self._cache.glob(pattern):
                shutil.move(entry, self._aside / entry.name)

    def remember(self) -> None:
        """Put back what was put aside and has not been filled again."""
        for entry in self._aside.iterdir():
            if (self._cache / entry.name).exists():
                shutil.rmtree(entry)
            else:
                shutil.move(entry, self._cache / entry.name)

    def _make(self):
        for part in ("notebooks", "book", "state", "aside"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        for part in ("environments", "data/papers"):
            shutil.copytree(ROOT / part, self.folder / part, dirs_exist_ok=True)
        for name in ("_config.yml", "_toc.yml"):
            shutil.copy(ROOT / name, self.folder)
        for study in STUDIES:
            notebook = json.loads((ROOT / "notebooks" / f"{study}.ipynb").read_text())
            (self.folder / "notebooks" / f"{study}.ipynb").write_text(json.dumps(watched(notebook)))
        self.remember()


def watched(notebook: dict) -> dict:
    """A study's notebook up to its last measurement, that writes down its phases."""
    cells = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or cell["metadata"].get("tags") == ["remove-cell"]:
            continue
        cells.append(cell)
        if "Study(" in source:
            cells.append({**cell, "id": "watch", "metadata": {}, "source": WATCH})
        if "study.complete()" in source:
            break
    return {**notebook, "cells": cells}


def _repeat(path) -> int:
    return read_meta(path)["repeat"]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest_of_library() -> str:
    """Other records for another library, which would measure points again."""
    files = sorted(path for place in (LIBRARY / "labbook", ROOT / "data/papers", ROOT / "notebooks")
                   for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    whole = hashlib.sha256()
    for path in files:
        whole.update(path.read_bytes())
    return whole.hexdigest()[:8]

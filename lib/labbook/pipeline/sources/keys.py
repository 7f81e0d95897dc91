"""Page keys: digests that say whether a page is still what running its notebook would give.

Only hashing: nothing that runs notebooks or reads records is imported, so a run with nothing to do
is fast.
"""

import hashlib
import json
import os
import platform
import sys
from pathlib import Path

from labbook import paths
from labbook.pipeline.sources import notebooks

_LIBRARY = Path(__file__).resolve().parents[2]
# No kernel imports these: the floors forbid it.
_ABOVE = {"pipeline", "commands", "cli.py"}


def page_key(study: str, parameters: dict, published: bool = False) -> dict:
    """{"inputs", "records"}: digests of everything that a page is made from.

    `inputs` are computed before a run and `records` after it, because a run adds records.
    """
    return {"inputs": inputs(study, parameters), "records": records(study, published)}


def inputs(study: str, parameters: dict) -> str:
    """Digest of the cells, parameters, environment file, paper data, library and machine."""
    return of_parts(parts(study, parameters))


def of_parts(found: dict) -> str:
    return _digest(text for one in found.items() for text in one)


def parts(study: str, parameters: dict) -> dict:
    """{what a page is made from, in words: its digest}."""
    environment = _environment(study, parameters)
    found = {
        "the notebook": [_cells(paths.notebook(study))],
        "the parameters": [json.dumps(parameters, sort_keys=True)],
        "the environment": [environment.read_bytes() if environment and environment.is_file() else b"none"],
        "the paper's data": _tree(paths.papers(study)),
        "labbook": library(),
        "Python or its packages": [_bytes(paths.checkout() / "constraints.txt"), sys.version],
        "the machine": [platform.node()],
    }
    return {name: _digest(each) for name, each in found.items()}


def records(study: str, published: bool = False) -> str:
    """Digest of the records that a run would read: published content, or this machine's files
    and the published verdicts, which stand for what it did not measure."""
    if published:
        return _digest(["published", *_tree(paths.published_dir() / study)])
    found = [path.read_bytes() for path in sorted((paths.published_dir() / study).glob("*/claims.json"))]
    for folder in sorted(paths.records_dir().glob(f"*/{study}")):
        for path, state in _states(folder):
            found.append(f"{path} {state.st_size} {state.st_mtime_ns}")
    return _digest(found)


def tree_digest(folder: Path) -> str:
    """Digest of a folder's content, of this interpreter and its pinned packages."""
    return _digest([*_tree(folder), _bytes(paths.checkout() / "constraints.txt"), sys.version])


def library() -> list:
    """Names and contents of the library's files that a kernel may import."""
    parts = []
    for entry in sorted(_LIBRARY.iterdir()):
        if entry.name in _ABOVE or entry.name == "__pycache__":
            continue
        parts += _tree(entry) if entry.is_dir() else [entry.name, entry.read_bytes()]
    return parts


def _environment(study, parameters) -> Path | None:
    from labbook.pipeline.sources.parameters import declared

    named = parameters.get("environment") or declared(study).get("environment")
    return paths.checkout() / named if isinstance(named, str) else None


def _cells(path) -> str:
    """Kinds, tags and sources of a notebook's cells, which determine its outputs."""
    cells = notebooks.read(path)["cells"]
    return json.dumps([(c["cell_type"], notebooks.tags(c), notebooks.source(c)) for c in cells])


def _tree(folder: Path) -> list:
    """Relative names and contents of all files below a folder, in a fixed order."""
    parts = []
    for path, _ in _states(folder):
        parts += [path.relative_to(folder.parent).as_posix(), path.read_bytes()]
    return parts


def _states(folder: Path):
    """(path, stat) of every file below a folder, sorted, without unfinished and temporary ones."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f != "__pycache__" and not f.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and not name.endswith((".pyc", ".tmp", "~")):
                path = Path(place, name)
                try:
                    yield path, path.stat()
                except FileNotFoundError:
                    continue  # another run has just renamed it


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _digest(parts) -> str:
    """SHA-256 of texts or bytes, each preceded by its length, so that lists cannot be confused."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()

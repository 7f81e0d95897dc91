"""Executed notebooks under build/pages, each beside a note of how its last run went.

A page is a pair: NAME.ipynb and NAME.json. The note is written last; it holds the page's digest and
key, so a page half replaced by a killed run is seen and made again.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
import time
from pathlib import Path

from labbook import paths
from labbook.errors import LabbookError

OK, FAILED, PAUSED, INTERRUPTED = "ok", "failed", "paused", "interrupted"
_LOCK_TRIES, _LOCK_TRY_S = 10, 0.05


def page(study: str) -> Path:
    return paths.build_dir() / "pages" / f"{study}.ipynb"


def note(study: str) -> dict:
    """How the last run of a study went, {} if there was none.

    Keys: state (ok, failed), key, page (its digest), profile, parameters, environment, published,
    started (ISO 8601), seconds, machine, commit, changed (the
    checkout since), points, error; and stopped, with the state (paused,
    interrupted) of a later run that did not come to its end.
    """
    try:
        return json.loads(_note(study).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def is_current(study: str, key: dict) -> bool:
    """Whether the page is there, whole, came from a good run, and has this key."""
    last = note(study)
    return (last.get("state") == OK and last.get("key") == key
            and page(study).is_file() and last.get("page") == _digest(page(study)))


def accept(study: str, executed: Path, about: dict) -> None:
    """Put an executed notebook in the page's place, then its note."""
    with open(executed, "rb") as file:
        os.fsync(file.fileno())
    page(study).parent.mkdir(parents=True, exist_ok=True)
    os.replace(executed, page(study))
    write_note(study, {**about, "page": _digest(page(study))})


def rewrite(executed: Path, change) -> None:
    """Change the texts of an executed notebook, if there is one; `change` takes and gives data."""
    if executed.is_file():
        found = json.loads(executed.read_text(encoding="utf-8"))
        changed = change(found)
        if changed != found:
            write_atomically(executed, json.dumps(changed, indent=1, ensure_ascii=False) + "\n")


def write_note(study: str, about: dict) -> None:
    write_atomically(_note(study), json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def write_atomically(path: Path, data: str | bytes) -> None:
    """A file that is there whole or not at all, also after a power cut."""
    data = data.encode() if isinstance(data, str) else data
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


@contextlib.contextmanager
def only_me(study: str):
    """Keep other runs of this study off this checkout; the lock dies with its holder.

    Clears away what a killed run left half written.
    """
    folder = page(study).parent
    folder.mkdir(parents=True, exist_ok=True)
    with open(_lock(study), "w") as lock:
        if not _locked(lock, _LOCK_TRIES):
            raise LabbookError(f"{study} is being run by another labbook of this checkout")
        for left in folder.glob(f".{study}.*"):
            if left.name != f".{study}.lock":
                left.unlink(missing_ok=True)
        yield partial(study)


def goes_on(study: str) -> bool:
    """Whether a run of this study goes on in this checkout."""
    with contextlib.suppress(FileNotFoundError), open(_lock(study)) as lock:
        return not _locked(lock, 1)
    return False


def _lock(study: str) -> Path:
    return page(study).with_name(f".{study}.lock")


def _locked(lock, tries: int) -> bool:
    """Have the lock, tried again since `goes_on` holds it for a moment."""
    for left in reversed(range(tries)):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_LOCK_TRY_S if left else 0)
    return False


def partial(study: str) -> Path:
    return page(study).with_name(f".{study}.partial.ipynb")


def _note(study: str) -> Path:
    return page(study).with_suffix(".json")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

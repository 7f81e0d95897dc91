"""Executed notebooks under build/pages, each beside a note on its last run.

A page is a pair: NAME.ipynb and NAME.json. The note is written last; it holds the page's digest and
key, so a page half replaced by a killed run is noticed and made again. A killed run leaves its
progress file, from which `note` reads how far it came.
"""

import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from pathlib import Path

from labbook import paths
from labbook.atomic_files import open_lock, write_whole
from labbook.errors import LabbookError
from labbook.pipeline.executing.progress import RunState, beside

OK, FAILED, PAUSED, INTERRUPTED, KILLED = "ok", "failed", "paused", "interrupted", "killed"
REFUSED = "refused"     # of wrong input, before anything started; no note has it
STOPPED = (PAUSED, INTERRUPTED, KILLED)     # states of runs that did not finish
_LOCK_TRIES, _LOCK_TRY_S = 10, 0.05


class Busy(LabbookError):
    """Another labbook of this checkout runs the study."""


def page(study: str) -> Path:
    return paths.build_dir() / "pages" / f"{study}.ipynb"


def note(study: str) -> dict:
    """How the last run of a study went, {} if there was none.

    Keys: state (ok, failed), key, page (its digest), profile, parameters, environment, published,
    started (ISO 8601), seconds, machine, commit, changed (whether the checkout differed from the
    commit), points, error; and stopped: state (paused, interrupted, killed), profile, started, seconds,
    points, board and lab_time of a later run that did not finish. A page of a stopped run has no key.
    """
    killed = None if is_running(study) else _killed(study)
    return stopped(study, killed) if killed else _last(study)


def stopped(study: str, about: dict) -> dict:
    """The note after a run that did not finish: what the page is from, and `about` that run."""
    return {**_last(study), "study": study, "key": None, "stopped": about}


def _last(study: str) -> dict:
    try:
        return json.loads(_note(study).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def _killed(study: str) -> dict | None:
    """What the progress file of a killed run says, None if there is none; a dry run does not count."""
    file = beside(partial(study))
    story = RunState(file)
    if not story.read_on() or story.begun.get("plan"):
        return None
    at_s = story.began_at_s or file.stat().st_mtime
    started = datetime.datetime.fromtimestamp(at_s).astimezone().isoformat(timespec="seconds")
    return {"state": KILLED, "profile": story.begun.get("profile"), "started": started,
            "seconds": round(file.stat().st_mtime - at_s, 1), "points": story.points(),
            "board": story.board or None, "lab_time": story.lab_time()}


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
    """Apply `change`, from data to data, to an executed notebook, if there is one. One that was cut short while
    it was written is removed."""
    if executed.is_file():
        try:
            found = json.loads(executed.read_text(encoding="utf-8"))
        except ValueError:
            executed.unlink()
            return
        changed = change(found)
        if changed != found:
            write_atomically(executed, json.dumps(changed, indent=1, ensure_ascii=False) + "\n")


def write_note(study: str, about: dict) -> None:
    write_atomically(_note(study), json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def write_atomically(path: Path, data: str | bytes) -> None:
    """Write text or bytes to a file that, also after a power cut, is whole or absent."""
    data = data.encode() if isinstance(data, str) else data
    write_whole(path, lambda file: file.write(data))


@contextlib.contextmanager
def only_me(study: str, waits=lambda: False):
    """Lock this study in this checkout; the lock ends with the process that holds it.

    Notes a killed run and removes what it left half written. Busy while another run lasts, unless `waits()`
    says each time that its end is waited for.
    """
    folder = page(study).parent
    folder.mkdir(parents=True, exist_ok=True)
    with open_lock(_lock(study)) as lock:
        _take(study, lock, waits)
        if killed := _killed(study):
            write_note(study, stopped(study, killed))
        for left in folder.glob(f".{study}.*"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            elif left.name != f".{study}.lock":
                left.unlink(missing_ok=True)
        yield partial(study)


def is_running(study: str) -> bool:
    """Whether a run of this study is under way in this checkout."""
    with unless_running(study) as idle:
        return not idle


@contextlib.contextmanager
def unless_running(study: str):
    """Yield whether no run of this study is under way in this checkout; none begins meanwhile."""
    try:
        lock = open(_lock(study))
    except OSError:
        yield True      # there is none, or it is another user's
        return
    with lock:
        yield _locked(lock, 1, fcntl.LOCK_SH)   # two that look are no run to each other


def _lock(study: str) -> Path:
    return page(study).with_name(f".{study}.lock")


def _take(study, lock, waits) -> None:
    announced = False
    while not _locked(lock, _LOCK_TRIES):
        if not waits():
            raise Busy(f"{study} is being run by another labbook of this checkout")
        if not announced:
            print(f"labbook: another labbook runs {study}; waiting until it has ended", file=sys.stderr, flush=True)
        announced = True


def _locked(lock, tries: int, kind=fcntl.LOCK_EX) -> bool:
    """Take the lock; tried again, since `is_running` holds it for a moment."""
    for left in reversed(range(tries)):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
            return True
        time.sleep(_LOCK_TRY_S if left else 0)
    return False


def partial(study: str) -> Path:
    return page(study).with_name(f".{study}.partial.ipynb")


def _note(study: str) -> Path:
    return page(study).with_suffix(".json")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

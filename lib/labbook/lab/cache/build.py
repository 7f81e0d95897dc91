"""Folders in this machine's cache: built once, atomically, safe to kill at any moment."""

import fcntl
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path

from labbook.atomic_files import is_full, open_lock
from labbook.errors import LabError
from labbook.paths import cache_dir

COMPLETE = "complete.json"  # written last: {file: size} of the folder
BUILD_SECONDS = 3600        # the slowest, a cloud's software, takes a sixth of it
QUIET_SECONDS, LOOK_SECONDS = 5, 0.1
took = []                   # seconds of each folder that this process has built
NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")      # in the output of uv, pip, mvn and apt


def build_once(name: str, fill: Callable[[Path], None], sound: Callable[[Path], bool] = lambda _: True) -> Path:
    """The cached folder `name`; `fill(folder)` fills it when it is missing, incomplete or not `sound`.

    Parallel runs wait for one another; what a killed run leaves is never used. LabError when another
    run does not end within BUILD_SECONDS, or when the disk is full: an earlier folder stays as it was,
    and the next run begins anew.
    """
    cache = cache_dir() / "artifacts"
    folder, drafts = cache / name, cache / ".drafts" / name
    if is_whole(folder) and sound(folder):
        return folder
    with _no_space_named(cache), _locked(cache / ".locks" / name):
        if is_whole(folder) and sound(folder):
            return folder
        shutil.rmtree(drafts, ignore_errors=True)
        delete_stale_drafts()
        drafts.mkdir(parents=True)
        draft = Path(tempfile.mkdtemp(dir=drafts))
        draft.chmod(0o755)
        began = time.monotonic()
        try:
            fill(draft)
            (draft / COMPLETE).write_text(json.dumps(_sizes(draft), indent=1))
            shutil.rmtree(folder, ignore_errors=True)
            draft.rename(folder)
        finally:
            shutil.rmtree(drafts, ignore_errors=True)
            took.append(time.monotonic() - began)
    return folder


@contextmanager
def _no_space_named(cache: Path):
    """Errors of a full disk, also those that only a tool's output has, as LabErrors that name the cache."""
    try:
        yield
    except (OSError, LabError) as error:
        full = is_full(error) or (isinstance(error, LabError) and error.message.startswith("cannot fetch")
                                  and NO_SPACE.search(error.message))
        if not full:
            raise
        where = getattr(error, "filename", None) or cache
        raise LabError(f"the disk is full: {where} could not be written", remedy=(
            f"Nothing half-made was kept. Free some space for {cache} (LABBOOK_CACHE moves the cache) and "
            f"for {tempfile.gettempdir()}, then run again")) from error


def is_whole(folder: Path) -> bool:
    """Whether every file listed in complete.json is there and has its size."""
    try:
        wanted = json.loads((folder / COMPLETE).read_text())
        return all((folder / file).stat().st_size == size for file, size in wanted.items())
    except (OSError, ValueError):
        return False


def _sizes(folder: Path) -> dict[str, int]:
    return {str(f.relative_to(folder)): f.stat().st_size
            for f in sorted(folder.rglob("*")) if f.is_file()}


def delete_stale_drafts() -> None:
    """Delete drafts of killed runs, whatever their folder; not of runs in progress."""
    cache = cache_dir() / "artifacts"
    for left in (cache / ".drafts").glob("*"):
        with suppress(LabError), _locked(cache / ".locks" / left.name, 0):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _locked(lock: Path, seconds: float | None = None):
    """Hold a file lock; the kernel releases it when its holder dies. LabError names the holder when the
    lock is not free within `seconds`, BUILD_SECONDS by default."""
    seconds = BUILD_SECONDS if seconds is None else seconds
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open_lock(lock, "a+") as handle:
        until, say_at = time.monotonic() + seconds, time.monotonic() + QUIET_SECONDS
        while not _free(handle):
            if time.monotonic() > until:
                raise LabError(f"waited {seconds:g} s for process {_holder(handle)}, which builds {lock.name} "
                               "for the cache", remedy="Wait for its end, or end it, then run again")
            if time.monotonic() > say_at:
                print(f"labbook: waiting for process {_holder(handle)}, which builds {lock.name}", file=sys.stderr)
                say_at = until
            time.sleep(LOOK_SECONDS)
        with suppress(OSError):     # a full disk; the name is for those who wait alone
            handle.truncate(0)
            os.write(handle.fileno(), str(os.getpid()).encode())
        try:
            yield
        finally:
            handle.truncate(0)


def _free(handle) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(handle) -> str:
    return os.pread(handle.fileno(), 20, 0).decode(errors="replace").strip() or "unknown"

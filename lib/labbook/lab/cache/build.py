"""Folders of this machine's cache: made once, safe to kill, whole or not there."""

import fcntl
import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path

from labbook.paths import cache_dir

COMPLETE = "complete.json"  # written last: each file of the folder and its size


def build_once(name: str, fill: Callable[[Path], None]) -> Path:
    """The cached folder `name`, filled by `fill(folder)` when it is missing or not whole.

    Runs in parallel wait for one another; what a killed run leaves is never taken for whole.
    """
    shelf = cache_dir() / "artifacts"
    folder, drafts = shelf / name, shelf / ".drafts" / name
    if is_whole(folder):
        return folder
    with _alone(shelf / ".locks" / name):
        if is_whole(folder):
            return folder
        shutil.rmtree(drafts, ignore_errors=True)
        _clear_left_drafts(shelf)
        drafts.mkdir(parents=True)
        draft = Path(tempfile.mkdtemp(dir=drafts))
        draft.chmod(0o755)
        try:
            fill(draft)
            (draft / COMPLETE).write_text(json.dumps(_sizes(draft), indent=1))
            shutil.rmtree(folder, ignore_errors=True)
            draft.rename(folder)
        finally:
            shutil.rmtree(drafts, ignore_errors=True)
    return folder


def is_whole(folder: Path) -> bool:
    """Whether every file that was there at the end is there in its size."""
    try:
        wanted = json.loads((folder / COMPLETE).read_text())
        return all((folder / file).stat().st_size == size for file, size in wanted.items())
    except (OSError, ValueError):
        return False


def _sizes(folder: Path) -> dict[str, int]:
    return {str(f.relative_to(folder)): f.stat().st_size
            for f in sorted(folder.rglob("*")) if f.is_file()}


def _clear_left_drafts(shelf: Path):
    """Those of killed runs, also of folders that nobody makes any more; not of runs at work."""
    for left in (shelf / ".drafts").glob("*"):
        with suppress(BlockingIOError), _alone(shelf / ".locks" / left.name, fcntl.LOCK_NB):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _alone(lock: Path, how=0):
    """Hold `lock`; the kernel gives it up when its holder dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | how)
        yield

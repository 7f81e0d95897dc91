"""Write files atomically: after a crash a file is either complete or absent."""

import errno
import fcntl
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path

from labbook.errors import LabError
from labbook.syncing import sync_folder

UNFINISHED = ".tmp-"    # prefix of a file's name while it is written


def write_whole(path: Path, write, before_rename=None) -> None:
    """Write a file atomically: `write(file)` gets a binary file object.

    `before_rename()` is called when the new content is on disk, before it replaces the old file.
    LabError when the disk is full or reports an error; the old file then remains.
    """
    partial = path.with_name(f"{UNFINISHED}{os.getpid()}-{path.name}")
    with disk_errors(path):
        _write_and_rename(path, partial, write, before_rename)


def _write_and_rename(path, partial, write, before_rename):
    try:
        make_folder(path.parent)
        with _open_locked(partial) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if before_rename:
                before_rename()
            os.replace(partial, path)
        sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def _open_locked(partial: Path):
    """The new file, open and locked: another one where remove_unfinished has removed it before it was locked."""
    while True:
        file = open(partial, "wb")
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(partial), os.fstat(file.fileno())):
                return file
        file.close()


def remove_unfinished(files) -> None:
    """Remove those of the partial `files` whose writer was killed; a running writer holds a lock on its own."""
    for path in files:
        with suppress(OSError), open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def open_lock(path: Path, mode: str = "w"):
    """Open a file for flock. Only its owner can open it: any open file, also one opened for reading,
    would do to hold the lock against its owner. No symbolic link is followed."""
    file = open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600))
    if os.fstat(file.fileno()).st_uid == os.geteuid():
        os.fchmod(file.fileno(), 0o600)     # an earlier version made it readable
    return file


@contextmanager
def disk_errors(path: Path):
    """A block that writes the file `path`: LabError where the disk is full or reports an error."""
    try:
        yield
    except OSError as error:
        raise disk_error(path, error) from error


def is_full(error: Exception) -> bool:
    """Whether an error is that of a full disk, or of a quota."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def disk_error(path: Path, error: OSError) -> LabError:
    if is_full(error):
        return LabError(f"the disk is full: {path.name} could not be written to {path.parent}{free(path.parent)}",
                        remedy="Earlier records are complete. Free some space, then run again to continue")
    return LabError(f"{path} could not be written: {error}",
                    remedy="Earlier records are complete. Run again to continue")


def free(folder: Path) -> str:
    """" (0.1 of 20.0 MiB are free)": the space below a folder, in words; empty if it is unknown."""
    try:
        space = shutil.disk_usage(folder)
    except OSError:
        return ""
    return f" ({space.free / 2**20:.1f} of {space.total / 2**20:.1f} MiB are free)"


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and sync each to disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)

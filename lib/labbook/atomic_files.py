"""Write files atomically: after a crash a file is either complete or absent."""

import errno
import fcntl
import os
from pathlib import Path

from labbook.errors import LabError

UNFINISHED = ".tmp-"    # prefix of a file's name while it is written


def write_whole(path: Path, write, before_rename=None) -> None:
    """Write a file atomically: `write(file)` gets a binary file object.

    `before_rename()` is called when the new content is on disk, before it replaces the old file.
    LabError when the disk is full or reports an error; the old file then remains.
    """
    partial = path.with_name(f"{UNFINISHED}{os.getpid()}-{path.name}")
    try:
        make_folder(path.parent)
        with open(partial, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if before_rename:
                before_rename()
            os.replace(partial, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise _disk_error(path, error) from error
    finally:
        partial.unlink(missing_ok=True)


def _disk_error(path, error) -> LabError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LabError(f"the disk is full: {path.name} could not be written to {path.parent}",
                        remedy="Earlier records are complete. Free some space, then run again to continue")
    return LabError(f"{path} could not be written: {error}",
                    remedy="Earlier records are complete. Run again to continue")


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and sync each to disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

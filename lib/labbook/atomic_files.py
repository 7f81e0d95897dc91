"""Files and folders that after a crash are either whole or absent."""

import errno
import fcntl
import os
from pathlib import Path

from labbook.errors import LabError

UNFINISHED = ".tmp-"    # how the name of a file begins while it is written


def write_whole(path: Path, write, before_rename=None) -> None:
    """Have `write(file)` make a file that after a crash is either whole or absent.

    LabError when the disk is full or refuses; what was there before stays.
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
        raise _refused(path, error) from error
    finally:
        partial.unlink(missing_ok=True)


def _refused(path, error) -> LabError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LabError(f"the disk is full: {path.name} could not be written to {path.parent}",
                        remedy="Earlier records are whole; free some space and run again to go on")
    return LabError(f"{path} could not be written: {error}",
                    remedy="Earlier records are whole; run again to go on")


def make_folder(folder: Path) -> None:
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

"""Locks of what runs as root. No other user of the machine can hold or redirect one.

A file lock (flock) is granted on any descriptor, also on one that was opened for reading only. So
the files lie in a folder that only root can enter. Locks of a user's own lie in folders that only
the user can enter: see ownership.py. Standard library only.
"""

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER = Path("/run/labbook/.locks")
LOOK_SECONDS = 0.02


@contextmanager
def alone(name: str, seconds: float, what: str, folder: Path | None = None):
    """Hold the lock `name` during the block; others who wait for it are told `what` holds it.

    OSError names the holder when the lock is not free within `seconds`.
    """
    path = private(folder or FOLDER) / name
    until = time.monotonic() + seconds
    while (lock := _try(path)) is None:
        if time.monotonic() > until:
            raise OSError(f"waited {seconds:g} s for {holder(path)}, which has the lock {name}: "
                          "wait for its end, or end it")
        time.sleep(LOOK_SECONDS)
    try:
        with suppress(OSError):     # a full disk; the name is for those who wait alone
            os.ftruncate(lock, 0)
            os.write(lock, f"{os.getpid()} ({what})".encode())
        yield
    finally:
        path.unlink(missing_ok=True)    # before it is free: who waits for it looks whether it is gone
        os.close(lock)


def holder(path: Path) -> str:
    """`process PID (what it does)`, as far as the lock's file says."""
    try:
        return f"process {path.read_text()}".strip()
    except OSError:
        return "process unknown"


def private(folder: Path) -> Path:
    """The folder, made if need be, which others can neither enter nor list. OSError when it is not like that."""
    folder.parent.mkdir(mode=0o755, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o077 or folder.is_symlink():
        raise OSError(f"{folder} is not this user's alone: remove it")
    return folder


def _try(path: Path) -> int | None:
    """A descriptor that holds the lock; None when another process holds it, or it was removed."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(path, follow_symlinks=False)):
            return lock
    except OSError:     # taken, or its file is gone
        pass
    os.close(lock)
    return None

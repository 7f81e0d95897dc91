"""Which process owns a lab: a file lock, which the kernel releases when its holder dies."""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from labbook.atomic_files import open_lock
from labbook.errors import LabError
from labbook.lab import kernel

SWEEP_SECONDS = 1


class Ownership:
    """The lock on a lab's state folder, held by this process until released."""

    def __init__(self, folder: Path):
        self.folder, self._file = Path(folder), None

    def take(self) -> bool:
        """Try to lock; False when another living process owns the lab, or its folder is gone."""
        while True:
            try:
                file = open_lock(self.folder / "owner.lock", "a+")
            except FileNotFoundError:
                return False
            except PermissionError:
                raise LabError(f"lab {self.folder.name} belongs to another user",
                               remedy=f"That user types: labbook down {self.folder.name}") from None
            if os.geteuid() == 0:       # the lock of a lab that root sweeps is its user's all the same
                with suppress(FileNotFoundError):
                    os.fchown(file.fileno(), self.folder.stat().st_uid, -1)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                return False
            if _same(file, self.folder / "owner.lock"):
                file.truncate(0)
                file.write(f"{os.getpid()}\n")
                file.flush()
                self._file = file
                return True
            file.close()  # the folder went away and came back between open and lock

    def holder(self) -> str:
        """The owner's process id and command, or "unknown"."""
        try:
            pid = (self.folder / "owner.lock").read_text().strip()
        except OSError:
            return "unknown"
        return f"{pid} ({kernel.command(pid)})" if pid else "unknown"

    @property
    def held(self) -> bool:
        return self._file is not None

    def require(self) -> None:
        """Lock; LabError when another process holds it for longer than a sweep of a dead lab takes."""
        until = time.monotonic() + SWEEP_SECONDS
        while not self.take():
            if self.folder.exists() and time.monotonic() < until:
                time.sleep(0.02)
                continue
            raise LabError(f"lab {self.folder.name} is in use by process {self.holder()}",
                           remedy="Wait for it, or end it")

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _same(file, path) -> bool:
    try:
        return os.fstat(file.fileno()).st_ino == os.stat(path).st_ino
    except FileNotFoundError:
        return False

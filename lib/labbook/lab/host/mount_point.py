"""A folder of a host where a program's file system (FUSE) is seen, which may hang: never looked at
from here but by processes that can be left behind."""

import shlex

from labbook.lab.host import fuse
from labbook.lab.host.apart import run_apart

IS_MOUNTED = """while read -r _ _ _ _ place _; do [ "$place" != {path} ] || exit 0
done < /proc/self/mountinfo; exit 1"""


class MountPoint:
    """`path` is one on the host."""

    def __init__(self, host, path):
        self.host, self._path = host, shlex.quote(str(path))
        self.path = path

    def mounted(self) -> bool:
        return not self.host.run(IS_MOUNTED.format(path=self._path), check=False).exit_code

    def call(self, command: str, seconds: float):
        """The Result of a shell command run there; None when it had not ended after `seconds`."""
        return run_apart(self.host, f"cd {self._path} || exit 1\n{command}", seconds)

    def give(self, user: str, seconds: float) -> bool:
        """Make it a user's; whether that came to be in time."""
        return self._done(f"chown {shlex.quote(user)} {self._path}", seconds)

    def unmount(self, seconds: float) -> bool:
        """In order; whether that came to be in time. Not while somebody works there."""
        return self._done(f"umount -i -c {self._path}", seconds)

    def abort(self) -> None:
        """Whatever hangs: all who wait get an error, and nothing is mounted there."""
        self.host.run(fuse.unmount(self.path), root=True)

    def remove(self) -> None:
        """Take the folder away. It must be empty, so that nothing mounted is lost."""
        self.host.run(f"[ ! -e {self._path} ] || rmdir {self._path}", root=True)

    def _done(self, command, seconds) -> bool:
        done = run_apart(self.host, command, seconds, root=True)
        return done is not None and done.exit_code == 0

"""Mount points of FUSE file systems on hosts, which may hang.

A call on a hung mount never returns, and SIGKILL does not end it. Therefore every call runs in a
process of its own, which is abandoned when its time is up.
"""

import shlex

from labbook.lab.host import fuse
from labbook.lab.host.host import Result

SLACK_S = 20    # to start the job and to read its output
# Only the job itself touches what may hang; its output is read from files after its end.
SCRIPT = """place=$(mktemp -d {where}/apart-XXXXXX) || exit 1
setsid sh -c {job} > "$place/out" 2> "$place/err" < /dev/null &
timeout {seconds} sh -c 'until [ -e "$0/code" ]; do sleep 0.02; done' "$place"
code=$(cat "$place/code" 2> /dev/null) || { pkill -KILL -s $!; code=; }
echo "code $code"; cat "$place/out"; cat "$place/err" >&2; rm -rf "$place" """
# its exit code appears atomically, and only if the folder still exists
JOB = """( {command}
)
echo $? > {place}/code.new && mv {place}/code.new {place}/code"""
IS_MOUNTED = """while read -r _ _ _ _ place _; do [ "$place" != {path} ] || exit 0
done < /proc/self/mountinfo; exit 1"""


class MountPoint:
    """A folder of the host, `path`, where a file system is or will be mounted."""

    def __init__(self, host, path):
        self.host, self._path = host, shlex.quote(str(path))
        self.path = path

    def mounted(self) -> bool:
        """Whether something is mounted here, by the kernel's list: never hangs."""
        return not self.host.run(IS_MOUNTED.format(path=self._path), check=False).exit_code

    def call(self, command: str, seconds: float):
        """Run a shell command in the folder: its Result, or None when it did not end in `seconds`."""
        return run_or_abandon(self.host, f"cd {self._path} || exit 1\n{command}", seconds)

    def give(self, user: str, seconds: float) -> bool:
        """Change the owner; False when that failed or took too long."""
        return self._done(f"chown {shlex.quote(user)} {self._path}", seconds)

    def unmount(self, seconds: float) -> bool:
        """Unmount; False when it is in use, or that took too long."""
        return self._done(f"umount -i -c {self._path}", seconds)

    def abort(self) -> None:
        """Abort the file system's connection and unmount: whoever waits for it gets an error."""
        self.host.run(fuse.unmount(self.path), root=True)

    def remove(self) -> None:
        """Remove the folder, which must be empty: nothing on a mounted file system is deleted."""
        self.host.run(f"[ ! -e {self._path} ] || rmdir {self._path}", root=True)

    def _done(self, command, seconds) -> bool:
        done = run_or_abandon(self.host, command, seconds, root=True)
        return done is not None and done.exit_code == 0


def run_or_abandon(host, command: str, seconds: float, root: bool = False) -> Result | None:
    """Run a shell command that may hang, in the host's root folder: its Result, or None when it did
    not end in `seconds`. It was then sent SIGKILL and ends as soon as the kernel lets it."""
    job = JOB.replace("{place}", "$place").replace("{command}", command)
    script = (SCRIPT.replace("{where}", shlex.quote(str(host.root)))
              .replace("{seconds}", f"{seconds:.2f}").replace("{job}", shlex.quote(job)))
    done = host.run(f"export place; {script}", timeout=seconds + SLACK_S, root=root)
    first, _, output = done.stdout.partition("\n")
    code = first.removeprefix("code ")
    return Result(output, done.stderr, int(code)) if code else None

"""A folder of a host where a program's file system (FUSE) is seen, which may hang: never looked at
from here but by processes that can be left behind."""

import shlex

from labbook.lab.host import fuse
from labbook.lab.host.host import Result

SLACK_S = 20    # to start it, and to read what it said
# Only the process of its own comes near what may hang. What it said is read when it has ended.
SCRIPT = """place=$(mktemp -d {where}/apart-XXXXXX) || exit 1
setsid sh -c {job} > "$place/out" 2> "$place/err" < /dev/null &
timeout {seconds} sh -c 'until [ -e "$0/code" ]; do sleep 0.02; done' "$place"
code=$(cat "$place/code" 2> /dev/null) || { pkill -KILL -s $!; code=; }
echo "code $code"; cat "$place/out"; cat "$place/err" >&2; rm -rf "$place" """
# its exit code comes in one step, and not into a folder that is no more
JOB = """( {command}
)
echo $? > {place}/code.new && mv {place}/code.new {place}/code"""
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
        return run_or_abandon(self.host, f"cd {self._path} || exit 1\n{command}", seconds)

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
        done = run_or_abandon(self.host, command, seconds, root=True)
        return done is not None and done.exit_code == 0


def run_or_abandon(host, command: str, seconds: float, root: bool = False) -> Result | None:
    """The Result of a shell command on the host, in its root folder; None when it had not ended
    after `seconds`. Then it has been sent SIGKILL, and ends when what it waits for lets it."""
    job = JOB.replace("{place}", "$place").replace("{command}", command)
    script = (SCRIPT.replace("{where}", shlex.quote(str(host.root)))
              .replace("{seconds}", f"{seconds:.2f}").replace("{job}", shlex.quote(job)))
    done = host.run(f"export place; {script}", timeout=seconds + SLACK_S, root=root)
    first, _, said = done.stdout.partition("\n")
    code = first.removeprefix("code ")
    return Result(said, done.stderr, int(code)) if code else None

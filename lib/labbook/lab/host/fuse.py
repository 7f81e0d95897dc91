"""File systems in userspace (FUSE) on hosts: what is mounted, and the end of what hangs on it.

Who waits for such a file system's server waits for ever when that does not answer, and SIGKILL does
not end it. The kernel ends all waiting when the connection to the server is aborted, or when the
server itself has ended, which it cannot where it waits for its own file system. Connections are
numbered, for the whole machine, as the devices of their mounts are.

Root's, with the standard library alone.
"""

import re
import shlex
import subprocess
from pathlib import Path

from labbook.lab.local import kernel

KIND = "fuse"       # of entries in a journal: {"made": "fuse", "pid": ..., "start": ..., "numbers": [...]}
DEVICE = "/dev/fuse"
CONNECTIONS = "/sys/fs/fuse/connections"
MOUNT = f"mount -t fusectl fusectl {CONNECTIONS} 2> /dev/null"    # fails where it is already
# In a mount namespace of its own, so that nobody sees a mount more than before.
ABORT = f"""{MOUNT}
for number in "$@"; do
  [ ! -e {CONNECTIONS}/$number/abort ] || echo 1 > {CONNECTIONS}/$number/abort || exit 1
done"""
# Of FUSE file systems at or below the folder $1, the inner ones first: `number path`.
BELOW = r"""below() { while read -r _ _ device _ place rest; do
  case "$place/ $rest" in "$1"/*' - fuse'[.\ ]*) printf '%s %b\n' "${device#*:}" "$place";; esac
done < /proc/self/mountinfo | sort -rk 2; }
"""
# Nothing may look at their paths before: whoever looks may hang.
UNMOUNT = BELOW + f"""below @FOLDER@ | while read -r number place; do
  unshare --mount sh -c {shlex.quote(ABORT)} sh "$number"
  umount -l "$place" || exit 1
done"""
# The whole way: a file system without a server is mounted, seen, aborted and unmounted.
TRY = f"""[ -c {DEVICE} ] || {{ echo "no {DEVICE}" >&2; exit 1; }}
exec 3<> {DEVICE}
mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 labbook-probe /mnt
number=$(while read -r _ _ device _ place _; do
  [ "$place" != /mnt ] || echo "${{device#*:}}"; done < /proc/self/mountinfo)
{MOUNT} || true
[ -e {CONNECTIONS}/$number/abort ] || {{ echo "no {CONNECTIONS}" >&2; exit 1; }}
echo 1 > {CONNECTIONS}/$number/abort; umount -l /mnt"""


def mounted(mountinfo: str, below: str) -> list[int]:
    """Numbers of the connections of FUSE file systems below a folder, of a process's mountinfo."""
    found = []
    for line in mountinfo.splitlines():
        fields, _, kind = line.partition(" - ")
        fields = fields.split()
        place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        if place.startswith(f"{below}/") and re.match(r"fuse[. ]", kind):
            found.append(int(fields[2].partition(":")[2]))
    return found


def numbers(pid: int, below: str) -> list[int]:
    """Those that a process sees below a folder, without this process's own; [] of one that ended."""
    try:
        theirs = mounted(_read(pid), below)
    except OSError:
        return []
    return [number for number in theirs if number not in mounted(_read("self"), "")]


def _read(pid) -> str:
    return Path(f"/proc/{pid}/mountinfo").read_text(errors="surrogateescape")


def abort(numbers) -> None:
    """End all waiting on these connections, with an error for who waits; gone ones do no harm.

    OSError where the kernel does not let us.
    """
    if not numbers:
        return
    done = subprocess.run(["unshare", "--mount", "sh", "-c", ABORT, "sh", *map(str, numbers)],
                          capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"FUSE connections {' '.join(map(str, numbers))}: {done.stderr.strip()}")


def unmount(folder) -> str:
    """A script for root: what is mounted at or below the folder is no more, whatever hangs on it."""
    return UNMOUNT.replace("@FOLDER@", shlex.quote(str(folder)))


def note(journal, hosts: list[dict], below: str) -> None:
    """Write down, before hosts are ended, the connections that only ending them would tell of.

    hosts: the journal's entries of their first processes.
    """
    for entry in hosts:
        found = numbers(entry["pid"], below)
        if found:
            journal.write(KIND, pid=entry["pid"], start=entry["start"], numbers=found)


def release(journal) -> None:
    """Abort what was noted of hosts that have not wholly ended yet: the numbers are still theirs."""
    for entry in journal.of(KIND):
        if kernel.start_time(entry["pid"]) == entry["start"]:
            abort(entry["numbers"])

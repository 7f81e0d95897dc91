"""FUSE file systems on hosts: which are mounted, and how to abort and unmount them.

A process that waits for a FUSE server which does not answer waits for ever, even after SIGKILL. The
kernel ends the waiting when the connection to the server is aborted or the server ends; a server
that waits for its own file system cannot end. A connection's number is the minor device number of
its mount, unique on the machine.

Runs as root, with the standard library alone.
"""

import re
import shlex

from labbook.lab import deadline, kernel

KIND = "fuse"       # in a journal: {"made": "fuse", "pid": ..., "start": ..., "numbers": [...]}
DEVICE = "/dev/fuse"
CONNECTIONS = "/sys/fs/fuse/connections"
MOUNT = f"mount -t fusectl fusectl {CONNECTIONS} 2> /dev/null"    # fails where it is mounted
# To be run in a mount namespace, so that no mount becomes visible to others.
ABORT = f"""{MOUNT}
for number in "$@"; do
  [ ! -e {CONNECTIONS}/$number/abort ] || echo 1 > {CONNECTIONS}/$number/abort || exit 1
done"""
# Prints `number path` of FUSE file systems at or below the folder $1, the innermost first.
BELOW = r"""below() { while read -r _ _ device _ place rest; do
  case "$place/ $rest" in *' - fuse.labbook-disk '*) ;;    # under a loop device, which goes first
    "$1"/*' - fuse'[.\ ]*) printf '%s %b\n' "${device#*:}" "$place";; esac
done < /proc/self/mountinfo | sort -rk 2; }
"""
# Nothing may touch their paths before the abort: it might hang.
UNMOUNT = BELOW + f"""below @FOLDER@ | while read -r number place; do
  unshare --mount sh -c {shlex.quote(ABORT)} sh "$number"
  umount -l "$place" || exit 1
done"""
# Mount, find, abort and unmount a file system without a server.
TRY = f"""[ -c {DEVICE} ] || {{ echo "no {DEVICE}" >&2; exit 1; }}
exec 3<> {DEVICE}
mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 labbook-probe /mnt
number=$(while read -r _ _ device _ place _; do
  [ "$place" != /mnt ] || echo "${{device#*:}}"; done < /proc/self/mountinfo)
{MOUNT} || true
[ -e {CONNECTIONS}/$number/abort ] || {{ echo "no {CONNECTIONS}" >&2; exit 1; }}
echo 1 > {CONNECTIONS}/$number/abort; umount -l /mnt"""


def mounted(mountinfo: str, below: str) -> list[int]:
    """Connections' numbers of FUSE file systems below a folder, from a process's mountinfo."""
    return [int(device.partition(":")[2]) for device, place, kind in kernel.mounts(mountinfo)
            if place.startswith(f"{below}/") and re.match(r"fuse[. ]", kind)]


def numbers(pid: int, below: str) -> list[int]:
    """The same of a process by its pid, without those that this process sees; [] when it has ended."""
    try:
        theirs = mounted(kernel.read_mounts(pid), below)
    except OSError:
        return []
    return [number for number in theirs if number not in mounted(kernel.read_mounts(), "")]


def abort(numbers) -> None:
    """Abort connections: whoever waits gets an error. Those that no longer exist are skipped.

    OSError when the kernel refuses.
    """
    if not numbers:
        return
    names = [str(number) for number in numbers]
    deadline.run("unshare", "--mount", "sh", "-c", ABORT, "sh", *names,
                 name=f"FUSE connections {' '.join(names)}")


def unmount(folder) -> str:
    """A shell script for root that aborts and unmounts all FUSE file systems at or below a folder."""
    return UNMOUNT.replace("@FOLDER@", shlex.quote(str(folder)))


def note(journal, hosts: list[dict], *below: str) -> None:
    """Write the connections of hosts that are about to be killed into the journal.

    Afterwards their mount tables cannot be read. `hosts`: the journal's entries of the hosts' first
    processes; `below`: the folders that are the host's own.
    """
    for entry in hosts:
        found = [number for place in below for number in numbers(entry["pid"], place)]
        if found:
            journal.write(KIND, pid=entry["pid"], start=entry["start"], numbers=found)


def release(journal) -> None:
    """Abort the noted connections of hosts that have not ended yet, whose numbers are still valid."""
    for entry in journal.of(KIND):
        if kernel.start_time(entry["pid"]) == entry["start"]:
            abort(entry["numbers"])

"""A lab host's own disk on a real host: a file below the lab's folder, on a loop device.

Root's functions, for `as_root.call`: on the host they see the standard library and lab/local alone.
As on a local host, the host's own folder lies on the disk, past the cache of the host's memory.
"""

import os
import subprocess
from pathlib import Path

from labbook.lab.local import disks, unmake
from labbook.lab.local.journal import Journal

KIND = "disk"           # of entries in a host's journal: {"made": "disk", "file": path}
QUEUE = "queue"         # the same with `was`: the loop device's settings before the lab's
MOUNTS = Path("/proc/self/mountinfo")


def make(place: str, disk: dict) -> dict:
    """Mount a new disk on the lab host's own folder `place`, which stays its owner's.

    `disk`: `limits.disk` of lab.yml, size in bytes. The answer's `number` is the device's
    major:minor, which cgroups.settings() takes for `iops` and `mb_per_s`; `device` its path.
    It is in the journal beside the folder before it is made.
    """
    folder = Path(place).resolve()  # as the kernel will name the file
    if any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: a disk mounted there would hide what it has")
    owner, file = folder.stat(), _file(folder)
    if file.exists():
        raise ValueError(f"{file} is in the way")
    Journal(folder.parent).write(KIND, file=str(file))
    file.touch(0o600)  # what is on the disk is not for other users of the machine
    device = disks.make(file, disk["size"])
    Journal(folder.parent).write(QUEUE, file=str(file), was=disks.queue(device))
    disks.tune(device, disk)
    _run("mount", "-t", "ext4", "-o", "noatime,nosuid,nodev,discard", device, str(folder))
    os.chown(folder, owner.st_uid, owner.st_gid)
    folder.chmod(owner.st_mode & 0o777)
    return {"device": device, "number": disks.number(device)}


def undo(file: str) -> dict:
    """Unmount, detach and delete the disk of a journal's entry; twice does no harm.

    OSError when something still uses it.
    """
    file = os.path.realpath(file)
    for entry in reversed(Journal(Path(file).parent).of(QUEUE)):
        if entry["file"] == file:
            unmake.queue(entry)
    for device in disks.devices(file):
        for place in _mounted(disks.number(device)):
            unmake.patiently(lambda place=place: _run("umount", place))
    unmake.loop({"file": file})
    Path(file).unlink(missing_ok=True)
    return {}


def _file(folder):
    return folder.with_name(f"{folder.name}.disk")


def _mounted(number):
    """Where the device of this number is mounted, the last mount first."""
    lines = [line.split() for line in MOUNTS.read_text().splitlines()]
    return [fields[4] for fields in reversed(lines) if fields[2] == number]


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")

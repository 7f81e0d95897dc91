"""Loop devices: a host's own disk is a file on one, with direct I/O past the machine's page cache.

Runs as root, with the standard library alone.
"""

import os
from pathlib import Path

from labbook.lab import deadline

# In this order: the kernel sets a read-ahead of its own for a disk that turns.
SETTINGS = ("scheduler", "rotational", "read_ahead_kb")
TAGS = range(4, 129)    # requests that a loop device takes at a time: the kernel's least, and its usual
READ_AHEAD_KB = 128     # the kernel's usual: a loop device keeps the largest that it ever had
READ_AHEADS_KB = range(0, (1 << 20) + 1, 4)     # the kernel reads ahead by whole pages
READ_AHEADS = f"multiples of {READ_AHEADS_KB.step} from 0 to {READ_AHEADS_KB[-1]}"
MKFS_SECONDS = 120  # of a large disk on a busy machine


def make(file: Path, size: int) -> str:
    """Make a sparse file with ext4 on a loop device with direct I/O; return the device's path.

    Only root can read the file: it has whatever the host keeps, keys too. Mount it with `discard`: otherwise deleted
    blocks stay in the file, which grows to full size; and with `noinit_itable`: otherwise the kernel writes all inode
    tables in the background, which a new sparse file has as zeros already.
    """
    make_file(file, size)
    return attach(file)


def make_file(file: Path, size: int) -> None:
    """Make the sparse file alone."""
    with open(file, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as disk:
        disk.truncate(size)


def attach(file: Path, *options: str) -> str:
    """Put ext4 on a loop device on the file; `options`: more of mkfs.ext4's extended ones."""
    device = deadline.run("losetup", "--find", "--show", "--direct-io=on", str(file)).strip()
    deadline.run("mkfs.ext4", "-q", "-F", "-m", "0", "-E",
                 ",".join(("lazy_itable_init=1", "lazy_journal_init=1", *options)), device, seconds=MKFS_SECONDS)
    return device


# Only without a scheduler does `nr_requests` mean the tags, which then stay: a scheduler chosen afterwards has
# `nr_requests` of its own. Writing what is shown already changes nothing, so another number goes first.
SET_TAGS = """cd "$2"; was=$(sed 's/.*\\[//; s/\\].*//' scheduler); echo none > scheduler
other=$(($1 - 1)); [ $other -ge 4 ] || other=5
echo $other > nr_requests; echo $1 > nr_requests; echo "$was" > scheduler"""


def queue(device: str) -> dict:
    """The device's scheduler and rotational, and its usual read-ahead and tags, which outlive the file that
    backs it."""
    place = _queue(device)
    offered = (place / "scheduler").read_text().split()
    chosen = [name.strip("[]") for name in offered if name.startswith("[")] or offered
    return {"scheduler": chosen[0], "rotational": (place / "rotational").read_text().strip(),
            "read_ahead_kb": READ_AHEAD_KB, "tags": TAGS[-1]}


def tune(device: str, disk: dict) -> None:
    """Set SETTINGS and `tags`, as far as they are given; OSError when refused."""
    queue = _queue(device)
    for key in SETTINGS:
        if disk.get(key) is not None:
            try:
                (queue / key).write_text(str(disk[key]))
            except OSError:
                offered = (queue / key).read_text().strip()
                raise OSError(f"the disk does not accept {key} {disk[key]} (available: {offered})")
    if disk.get("tags") is not None:
        deadline.run("sh", "-ec", SET_TAGS, "sh", str(disk["tags"]), str(queue))


def _queue(device) -> Path:
    return Path("/sys/block", Path(device).name, "queue")


def number(device: str) -> str:
    """major:minor of a device."""
    device_id = os.stat(device).st_rdev
    return f"{os.major(device_id)}:{os.minor(device_id)}"


def devices(file: str) -> list[str]:
    """Loop devices that this file backs, also when it has been deleted."""
    found = []
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = entry.read_text().strip().removesuffix(" (deleted)")
        except OSError:
            continue
        if backing == file:
            found.append(f"/dev/{entry.parts[3]}")
    return found


def detach(device: str) -> None:
    deadline.run("losetup", "--detach", device)

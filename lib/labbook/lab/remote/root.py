"""Functions for `as_root.call` on a user's host: a lab host's own disk, and its limits.

They may import the standard library and as_root.MODULES only. As on a local host, the disk is mounted
on the host's own folder and bypasses the machine's page cache.
"""

import os
from pathlib import Path

from labbook.lab import deadline, kernel
from labbook.lab.disk import loop_device, making, modelled
from labbook.lab.journal import Journal
from labbook.lab.local import cgroups, freezer, unmake

PROGRAMS = "programs"   # a folder of the lab's, of what was compiled
DISK = "disk"           # of entries in a host's journal: {"made": "disk", "file": path}
GROUP, SWITCHED = "cgroup", "controller"     # of entries in a host's journal


def make_disk(place: str, disk: dict, source: str = "") -> dict:
    """Make a disk and mount it on the lab host's own folder `place`, whose owner stays the same.

    `disk`: `limits.disk` of lab.yml, size in bytes; `source`: of the daemon, if it is modelled. Returns the
    device's path as `device` and its major:minor as `number`, for cgroups.settings(). Written into the
    journal beside the folder first.
    """
    folder = Path(place).resolve()  # as the kernel will name the file
    if any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: a disk mounted there would hide what it has")
    owner, file = folder.stat(), _file(folder)
    if file.exists():
        raise ValueError(f"{file} is in the way")
    Journal(folder.parent).write(DISK, file=str(file))
    file.touch(0o600)  # other users of the machine must not read the disk
    program = modelled.build(folder.parent / PROGRAMS, source) if "model" in disk else None
    device = making.make(file, disk, Journal(folder.parent), program, folder.parent, owner.st_uid)
    deadline.run("mount", "-t", "ext4", "-o", "noatime,nosuid,nodev,discard,noinit_itable", device, str(folder))
    os.chown(folder, owner.st_uid, owner.st_gid)
    folder.chmod(owner.st_mode & 0o777)
    return {"device": device, "number": loop_device.number(device)}


def hurry_disks(lab: str) -> dict:
    """Let the modelled disks of the journal in a lab's folder wait no more: it goes down."""
    for entry in Journal(Path(lab)).of(modelled.KIND):
        modelled.hurry(entry)
    return {}


def undo_disk(file: str) -> dict:
    """Unmount, detach and delete the disk of a journal's entry, as far as it exists.

    OSError when something still uses it.
    """
    file = Path(os.path.realpath(file))
    journal = Journal(file.parent)
    daemons = [entry for entry in journal.of(modelled.KIND) if entry["file"] == str(file)]
    for entry in daemons:
        modelled.hurry(entry)
    below = str(modelled.served_file(file) if daemons else file)
    for entry in reversed(journal.of(making.QUEUE)):
        if entry["file"] == below:
            unmake.restore_queue(entry)
    for device in loop_device.devices(below):
        for place in _mounted(loop_device.number(device)):
            unmake.retry(lambda place=place: deadline.run("umount", place))
    unmake.remove_loop({"file": below})
    for entry in daemons:
        modelled.undo(entry)
    file.unlink(missing_ok=True)
    return {}


def _file(folder):
    return folder.with_name(f"{folder.name}.disk")


def _mounted(number):
    """Where the device of this number is mounted, the last mount first."""
    return [place for device, place, _ in reversed(kernel.mounts(kernel.read_mounts())) if device == number]


def make_limits(place: str, lab: str, name: str, limits: dict, cores: list[int] | None,
         number: str | None, uid: int, root: str = str(cgroups.ROOT)) -> dict:
    """Make control groups for lab host `name`; written into the journal in `place` first.

    `limits` as in lab.yml, sizes in bytes; `number`: its disk's major:minor. User `uid` may move
    processes into the groups where the kernel permits it (version 1).
    """
    journal, root = Journal(Path(place)), Path(root)
    can_freeze = {freezer.LIMIT} if freezer.is_mounted(root) else set()
    places = cgroups.folders(lab, name, cgroups.wanted(limits) | can_freeze, root)
    folders = list(dict.fromkeys(map(str, places.values())))
    for controller in _off(places, root):
        journal.write(SWITCHED, name=controller)
    for folder in folders:
        journal.write(GROUP, folder=folder)
    cgroups.make(places, root)
    cgroups.apply(places, cgroups.settings(limits, cores, number, cgroups.version(root)), root)
    for folder in folders:
        os.chown(Path(folder, "cgroup.procs"), uid, -1)
    return {"groups": folders, "freezer": any(freezer.works(Path(folder)) for folder in folders)}


def change_quota(lab: str, name: str, share: float | None) -> dict:
    """Change the quota of lab host `name`, which came up with one, or (None) lift it."""
    cgroups.apply(cgroups.folders(lab, name, {"quota"}), cgroups.quota(share, cgroups.version()))
    return {}


def freeze(lab: str, groups: dict[str, list[str]], frozen: bool) -> dict:
    """Freeze all lab hosts of `groups`, {name: its control groups}, or none of them; or thaw them.

    ValueError when one came up without a freezer, OSError when the processes of one do not stop.
    """
    places = {name: freezer.folder(lab, name) for name in groups}
    for name, place in places.items():
        if str(place) not in groups[name] or not freezer.works(place):
            raise ValueError(f"{name} came up without a freezer")
    if not frozen:
        _thaw(places.values())
        return {}
    try:
        for place in places.values():
            freezer.freeze(place)
    except BaseException:
        _thaw(places.values())
        raise
    return {}


def _thaw(places) -> None:
    """All of them; then the OSError of one that failed."""
    problem = None
    for place in places:
        try:
            freezer.thaw(place)
        except OSError as error:
            problem = error
    if problem:
        raise problem


def undo_limits(folders: list[str], controllers: list[str], root: str = str(cgroups.ROOT)) -> dict:
    """Remove the groups of a journal, as far as they exist, and disable controllers that were off."""
    for folder in reversed(folders):
        unmake.retry(lambda folder=folder: cgroups.remove(Path(folder)))
    for controller in controllers:
        try:
            Path(root, "cgroup.subtree_control").write_text(f"-{controller}")
        except OSError:
            pass  # in use by others by now
    return {}


def _off(places, root) -> list[str]:
    """Controllers of version 2 that have to be enabled for all groups of the machine."""
    if cgroups.version(root) == 1:
        return []
    needed = {c for limit in places for c in cgroups.needs(limit)}
    return sorted(needed - set((root / "cgroup.subtree_control").read_text().split()))

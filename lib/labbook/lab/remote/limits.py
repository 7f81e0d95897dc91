"""A lab host's limits on a real host: control groups of its own, into which its processes go.

Root's functions, for `as_root.call`: on the host they see the standard library and lab/local alone.
"""

import os
from pathlib import Path

from labbook.lab.local import cgroups, unmake
from labbook.lab.local.journal import Journal

KIND, SWITCHED = "cgroup", "controller"     # of entries in a host's journal


def make(place: str, lab: str, name: str, limits: dict, cores: list[int] | None,
         number: str | None, uid: int, root: str = str(cgroups.ROOT)) -> dict:
    """Folders of the groups of lab host `name`, in the journal of the lab's folder `place` beforehand.

    `limits` as in lab.yml, sizes in bytes; `number`: of its disk, major:minor. User `uid` may
    move processes into the groups where the kernel lets him (version 1).
    """
    journal, root = Journal(Path(place)), Path(root)
    places = cgroups.folders(lab, name, cgroups.wanted(limits), root)
    folders = list(dict.fromkeys(map(str, places.values())))
    for controller in _off(places, root):
        journal.write(SWITCHED, name=controller)
    for folder in folders:
        journal.write(KIND, folder=folder)
    cgroups.make(places, root)
    cgroups.apply(places, cgroups.settings(limits, cores, number, cgroups.version(root)), root)
    for folder in folders:
        os.chown(Path(folder, "cgroup.procs"), uid, -1)
    return {"groups": folders}


def change(lab: str, name: str, groups: list[str], share: float | None) -> dict:
    """Another quota for lab host `name`, or (None) none; ValueError when it came up without one."""
    places = cgroups.folders(lab, name, {"quota"})
    has = places["quota"] / ("cpu.max" if cgroups.version() == 2 else "cpu.cfs_quota_us")
    if str(places["quota"]) not in groups or not has.exists():
        raise ValueError(f"{name} came up without a quota, so it takes none now")
    cgroups.apply(places, cgroups.quota(share, cgroups.version()))
    return {}


def undo(folders: list[str], controllers: list[str], root: str = str(cgroups.ROOT)) -> dict:
    """Remove the groups of a journal, and switch off what was off; twice does no harm."""
    for folder in reversed(folders):
        unmake.patiently(lambda folder=folder: cgroups.remove(Path(folder)))
    for controller in controllers:
        try:
            Path(root, "cgroup.subtree_control").write_text(f"-{controller}")
        except OSError:
            pass  # another has come to use it
    return {}


def _off(places, root) -> list[str]:
    """Controllers of version 2 that have to be switched on for all groups of the machine."""
    if cgroups.version(root) == 1:
        return []
    needed = {c for limit in places for c in cgroups.needs(limit)}
    return sorted(needed - set((root / "cgroup.subtree_control").read_text().split()))

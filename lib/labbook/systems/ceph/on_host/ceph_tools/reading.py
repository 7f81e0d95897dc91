"""What an MDS's answers say. Pure."""

import json

# name here: group and name of the counter. mds_mem's are of the moment, where mds.inodes lags.
COUNTERS = {
    "inodes": ("mds_mem", "ino"), "dentries": ("mds_mem", "dn"), "dirs": ("mds_mem", "dir"),
    "exported": ("mds", "exported"), "imported": ("mds", "imported"),
    "exported_inodes": ("mds", "exported_inodes"), "imported_inodes": ("mds", "imported_inodes"),
    "requests": ("mds_server", "handle_client_request"), "forward": ("mds", "forward"),
}
MOVING = {"exporting", "importing", "frozentree", "freezingtree"}


def look(status: dict, counters: dict, subtrees: list) -> dict:
    """A row of what it has and does: rank, state, COUNTERS, owned."""
    rank = status["whoami"]
    found = {name: int(counters[group][key]) for name, (group, key) in COUNTERS.items()}
    return {"rank": rank if rank >= 0 else None, "state": status["state"].removeprefix("up:"),
            **found, "owned": owned(subtrees, rank)}


def listed(answer: bytes) -> list:
    """Subtrees as told; none when it has no rank, and says so in words."""
    try:
        found = json.loads(answer)
    except ValueError:
        return []
    return found if isinstance(found, list) else []


def owned(subtrees: list, rank: int) -> list:
    """Paths of the directories from which on this rank is in charge; `/` is the root, and
    `/dir#0*` a part of a directory. Each rank's own `~mds0` is left out."""
    return sorted(named(each["dir"]) for each in subtrees
                  if each["auth_first"] == rank and not each["dir"]["path"].startswith("~"))


def moving(subtrees: list) -> list:
    """Paths of the directories on their way to another rank, or in nobody's charge for sure."""
    return sorted(named(each["dir"]) for each in subtrees
                  if MOVING & set(each["dir"]["states"]) or each["auth_second"] >= 0)


def waits_for(inode, rank: int) -> bool:
    """Whether one of its locks waits for that rank's word; not so of what a server does not have."""
    locks = [told for name, told in inode.items() if name.endswith("lock")] if isinstance(inode, dict) else []
    return any(rank in lock.get("gather_set", ()) for lock in locks)


def named(directory: dict) -> str:
    _, dot, part = directory["dirfrag"].partition(".")
    return (directory["path"] or "/") + (f"#{part}" if dot else "")

"""Parse an MDS's answers. Pure functions."""

import json

# Our name: group and name of Ceph's counter. mds_mem's are current, mds.inodes lags.
COUNTERS = {
    "inodes": ("mds_mem", "ino"), "dentries": ("mds_mem", "dn"), "dirs": ("mds_mem", "dir"),
    "exported": ("mds", "exported"), "imported": ("mds", "imported"),
    "exported_inodes": ("mds", "exported_inodes"), "imported_inodes": ("mds", "imported_inodes"),
    "requests": ("mds_server", "handle_client_request"), "forward": ("mds", "forward"),
}
MIGRATING = {"exporting", "importing", "frozentree", "freezingtree"}


def sample(status: dict, counters: dict, subtrees: list) -> dict:
    """One sample: rank, state, COUNTERS, owned."""
    rank = status["whoami"]
    found = {name: int(counters[group][key]) for name, (group, key) in COUNTERS.items()}
    return {"rank": rank if rank >= 0 else None, "state": status["state"].removeprefix("up:"),
            **found, "owned": owned(subtrees, rank)}


def subtree_list(answer: bytes) -> list:
    """The answer to `get subtrees`; [] if the MDS has no rank and answers with a text."""
    try:
        found = json.loads(answer)
    except ValueError:
        return []
    return found if isinstance(found, list) else []


def owned(subtrees: list, rank: int) -> list:
    """Paths of the directories at which this rank's subtrees begin, without its own `~mds0`.

    `/` is the root, and `/dir#0*` a fragment of a directory.
    """
    return sorted(path_of(each["dir"]) for each in subtrees
                  if each["auth_first"] == rank and not each["dir"]["path"].startswith("~"))


def migrating(subtrees: list) -> list:
    """Paths of the directories that are migrating or whose owner is not settled."""
    return sorted(path_of(each["dir"]) for each in subtrees
                  if MIGRATING & set(each["dir"]["states"]) or each["auth_second"] >= 0)


def waits_for(inode, rank: int) -> bool:
    """Whether one of the inode's locks waits for an answer from that rank."""
    locks = [lock for name, lock in inode.items() if name.endswith("lock")] if isinstance(inode, dict) else []
    return any(rank in lock.get("gather_set", ()) for lock in locks)


def path_of(directory: dict) -> str:
    _, dot, part = directory["dirfrag"].partition(".")
    return (directory["path"] or "/") + (f"#{part}" if dot else "")

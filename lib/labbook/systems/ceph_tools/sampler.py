"""Asks one MDS over and over how much it has in its cache and what it does, and writes that down.

A line of JSON a look; none while nobody answers. It ends by SIGTERM.
"""

import json
import time

from asking import ask

ASK_S = 5
QUESTIONS = ("status", "perf dump", "get subtrees")
# name here: group and name of the counter. mds_mem's are of the moment, where mds.inodes lags.
COUNTERS = {
    "inodes": ("mds_mem", "ino"), "dentries": ("mds_mem", "dn"), "dirs": ("mds_mem", "dir"),
    "exported": ("mds", "exported"), "imported": ("mds", "imported"),
    "exported_inodes": ("mds", "exported_inodes"), "imported_inodes": ("mds", "imported_inodes"),
    "requests": ("mds_server", "handle_client_request"), "forward": ("mds", "forward"),
}


def main(path, seconds_between, out):
    between, due = float(seconds_between), time.monotonic()
    with open(out, "w", buffering=1) as file:
        while True:
            if found := look(path):
                file.write(json.dumps(found) + "\n")
            due = max(due + between, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))


def look(path):
    """What the MDS at that socket says; None when it does not."""
    began = time.time()
    try:
        status, counters, subtrees = (ask(path, {"prefix": question}, ASK_S)
                                      for question in QUESTIONS)
        t_s = (began + time.time()) / 2
        return {"t_s": t_s, **read(json.loads(status), json.loads(counters), listed(subtrees))}
    except (OSError, ValueError, KeyError):     # gone, or not yet there as a whole
        return None


def read(status: dict, counters: dict, subtrees: list) -> dict:
    rank = status["whoami"]
    found = {name: int(counters[group][key]) for name, (group, key) in COUNTERS.items()}
    return {"rank": rank if rank >= 0 else None, "state": status["state"].removeprefix("up:"),
            **found, "owned": owned(subtrees, rank)}


def listed(subtrees: bytes) -> list:
    """None when it has no rank, and says so in words."""
    try:
        found = json.loads(subtrees)
    except ValueError:
        return []
    return found if isinstance(found, list) else []


def owned(subtrees: list, rank: int) -> list:
    """Paths of the directories from which on this rank is in charge; `/` is the root, and
    `dir#0*` a part of a directory. Each rank's own `~mds0` is left out."""
    return sorted(named(each["dir"]) for each in subtrees
                  if each["auth_first"] == rank and not each["dir"]["path"].startswith("~"))


def named(directory: dict) -> str:
    _, dot, part = directory["dirfrag"].partition(".")
    return (directory["path"] or "/") + (f"#{part}" if dot else "")

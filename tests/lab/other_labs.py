"""Labs that other living processes own, and what of a machine is theirs: read from the kernel.

A lab's folder has `owner.lock`, which its owner holds. /proc/locks says who holds it; to try the lock
would disturb the owner.
"""

import json
import os
import re
from pathlib import Path

RECORDS = Path("/run/labbook")
FOREIGN = Path("/var/tmp/labbook-foreign")      # tests/lab/foreign.py
NAMESPACES = ("net", "mnt")     # which a process leaves when it ends, also if nobody waits for it
LOCK = re.compile(r"^\d+: FLOCK +\S+ +WRITE (\d+) (\S+) ", re.MULTILINE)


class OtherLabs:
    """The labs of this moment whose owners `is_ours(pid)` does not claim."""

    def __init__(self, is_ours=lambda pid: False):
        locks = _locks()
        labs = [folder for folder in RECORDS.glob("[!.]*/") if _owned(folder, locks, is_ours)]
        foreign = [folder for folder in FOREIGN.glob("??????/") if _owned(folder, locks, is_ours)]
        self._names = [re.compile(rf"(\blb-|labbook[-/]|\.locks/lab-){re.escape(lab.name)}(?![a-z0-9])") for lab in labs]
        for place in foreign:
            self._names += [re.compile(rf"(\bfh-|foreign[-/]){place.name}(?![a-z0-9])"), re.compile("on /home/op/")]
        self._namespaces = set().union(*(namespaces(pid) for lab in labs for pid in _hosts(lab)))
        self._processes = {int(path.name) for path in Path("/proc").glob("[0-9]*")
                           if namespaces(path.name) & self._namespaces}
        self._connections = set().union(*map(_connections, self._processes), (
            number for number, place in _mounted("self").items() if any(name.search(place) for name in self._names)))

    def have(self, thing: str) -> bool:
        """Whether a line of `machine_state.snapshot` names something of theirs."""
        kind, _, rest = thing.partition(" ")
        if kind == "process" and int(rest.split()[0]) in self._processes:
            return True
        if kind == "FUSE":
            return rest.removeprefix("connection ") in self._connections
        return any(name.search(thing) for name in self._names)


def namespaces(pid) -> set[str]:
    """The namespaces of a process, without those of this one."""
    found = set()
    for kind in NAMESPACES:
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
        except OSError:     # it has ended, or is another user's
            continue
    return found - {os.readlink(f"/proc/self/ns/{kind}") for kind in NAMESPACES}


def _locks() -> dict[str, int]:
    """{device and inode of a file: the process that holds a write lock on it}."""
    return {file: int(pid) for pid, file in LOCK.findall(Path("/proc/locks").read_text())}


def _owned(folder: Path, locks: dict[str, int], is_ours) -> bool:
    try:
        file = (folder / "owner.lock").stat()
    except OSError:
        return False
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    return place in locks and not is_ours(locks[place])


def _hosts(lab: Path) -> list[int]:
    """The first process of each of a lab's hosts, by its journal."""
    found = []
    try:
        lines = (lab / "journal").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:      # it is being written
            continue
        if entry["made"] == "process" and _start(entry["pid"]) == entry["start"]:
            found.append(entry["pid"])
    return found


def _start(pid) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None


def _connections(pid) -> set[str]:
    """Numbers of the FUSE connections that are mounted where a process is, and not where this one is."""
    return set(_mounted(pid)) - set(_mounted("self"))


def _mounted(pid) -> dict[str, str]:
    """{number of a FUSE connection: where it is mounted} in a process's namespace."""
    try:
        lines = Path(f"/proc/{pid}/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return {}
    return {line.split()[2].partition(":")[2]: line.split()[4] for line in lines
            if re.match(r"fuse[. ]", line.partition(" - ")[2])}

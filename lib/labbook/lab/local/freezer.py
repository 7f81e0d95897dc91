"""Freeze the processes of a host, by the freezer of control groups of version 1 or 2.

A local host's sshd stays awake, in a group beside the host's, so that connections live on and the host
still takes commands. A frozen process of version 1 does not even end upon SIGKILL before it is thawed.
Standard library only.
"""

import time
from contextlib import suppress
from pathlib import Path

from labbook.lab.local import cgroups

LIMIT = "freeze"            # the key of cgroups.CONTROLLER
MOST_MOVES = 20             # of processes that fork while they are moved
SECONDS = 25                # for all processes to stop; those that wait for a disk stop later
STATE, SWITCH = "freezer.state", "cgroup.freeze"    # of version 1 and of version 2


def folder(lab: str, host: str, root: Path = cgroups.ROOT) -> Path:
    """The host's group with the freezer."""
    return cgroups.folders(lab, host, {LIMIT}, root)[LIMIT]


def beside(place: Path) -> Path:
    """The group of the host's sshd while the host is frozen."""
    return place.with_name(f"{place.name}.ssh")


def is_mounted(root: Path = cgroups.ROOT) -> bool:
    """Whether hosts can have a freezer here."""
    return cgroups.version(root) == 2 or (root / "freezer").is_dir()


def works(place: Path) -> bool:
    """Whether a group that was made has a freezer (version 2 has none before Linux 5.2)."""
    return (place / STATE).exists() or (place / SWITCH).exists()


def freeze(place: Path, seconds: float = SECONDS) -> None:
    """Stop all processes of a host's group but sshd. OSError when one does not stop in time; then all
    go on."""
    try:
        _keep_sshd_awake(place)
        until = time.monotonic() + seconds
        while not _becomes_frozen(place):
            if time.monotonic() > until:
                raise OSError(f"the processes of {place.name} did not stop within {seconds:g} s")
            time.sleep(0.002)
    except BaseException:
        thaw(place)
        raise


def thaw(place: Path) -> None:
    """Let all processes of a host's group go on."""
    release(place)
    aside = beside(place)
    for _ in range(MOST_MOVES):     # a process may fork while it is moved
        for pid in (pids := _pids(aside)):      # of commands that came while the host was frozen
            _move(pid, place)
        if not pids:
            break
    with suppress(OSError):     # what still comes is moved when the host is thawed next
        aside.rmdir()


def release(place: Path) -> None:
    """Let frozen processes of a group go on, if it has a freezer: without this they may not end."""
    if works(place):
        _switch(place, False)


def _switch(place, frozen: bool):
    if (place / STATE).exists():
        (place / STATE).write_text("FROZEN" if frozen else "THAWED")
    else:
        (place / SWITCH).write_text("1" if frozen else "0")


def _becomes_frozen(place) -> bool:
    """Ask for it, and look. Version 1 asks each process once, and one that is on its way into vfork's wait misses
    that; the child that it waits for is frozen before it has executed anything, so that neither goes on."""
    _switch(place, True)
    return _is_frozen(place)


def _is_frozen(place) -> bool:
    if (place / STATE).exists():
        return (place / STATE).read_text().strip() == "FROZEN"
    return "frozen 1" in (place / "cgroup.events").read_text().splitlines()


def _keep_sshd_awake(place):
    while found := [pid for pid in _pids(place) if _is_sshd(pid)]:
        beside(place).mkdir(exist_ok=True)
        for pid in found:
            _move(pid, beside(place))


def _pids(place) -> list[str]:
    with suppress(FileNotFoundError):
        return (place / "cgroup.procs").read_text().split()
    return []


def _is_sshd(pid) -> bool:
    """Also its processes for single connections, sshd-session since OpenSSH 9.8."""
    with suppress(OSError):
        return Path("/proc", pid, "comm").read_text().startswith("sshd")
    return False


def _move(pid, place):
    with suppress(ProcessLookupError):  # it ended meanwhile
        (place / "cgroup.procs").write_text(pid)

"""Take down a lab by its journal; what is not in it is not touched.

It always ends: every step has a deadline, and runs in a process that is left behind if the kernel does
not end it. What could not be undone is named and stays in the journal, so the next command tries again.
"""

import os
import shutil
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from labbook.lab import deadline, kernel
from labbook.lab.disk import loop_device, modelled, tracefs
from labbook.lab.host import fuse
from labbook.lab.local import cgroups, freezer
from labbook.lab.local.layout import unblock_route
from labbook.lab.local.sandbox import PRIVATE, ROOT

PATIENCE = 20  # seconds that the kernel may take to end a host's processes and to release what they had
STEP_SECONDS = 30   # for one entry; more than PATIENCE
FOLDER_SECONDS = 100    # to delete a host's folder, which may have many files
SECONDS = 170   # for all; less than the helper's own deadline


def unmake(journal) -> list[str]:
    """Undo all entries; return messages about what could not be undone (the journal then stays)."""
    problems, until = [], time.monotonic() + SECONDS

    def each(kind, undo, seconds=STEP_SECONDS):
        entries = reversed(journal.of(kind))
        for entry, why in deadline.each(undo, entries, seconds, until):
            problems.append(f"{_name(entry)}: {why}")

    if journal.this_boot():
        stuck = _end(journal, problems, until)
        patience = 0 if stuck else PATIENCE     # what they hold is not released before they end
        each("link", _link)
        each("route", lambda entry: unblock_route(entry["block"]))
        each(tracefs.KIND, partial(_trace, patience=patience))
        each("queue", restore_queue)
        each("loop", partial(remove_loop, patience=patience))
        each(modelled.KIND, modelled.undo)
        each("cgroup", partial(_cgroup, patience=patience))
    each("folder", _folder, FOLDER_SECONDS)
    return problems


def _name(entry) -> str:
    """What an entry is about, for messages."""
    facts = [str(entry[key]) for key in ("name", "instance", "file", "folder", "path", "block") if key in entry]
    return " ".join([entry["made"], *facts])


def _end(journal, problems, until) -> bool:
    """Kill the first process of each host, which ends the host; start times identify processes. What is
    frozen is thawed, since it would not end.
    Whether some do not end."""
    mine = [e for e in journal.of("process") if _lives(e)]
    fuse.note(journal, mine, ROOT, *PRIVATE)
    problems += [why for _, why in deadline.each(modelled.hurry, journal.of(modelled.KIND), STEP_SECONDS, until)]
    for entry in mine:
        with suppress(ProcessLookupError):
            os.kill(entry["pid"], signal.SIGKILL)
    groups = [Path(entry["folder"]) for entry in journal.of("cgroup")]
    problems += [f"{place.name}: {why}"
                 for place, why in deadline.each(freezer.release, groups, STEP_SECONDS, until)]
    problems += [why for _, why in deadline.each(fuse.release, [journal], STEP_SECONDS, until)]
    until = time.monotonic() + PATIENCE
    while (left := [e for e in mine if _lives(e)]) and time.monotonic() < until:
        time.sleep(0.002)
    problems += [f"process {e['pid']} ({e['name']}) does not end: {_waits(e['pid'])}" for e in left]
    return bool(left)


def _lives(entry) -> bool:
    return entry["start"] is not None and kernel.start_time(entry["pid"]) == entry["start"]


def _waits(first: int) -> str:
    """Which processes below a host's first process wait in the kernel, and where in it."""
    parents, waiting = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):     # it ended meanwhile
            name, _, rest = (place / "stat").read_text().partition(" (")[2].rpartition(") ")
            state, parent = rest.split()[:2]
            parents[int(place.name)] = int(parent)
            if state == "D":
                waiting[int(place.name)] = f"{place.name} ({name}) in {(place / 'wchan').read_text()}"
    found = [text for pid, text in waiting.items() if first in _ancestors(pid, parents)]
    return f"waiting in the kernel: {', '.join(found)}" if found else "`ps` tells what it waits for"


def _ancestors(pid, parents):
    """A process and those above it."""
    line = []
    while pid in parents and pid not in line:
        line.append(pid)
        pid = parents[pid]
    return line


def _link(entry):
    with suppress(OSError):     # it is gone
        deadline.run("ip", "link", "delete", entry["name"])
    if Path("/sys/class/net", entry["name"]).exists():
        raise OSError("it does not go away")


def _trace(entry, patience=PATIENCE):
    traces([entry["instance"]], patience)


def traces(names: list[str], patience: float = PATIENCE) -> dict:
    """Remove tracing instances, whose readers have ended."""
    retry(lambda: tracefs.undo(*names), patience)
    return {}


def restore_queue(entry):
    """Restore scheduler and read-ahead of a loop device to what an entry says they were."""
    for device in loop_device.devices(entry["file"]):
        for setting in (*loop_device.SETTINGS, "tags"):     # in this order, also where one is refused
            with suppress(OSError):  # the kernel no longer has that scheduler
                loop_device.tune(device, {setting: entry["was"].get(setting)})


def remove_loop(entry, patience: float = PATIENCE):
    """Detach the loop devices of an entry's `file`. OSError when one stays in use."""
    for device in loop_device.devices(entry["file"]):
        cgroups.unthrottle(loop_device.number(device))  # before another lab gets the device
        retry(lambda device=device: loop_device.detach(device), patience)
    retry(lambda: _gone(entry["file"]), patience)


def _gone(file):
    if loop_device.devices(file):
        raise OSError(f"{file} is still in use as a disk")


def _cgroup(entry, patience=PATIENCE):
    for folder in cgroups.alike(Path(entry["folder"])):
        retry(lambda folder=folder: cgroups.remove(folder), patience)


def _folder(entry):
    shutil.rmtree(entry["path"], onerror=_unless_missing)


def _unless_missing(_, path, error):
    if not issubclass(error[0], FileNotFoundError):
        raise error[1]


def retry(action, patience: float = PATIENCE):
    """Retry on OSError: the kernel releases a killed host's resources a moment later."""
    until = time.monotonic() + patience
    while True:
        try:
            return action()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)

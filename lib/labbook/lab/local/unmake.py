"""Take a lab down from its journal alone: what is not in it is not touched."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from labbook.lab.disk import loop_device, tracefs
from labbook.lab.host import fuse
from labbook.lab.local import cgroups, kernel
from labbook.lab.local.sandbox import ROOT

PATIENCE = 20  # seconds that the kernel may take to end a host's processes


def unmake(journal) -> list[str]:
    """Undo everything recorded; returns what could not be undone (then the journal stays)."""
    problems = []
    if journal.this_boot():
        _end(journal, problems)
        for kind, undo in (("link", _link), (tracefs.KIND, _trace), ("queue", queue),
                           ("loop", loop), ("cgroup", _cgroup)):
            for entry in reversed(journal.of(kind)):
                _try(undo, entry, problems)
    for entry in journal.of("folder"):
        _try(_folder, entry, problems)
    return problems


def _try(undo, entry, problems):
    try:
        undo(entry)
    except OSError as error:
        problems.append(str(error))


def _end(journal, problems):
    """End the first process of each host, and with it the host; pids are checked by start time."""
    mine = [e for e in journal.of("process") if e["start"] is not None
            and kernel.start_time(e["pid"]) == e["start"]]
    fuse.note(journal, mine, ROOT)
    for entry in mine:
        with suppress(ProcessLookupError):
            os.kill(entry["pid"], signal.SIGKILL)
    _try(fuse.release, journal, problems)
    until = time.monotonic() + PATIENCE
    for entry in mine:
        while kernel.start_time(entry["pid"]) == entry["start"]:
            if time.monotonic() > until:
                problems.append(f"process {entry['pid']} ({entry['name']}) does not end")
                break
            time.sleep(0.002)


def _link(entry):
    subprocess.run(["ip", "link", "delete", entry["name"]], capture_output=True)
    if Path("/sys/class/net", entry["name"]).exists():
        raise OSError(f"link {entry['name']} does not go away")


def _trace(entry):
    traces([entry["instance"]])


def traces(names: list[str]) -> dict:
    """Remove tracing instances; who read one has ended."""
    patiently(lambda: tracefs.undo(*names))
    return {}


def queue(entry):
    """Leave the next disk on an entry's loop devices the scheduler and read-ahead that `was`."""
    for device in loop_device.devices(entry["file"]):
        with suppress(OSError):  # a scheduler that the kernel has no more
            loop_device.tune(device, entry["was"])


def loop(entry):
    """Undo the disk of an entry: the loop devices that stand on its `file`. OSError when in use."""
    for device in loop_device.devices(entry["file"]):
        cgroups.unthrottle(loop_device.number(device))  # while it is ours: the next lab may get it
        patiently(lambda device=device: loop_device.detach(device))
    patiently(lambda: _gone(entry["file"]))


def _gone(file):
    if loop_device.devices(file):
        raise OSError(f"{file} is still in use as a disk")


def _cgroup(entry):
    patiently(lambda: cgroups.remove(Path(entry["folder"])))


def _folder(entry):
    shutil.rmtree(entry["path"], onerror=_unless_missing)


def _unless_missing(_, path, error):
    if not issubclass(error[0], FileNotFoundError):
        raise error[1]


def patiently(action):
    """The kernel lets go of an ended host's things a moment later."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return action()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)

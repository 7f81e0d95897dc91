"""Take down a lab by its journal; what is not in it is not touched."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from labbook.lab import kernel
from labbook.lab.disk import loop_device, tracefs
from labbook.lab.host import fuse
from labbook.lab.local import cgroups
from labbook.lab.local.sandbox import ROOT

PATIENCE = 20  # seconds that the kernel may take to end a host's processes


def unmake(journal) -> list[str]:
    """Undo all entries; return messages about what could not be undone (the journal then stays)."""
    problems = []
    if journal.this_boot():
        _end(journal, problems)
        for kind, undo in (("link", _link), (tracefs.KIND, _trace), ("queue", restore_queue),
                           ("loop", remove_loop), ("cgroup", _cgroup)):
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
    """Kill the first process of each host, which ends the host; start times identify processes."""
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
    """Remove tracing instances, whose readers have ended."""
    retry(lambda: tracefs.undo(*names))
    return {}


def restore_queue(entry):
    """Restore scheduler and read-ahead of a loop device to what an entry says they were."""
    for device in loop_device.devices(entry["file"]):
        with suppress(OSError):  # the kernel no longer has that scheduler
            loop_device.tune(device, entry["was"])


def remove_loop(entry):
    """Detach the loop devices of an entry's `file`. OSError when one stays in use."""
    for device in loop_device.devices(entry["file"]):
        cgroups.unthrottle(loop_device.number(device))  # before another lab gets the device
        retry(lambda device=device: loop_device.detach(device))
    retry(lambda: _gone(entry["file"]))


def _gone(file):
    if loop_device.devices(file):
        raise OSError(f"{file} is still in use as a disk")


def _cgroup(entry):
    retry(lambda: cgroups.remove(Path(entry["folder"])))


def _folder(entry):
    shutil.rmtree(entry["path"], onerror=_unless_missing)


def _unless_missing(_, path, error):
    if not issubclass(error[0], FileNotFoundError):
        raise error[1]


def retry(action):
    """Retry on OSError: the kernel releases a killed host's resources a moment later."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return action()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)

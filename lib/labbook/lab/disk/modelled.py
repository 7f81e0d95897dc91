"""Disks whose requests take the time of a model: their daemon, which serves a file for a loop device.

The daemon is on_host/modelled_disk/*.c, compiled here. It does nothing before it is in the journal. It
serves `NAME.model/disk` from the sparse file `NAME.disk`; beside the lab's other state lie its log of
served requests, its socket for questions, and what it complains of. It ends after its loop device.

The process that asked for a request is not known to it: above a loop device each request comes from
one of the kernel's workers, whose pid (column `pid` of the log) says nothing. So it has no queue a
process, and `disk.trace()` still says who asked. The kernel's schedulers can order above it when
`tags` are few: see book/modelled_disks.md.

Runs as root, with the standard library alone.
"""

import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from labbook.lab import deadline, kernel, locks
from labbook.lab.host import fuse

KIND = "modelled disk"      # in a journal, with file, mount, pid, start and files
SOURCES = Path(__file__).with_name("on_host") / "modelled_disk"
PARTS = ("model.c", "requests.c", "file_system.c", "main.c")    # of one program, in this order
PACKAGES = ("gcc", "libc6-dev", "libfuse3-dev")
FLAGS = ("-O2", "-std=gnu11", "-D_FILE_OFFSET_BITS=64", "-I/usr/include/fuse3", "-x", "c")
LIBRARIES = ("-lfuse3", "-lpthread", "-lm")
TYPE = "fuse.labbook-disk"
COMPILE_SECONDS, READY_SECONDS, ASK_SECONDS, END_SECONDS = 60, 20, 3, 10
MB = 10**6
MS = 10**6      # ns


def source() -> str:
    """The program's text."""
    return "".join(f'#line 1 "{name}"\n{(SOURCES / name).read_text()}' for name in PARTS)


def build(folder: Path, source: str) -> Path:
    """Path of the program, compiled in `folder` unless that has it: root's own, with a digest in its name.

    `source`: see above; on a user's host it has been sent.
    OSError names the packages when it does not compile, and a folder that is not root's alone.
    """
    digest = hashlib.sha256("\0".join((source, *FLAGS, *LIBRARIES)).encode()).hexdigest()[:16]
    program = folder / f"modelled-disk-{digest}"
    locks.private(folder)   # else others could have put there what root runs
    if program.exists():
        return program
    partial = folder / f".modelled-disk-{digest}.{os.getpid()}"
    try:
        deadline.run("gcc", *FLAGS, "-o", str(partial), "-", *LIBRARIES, input=source, seconds=COMPILE_SECONDS,
                     name="gcc")
        with open(partial, "rb") as made:
            os.fsync(made.fileno())     # else a power cut may leave the name without the program
        partial.rename(program)
    except OSError as error:
        partial.unlink(missing_ok=True)
        reason = "no gcc" if isinstance(error, FileNotFoundError) else " ".join(str(error).split())[-300:]
        raise OSError(f"the daemon of modelled disks cannot be compiled ({reason}): "
                      f"apt-get install {' '.join(PACKAGES)}") from None
    return program


def settings(disk: dict, size: int) -> dict[str, int | str]:
    """The daemon's settings for `disk`: `model`, `order` and `figures` as in models.Model, size in bytes."""
    figures = disk["figures"]
    turn_ms = 60_000 / figures["rpm"] if figures.get("rpm") else 0
    return {
        "size": size, "order": disk["order"], "channels": figures.get("channels", 1),
        "bytes_per_s": round(figures["mb_per_s"] * MB), "turn_ns": round(turn_ms * MS),
        "span": round(figures.get("span_gb", 0) * 1e9),
        **{f"{key}_ns": round(figures.get(f"{figure}_ms", 0) * MS) for key, figure in
           (("overhead", "overhead"), ("after", "fixed"), ("track", "track"), ("stroke", "stroke"))},
    }


def served_file(file: Path) -> Path:
    """What a loop device takes in the place of the sparse file."""
    return file.with_suffix(".model") / "disk"


def places(name: str, beside: Path) -> dict[str, Path]:
    """The log of served requests, the socket, and the complaints of host `name`'s disk."""
    return {"log": beside / f"{name}.served", "socket": beside / f"{name}.sock",
            "complaints": beside / f"{name}.said"}


def serve(program: Path, file: Path, disk: dict, beside: Path, owner: int, journal) -> Path:
    """Start the daemon for the sparse file `file`; the file that it serves.

    It is in the journal before it does anything. User `owner` may read its log and ask it. OSError,
    with its complaint, when it does not start.
    """
    own, mount = places(file.stem, beside), served_file(file).parent
    arguments = {**settings(disk, file.stat().st_size), "file": file, "mount": mount, "log": own["log"],
                 "socket": own["socket"], "owner": owner}
    with open(own["complaints"], "wb") as stderr:
        process = subprocess.Popen([str(program), *(f"{key}={value}" for key, value in arguments.items())],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, cwd="/",
                                   env={}, start_new_session=True)
    os.chown(own["complaints"], owner, -1)
    journal.write(KIND, file=str(file), mount=str(mount), pid=process.pid,
                  start=kernel.start_time(process.pid), files=[str(path) for path in own.values()])
    mount.mkdir(mode=0o700)
    with suppress(BrokenPipeError), process.stdin as go:
        go.write(b"x")
    with process.stdout as output:
        ready = select.select([output], (), (), READY_SECONDS)[0] and output.read(1)
    if not ready:
        raise OSError(f"the modelled disk {file.stem} did not start: {complaints(own['complaints'])}")
    return served_file(file)


def complaints(file: Path) -> str:
    """The end of what the daemon complained of."""
    try:
        return file.read_text(errors="replace")[-500:].strip() or "it said nothing"
    except OSError as error:
        return str(error)


def ask(path: str, line: str) -> dict:
    """The daemon's answer to a command (`status`, `order fcfs`, `hurry on`); OSError when it does not answer.

    served, failed, late (replies more than 1 ms after the model's time) and waiting (requests), full
    (whether a write found no room in the disk below), order, modelled_ns and slept_ns (sums of what
    the requests should have taken and took), kept (entries of the log), io_flusher (whether the
    kernel agreed to spare it when memory is short), hurries, offset_s (from its clock to the epoch's).
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ASK_SECONDS)
        connection.connect(str(path))
        connection.sendall(f"{line}\n".encode())
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    try:
        return json.loads(answer)
    except ValueError:
        raise OSError(f"it answered {answer[:80]!r}") from None


def hurry(entry: dict) -> None:
    """Let the disk of an entry wait no more, since it goes away and what is still to be written is of no
    use; abort it when it does not answer."""
    if not _lives(entry):
        return
    with suppress(OSError):
        os.kill(entry["pid"], signal.SIGCONT)
        os.kill(entry["pid"], signal.SIGUSR1)
        ask(entry["files"][1], "status")
        return
    fuse.abort(_connections(entry["mount"]))


def undo(entry: dict) -> None:
    """End the daemon of an entry, whose loop device is gone, and remove what it had."""
    until = time.monotonic() + END_SECONDS
    if _lives(entry):
        os.kill(entry["pid"], signal.SIGKILL)
    while _lives(entry) and time.monotonic() < until:
        time.sleep(0.005)
    if _lives(entry):
        fuse.abort(_connections(entry["mount"]))
        raise OSError(f"process {entry['pid']} does not end")
    while _connections(entry["mount"]):
        kernel.umount(entry["mount"])
    with suppress(FileNotFoundError):
        os.rmdir(entry["mount"])
    for path in entry["files"]:
        Path(path).unlink(missing_ok=True)


def _lives(entry) -> bool:
    """Whether its process runs; its command, too, since a start time is unique within a boot only."""
    if entry["start"] is None or kernel.start_time(entry["pid"]) != entry["start"]:
        return False
    try:
        arguments = Path(f"/proc/{entry['pid']}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"mount={entry['mount']}".encode() in arguments


def _connections(mount: str) -> list[int]:
    """FUSE connections of what is mounted there."""
    return [int(device.partition(":")[2]) for device, place, kind in kernel.mounts(kernel.read_mounts())
            if place == str(mount) and kind.startswith(f"{TYPE} ")]


def unseen() -> None:
    """Unmount the files of modelled disks from this mount namespace, which is a copy that needs none."""
    for _, place, kind in kernel.mounts(kernel.read_mounts()):
        if kind.startswith(f"{TYPE} "):
            kernel.umount(place)

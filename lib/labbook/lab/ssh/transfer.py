"""Copy folders to hosts: one stream through the SSH connection, atomically."""

import gzip
import json
import os
import shlex
import shutil
import sys
import tarfile
import threading
import time
from collections import defaultdict
from pathlib import Path, PurePosixPath

from labbook.errors import LabError, Lost

STALL_SECONDS = 60    # without any progress
SLOWEST = 125_000     # bytes a second (1 Mbit/s): a slower transfer is an error
LARGE = 1 << 20       # bytes: larger copies are announced
CHUNK = 1 << 18

_locks, _locks_lock = defaultdict(threading.Lock), threading.Lock()


def alone(host, place: PurePosixPath) -> threading.Lock:
    """The lock for a folder of a machine, which may serve as several of a lab's hosts."""
    with _locks_lock:
        return _locks[host.login and (host.login.address, host.login.port), place]


def send(host, source: Path, place: PurePosixPath, what: str | None = None) -> None:
    """Replace the host's folder `place` by a copy of a folder, or of the contents of a .tar.gz.

    The folder above its parent must be there, so that a late command of a killed driver makes nothing in a lab that
    is down. LabError when the connection is lost, nothing moves for a minute, or the host fails to write; `place`
    is then unchanged.
    """
    packed, size, what = source.is_file(), _size(source), what or place.name
    draft = place.parent / f".{place.name}"
    above = draft.parents[1]
    names = {"draft": shlex.quote(str(draft)), "place": shlex.quote(str(place)), "above": shlex.quote(str(above)),
             "below": shlex.quote(str(draft.relative_to(above)))}
    host.run("cd {above} && rm -rf {below} && mkdir -p {below}".format(**names), timeout=STALL_SECONDS)
    if size > LARGE:
        say(f"{host.name}: copying {what}, {size / 1e6:.0f} MB")
    far = host.is_remote  # maybe over a slow network: compress
    pour = _pour_file if packed else _pour_compressed if far else _pour_folder
    feed(host, f"tar -x{'z' if packed or far else ''}of - -C {names['draft']}",
         lambda sink: pour(source, sink), size, f"copying {what}")
    # feed() has checked tar's exit code: a stream cut between two files would look complete.
    host.run("rm -rf {place} && mv -T {draft} {place}".format(**names), timeout=STALL_SECONDS)


def feed(host, command: str, pour, size: int, what: str) -> None:
    """Run a shell command on the host; its input is what `pour(sink)` writes, `size` bytes or so."""
    from labbook.lab.ssh import connection as ssh

    channel, until = None, time.monotonic() + STALL_SECONDS + size / SLOWEST
    try:
        channel = host.connection().transport.open_session(timeout=STALL_SECONDS)
        channel.settimeout(STALL_SECONDS)
        with ssh.answered(channel):
            channel.exec_command(host.in_root_folder(command, None))
        pour(_Sink(channel, until))
        channel.shutdown_write()
        channel.status_event.wait(max(STALL_SECONDS, until - time.monotonic()))
        if channel.exit_status != 0:
            raise OSError("it did not end")
    except ssh.LOST as error:
        _fail(host, channel, error, what)
    finally:
        if channel is not None:
            channel.close()


def _fail(host, channel, error, what):
    """Raise with the command's error output if it failed by itself, else as a lost connection."""
    if channel is not None and channel.status_event.wait(1) and channel.exit_status > 0:
        output = channel.recv_stderr(2000).decode(errors="replace").strip()
        raise LabError(f"{host.name}: {what} failed: {output or channel.exit_status}") from None
    host.disconnect()
    raise Lost(f"{host.name}: {what} broke off: {error or type(error).__name__}") from None


class _Sink:
    """A file-like object for tarfile and copyfileobj that writes to an SSH channel."""

    def __init__(self, channel, until: float):
        self._channel, self._until = channel, until

    def write(self, data: bytes) -> int:
        if time.monotonic() > self._until:
            raise OSError("the connection is too slow")
        self._channel.sendall(data)
        return len(data)


def _pour_file(source, sink):
    with source.open("rb") as file:
        shutil.copyfileobj(file, sink, CHUNK)


def _pour_compressed(source, sink):
    """Compressed: a database's files shrink to a few percent."""
    with gzip.GzipFile(fileobj=sink, mode="wb", compresslevel=1) as packed:
        _pour_folder(source, packed)


def _pour_folder(source, sink):
    with tarfile.open(fileobj=sink, mode="w|", bufsize=CHUNK) as tar:
        tar.add(source, arcname=".")


def _size(source) -> int:
    if source.is_file():
        return source.stat().st_size
    return sum(f.stat().st_size for f in source.rglob("*") if f.is_file())


def say(text: str) -> None:
    """Tell the user what is going on: through the pipeline when it runs this, else on stderr."""
    if path := os.environ.get("LABBOOK_PROGRESS"):
        with open(path, "a", encoding="utf-8") as file:  # one write, so that lines never mix
            file.write(json.dumps({"event": "note", "text": text}) + "\n")
    else:
        print(f"labbook: {text}", file=sys.stderr, flush=True)

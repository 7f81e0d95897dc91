"""Folders to hosts: one stream through the open connection, whole or not at all."""

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
SLOWEST = 125_000     # bytes a second (1 Mbit/s): what takes longer is an error
LARGE = 1 << 20       # bytes that are worth a word to whoever waits
AT_ONCE = 1 << 18

_locks, _locks_lock = defaultdict(threading.Lock), threading.Lock()


def alone(host, place: PurePosixPath) -> threading.Lock:
    """The lock on a place of a host, which may be several of a lab's hosts."""
    with _locks_lock:
        return _locks[host.login and (host.login.address, host.login.port), place]


def send(host, source: Path, place: PurePosixPath, what: str | None = None) -> None:
    """Copy a folder, or what is packed in a .tar.gz, to be the host's folder `place`.

    What was there goes. LabError when the connection is lost, nothing moves for a minute, or the
    host cannot take it; `place` is then as it was.
    """
    packed, size, what = source.is_file(), _size(source), what or place.name
    draft = place.parent / f".{place.name}"
    names = {"draft": shlex.quote(str(draft)), "place": shlex.quote(str(place))}
    host.run("rm -rf {draft} && mkdir -p {draft}".format(**names), timeout=STALL_SECONDS)
    if size > LARGE:
        say(f"{host.name}: copying {what}, {size / 1e6:.0f} MB")
    far = host.is_remote  # a user's own host, over whatever network there is
    pour = _pour_file if packed else _pour_smaller if far else _pour_folder
    feed(host, f"tar -x{'z' if packed or far else ''}of - -C {names['draft']}",
         lambda sink: pour(source, sink), size, f"copying {what}")
    # Not before tar has said that it had all: cut off between two files, it sees no fault.
    host.run("rm -rf {place} && mv -T {draft} {place}".format(**names), timeout=STALL_SECONDS)


def feed(host, command: str, pour, size: int, what: str) -> None:
    """Run a shell command on the host with all that `pour(sink)` writes as its input."""
    from labbook.lab.ssh import connection as ssh

    channel, until = None, time.monotonic() + STALL_SECONDS + size / SLOWEST
    try:
        channel = host.connection().transport.open_session(timeout=STALL_SECONDS)
        channel.settimeout(STALL_SECONDS)
        channel.exec_command(host._in_place(command, None))
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
    """The command's own complaint where it has one."""
    if channel is not None and channel.status_event.wait(1) and channel.exit_status > 0:
        said = channel.recv_stderr(2000).decode(errors="replace").strip()
        raise LabError(f"{host.name}: {what} failed: {said or channel.exit_status}") from None
    host.disconnect()
    raise Lost(f"{host.name}: {what} broke off: {error or type(error).__name__}") from None


class _Sink:
    """What tarfile and copyfileobj write to."""

    def __init__(self, channel, until: float):
        self._channel, self._until = channel, until

    def write(self, data: bytes) -> int:
        if time.monotonic() > self._until:
            raise OSError("the connection is too slow")
        self._channel.sendall(data)
        return len(data)


def _pour_file(source, sink):
    with source.open("rb") as file:
        shutil.copyfileobj(file, sink, AT_ONCE)


def _pour_smaller(source, sink):
    """Of a database's files hardly anything is left."""
    with gzip.GzipFile(fileobj=sink, mode="wb", compresslevel=1) as packed:
        _pour_folder(source, packed)


def _pour_folder(source, sink):
    with tarfile.open(fileobj=sink, mode="w|", bufsize=AT_ONCE) as tar:
        tar.add(source, arcname=".")


def _size(source) -> int:
    if source.is_file():
        return source.stat().st_size
    return sum(f.stat().st_size for f in source.rglob("*") if f.is_file())


def say(text: str) -> None:
    """To whoever waits: the press, where it runs this, else the terminal or the notebook."""
    if path := os.environ.get("LABBOOK_PROGRESS"):
        with open(path, "a", encoding="utf-8") as file:  # one write, so that lines never mix
            file.write(json.dumps({"event": "note", "text": text}) + "\n")
    else:
        print(f"labbook: {text}", file=sys.stderr, flush=True)

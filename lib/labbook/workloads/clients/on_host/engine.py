"""The engine of a client host: starts the program that runs the host's clients, one at a time.

The program (see runner) runs as `python -m RUNNER OUT` would; it is forked from a process that has its
modules (see fork_server). It reads its spec as a line of JSON, prints "ready" when all of its clients
are, starts them at the time it reads next, and stops when its input is closed. OUT is the file of its
results. These functions are called from the driver (see clients.driver.Clients) through the crew.
"""

import json
import os
import select
import tempfile
from contextlib import suppress
from pathlib import Path

from labbook.workloads.clients.on_host import program

_running = None  # (program, folder) from `prepare` to `clear`


def prepare(runner: str, spec: dict, seconds: float) -> None:
    """Start the module `runner` with the spec; return when all of its clients are ready.

    RuntimeError, with the end of the program's log, when they are not within `seconds`. The spec
    goes to standard input: it may hold a password, which a command line would show.
    """
    global _running
    clear()
    folder = Path(tempfile.mkdtemp(prefix="labbook-clients-", dir=os.environ.get("HOME")))
    with (folder / "log").open("wb") as log:
        _running = program.start(runner, folder / "out", log), folder
    _write_line(json.dumps(spec))
    output = _running[0].output
    if not select.select([output], [], [], seconds)[0]:
        _fail(f"clients were not ready within {seconds:g} s")
    if output.readline() != b"ready\n":
        _fail("clients ended before they were ready")


def start(at: float) -> None:
    """Let the clients start at `at`, seconds since the epoch by this host's clock."""
    _write_line(repr(at))


def progress(seconds: float) -> tuple[int | None, bool]:
    """Wait up to `seconds` for the program to print: (last number printed, whether it runs still).

    The number is None when nothing was printed.
    """
    output = _running[0].output
    if not select.select([output], [], [], seconds)[0]:
        return None, True
    lines = output.read(65536).splitlines()
    return (int(lines[-1]), True) if lines else (None, False)


def finish(seconds: float) -> int:
    """Close the program's input and wait up to `seconds` for its end: the size of its results.

    RuntimeError when it does not end in time, or fails.
    """
    clients, folder = _running
    if not clients.ended(seconds):
        _fail(f"clients did not end within {seconds:g} s")
    if clients.code != 0:
        _fail(f"clients ended with exit code {clients.code}")
    return (folder / "out").stat().st_size


def run(at: float, seconds: float) -> int:
    """`start` and `finish` in one call."""
    start(at)
    return finish(seconds)


def chunk(offset: int, size: int, last: bool) -> bytes:
    """A part of the results, which bounds the size of messages; with the last one, `clear`."""
    with (_running[1] / "out").open("rb") as file:
        file.seek(offset)
        found = file.read(size)
    if last:
        clear()
    return found


def clear() -> None:
    """Kill what still runs of the program and its clients, and remove its files."""
    global _running
    if _running is None:
        return
    clients, folder = _running
    _running = None
    clients.kill()
    clients.close()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def _write_line(line: str) -> None:
    with suppress(BrokenPipeError):  # it has ended: the next call finds out why
        _running[0].input.write(line.encode() + b"\n")


def _fail(why: str):
    clients, folder = _running
    clients.kill()
    log = (folder / "log").read_text()[-2000:]
    clear()
    raise RuntimeError(f"{why}{': ' if log else ''}{log.strip()}")

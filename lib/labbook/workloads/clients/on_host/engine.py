"""The engine of a client host: starts the program that runs the host's clients, one at a time.

The program (see runner) is `python -m RUNNER OUT`. It reads its spec as a line of JSON, prints
"ready" when all of its clients are, starts them at the time it reads next, and stops when its input
is closed. OUT is the file of its results. These functions are called from the driver (see
clients.driver.Clients) through the crew.
"""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_running = None  # (process, folder) from `prepare` to `clear`


def prepare(runner: str, spec: dict, seconds: float) -> None:
    """Start the module `runner` with the spec; return when all of its clients are ready.

    RuntimeError, with the end of the program's log, when they are not within `seconds`. The spec
    goes to standard input: it may hold a password, which a command line would show.
    """
    global _running
    clear()
    folder = Path(tempfile.mkdtemp(prefix="labbook-clients-", dir=os.environ.get("HOME")))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", runner, str(folder / "out")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=log, start_new_session=True, bufsize=0)
    _running = process, folder
    _write_line(json.dumps(spec))
    if not select.select([process.stdout], [], [], seconds)[0]:
        _fail(f"clients were not ready within {seconds:g} s")
    if process.stdout.readline() != b"ready\n":
        _fail("clients ended before they were ready")


def start(at: float) -> None:
    """Let the clients start at `at`, seconds since the epoch by this host's clock."""
    _write_line(repr(at))


def progress(seconds: float) -> tuple[int | None, bool]:
    """Wait up to `seconds` for the program to print: (last number printed, whether it runs still).

    The number is None when nothing was printed.
    """
    output = _running[0].stdout
    if not select.select([output], [], [], seconds)[0]:
        return None, True
    lines = output.read(65536).splitlines()
    return (int(lines[-1]), True) if lines else (None, False)


def finish(seconds: float) -> int:
    """Close the program's input and wait up to `seconds` for its end: the size of its results.

    RuntimeError when it does not end in time, or fails.
    """
    process, folder = _running
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _fail(f"clients did not end within {seconds:g} s")
    if process.returncode != 0:
        _kill_group(process)
        _fail(f"clients ended with exit code {process.returncode}")
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
    process, folder = _running
    _running = None
    if process.returncode is None:  # not waited for, so its number is no other's
        _kill_group(process)
        process.wait()
    for pipe in (process.stdin, process.stdout):
        pipe.close()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def _kill_group(process) -> None:
    """The program and its clients, which may live though the program does not."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _write_line(line: str) -> None:
    with suppress(BrokenPipeError):  # it has ended: the next call finds out why
        _running[0].stdin.write(line.encode() + b"\n")


def _fail(why: str):
    log = (_running[1] / "log").read_text()[-2000:]
    clear()
    raise RuntimeError(f"{why}{': ' if log else ''}{log.strip()}")

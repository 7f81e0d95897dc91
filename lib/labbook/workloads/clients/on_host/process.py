"""The process of a client host's clients, as the host's engine sees it: one at a time.

It is started, tells "ready" when its clients are, is told when to start, and leaves what they
found in a file.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_running = None  # (process, folder) from `begin` to `rows` or `clear`


def begin(module: str, *arguments: str, seconds: float, first: bytes = b"") -> None:
    """Start `python -m MODULE ARGUMENTS... OUT`, give it `first` to read, return when it is ready."""
    global _running
    clear()
    folder = Path(tempfile.mkdtemp(prefix="labbook-clients-", dir=os.environ.get("HOME")))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments, str(folder / "out")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
            bufsize=0)
    _running = process, folder
    _tell(first)
    if not select.select([process.stdout], [], [], seconds)[0]:
        _fail(f"clients were not ready within {seconds:g} s")
    if process.stdout.readline() != b"ready\n":
        _fail("clients ended before they were ready")


def start(at: float) -> None:
    """Tell them to start at `at` (seconds since the epoch)."""
    _tell(f"{at!r}\n".encode())


def heard(seconds: float) -> list[bytes] | None:
    """Lines that it has printed since, waiting for them so long at most; None once it has ended."""
    output = _running[0].stdout
    if not select.select([output], [], [], seconds)[0]:
        return []
    return output.read(65536).splitlines() or None


def rows(seconds: float) -> bytes:
    """`end`, and the whole file."""
    found = piece(0, end(seconds))
    clear()
    return found


def end(seconds: float) -> int:
    """Close the process's input, wait until it ends: how long the file is that it made, of which
    `piece` gives what is asked for until `clear`."""
    process, folder = _running
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _fail(f"clients did not end within {seconds:g} s")
    if process.returncode != 0:
        _fail(f"clients ended with exit code {process.returncode}")
    return (folder / "out").stat().st_size


def piece(offset: int, size: int) -> bytes:
    with (_running[1] / "out").open("rb") as file:
        file.seek(offset)
        return file.read(size)


def clear() -> None:
    """End clients that an earlier point left, and take their files away."""
    global _running
    if _running is None:
        return
    process, folder = _running
    _running = None
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout):
        pipe.close()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def _tell(line: bytes) -> None:
    with suppress(BrokenPipeError):  # it has ended; what comes next finds out why
        _running[0].stdin.write(line)


def _fail(why: str):
    log = (_running[1] / "log").read_text()[-2000:]
    clear()
    raise RuntimeError(f"{why}{': ' if log else ''}{log.strip()}")

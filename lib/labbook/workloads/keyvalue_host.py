"""What the engine on a client host does: starts the clients' process, says go, gives their rows."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from labbook.workloads import stores
from labbook.workloads.pairs import WrongValue

FILLERS = 8  # connections that fill a table
FILL_TRIES = 3

_running = None  # (process, folder) between `prepare` and `go`


def prepare(spec: dict, seconds: float) -> None:
    """Start the clients and return when all have connected and warmed up."""
    global _running
    clear()
    folder = Path(tempfile.mkdtemp(prefix="labbook-clients-", dir=os.environ.get("HOME")))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "labbook.workloads.keyvalue_runner", json.dumps(spec),
             str(folder / "out")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
    _running = process, folder
    if not select.select([process.stdout], [], [], seconds)[0]:
        _fail(f"clients were not ready within {seconds:g} s")
    if process.stdout.readline() != b"ready\n":
        _fail("clients ended before they were ready")


def go(start: float, seconds: float) -> bytes:
    """Start at `start` (seconds since the epoch), wait for the end: the runner's sheet."""
    process, folder = _running
    try:
        process.communicate(f"{start!r}\n".encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        _fail(f"clients did not end within {seconds:g} s")
    if process.returncode != 0:
        _fail(f"clients ended with exit code {process.returncode}")
    rows = (folder / "out").read_bytes()
    clear()
    return rows


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


def fill(spec: dict, checked_at: str) -> float:
    """Write every row once, then read it back at the level `checked_at`: seconds that took."""
    begin = time.monotonic()
    stores.calls(stores.of_client(spec, 0))  # loads what the threads need
    for op, level in (("write", spec["consistency"]), ("read", checked_at)):
        with ThreadPoolExecutor(FILLERS) as pool:
            list(pool.map(partial(_fill_part, dict(spec, consistency=level), op), range(FILLERS)))
    return time.monotonic() - begin


def _fill_part(spec, op, number) -> None:
    """One connection's rows: neighbours, since locks of stores reach from a row to the next."""
    rows = range(spec["rows"] * number // FILLERS, spec["rows"] * (number + 1) // FILLERS)
    if not rows:
        return
    calls = stores.calls(stores.of_client(spec, number))
    try:
        calls.connect()
        for row in rows:
            _insist(calls, op, row)
    finally:
        calls.close()


def _insist(calls, op, row) -> None:
    """A store that has just come up may answer a first call that it was too slow for it."""
    for left in reversed(range(FILL_TRIES)):
        try:
            return getattr(calls, op)(row)
        except WrongValue:
            raise
        except Exception as error:
            if not (left and calls.keeps_connection(error)):
                raise


def _fail(why: str):
    log = (_running[1] / "log").read_text()[-2000:]
    clear()
    raise RuntimeError(f"{why}{': ' if log else ''}{log.strip()}")

"""What the engine on a client host does to load rows: starts loaders, tells how far they are."""

import json
import random

from labbook.workloads.clients.on_host import process as clients_process
from labbook.workloads.keyvalue.on_host import engine as keyvalue_host
from labbook.workloads.keyvalue.on_host import loader as loading_runner

SAMPLE = 200  # rows that are read back, beside the first and the last


def prepare(spec: dict, seconds: float) -> None:
    """Start the loaders and return when all have connected."""
    clients_process.begin(loading_runner.__name__, json.dumps(spec), seconds=seconds)


def begin(start: float) -> None:
    """Let them start at `start` (seconds since the epoch)."""
    clients_process.start(start)


def progress(seconds: float) -> tuple[int | None, bool]:
    """How many rows are written, if they told so within `seconds`; whether they are at it still."""
    lines = clients_process.heard(seconds)
    if lines is None:
        return None, False
    return (int(lines[-1]) if lines else None), True


def end(seconds: float) -> list:
    """What the runner found, once it has ended."""
    return json.loads(clients_process.rows(seconds))


def stop() -> None:
    clients_process.clear()


def read_back(spec: dict) -> int:
    """Read some rows, chosen by the spec's seed, and check their values: how many."""
    rows = range(spec["rows"])
    chosen = random.Random(spec["seed"]).sample(rows, min(SAMPLE, len(rows)))
    chosen = sorted({*chosen, rows[0], rows[-1]})
    keyvalue_host.visit(spec, "read", chosen)
    return len(chosen)

"""What the engine on a client host does: starts the clients' process, says go, gives their rows."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from labbook.workloads.clients.on_host import process as clients_process
from labbook.workloads.keyvalue.on_host.pairs import WrongValue
from labbook.workloads.keyvalue.protocols import registry as stores

FILLERS = 8  # connections that fill a table
FILL_TRIES = 3
RUNNER = "labbook.workloads.keyvalue.on_host.closed_loop"


def prepare(spec: dict, seconds: float) -> None:
    """Start the clients and return when all have connected and warmed up."""
    clients_process.begin(RUNNER, json.dumps(spec), seconds=seconds)


def go(start: float, seconds: float) -> bytes:
    """Start at `start` (seconds since the epoch), wait for the end: the runner's sheet."""
    clients_process.start(start)
    return clients_process.rows(seconds)


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
    visit(spec, op, range(spec["rows"] * number // FILLERS, spec["rows"] * (number + 1) // FILLERS),
          number)


def visit(spec: dict, op: str, rows, number: int = 0) -> None:
    """Read or write these rows, one after the other, as client `number`."""
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

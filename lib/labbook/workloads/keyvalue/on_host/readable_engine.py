"""What the engine on a client host does to look at every row of a table."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from labbook.workloads.keyvalue.on_host.pairs import WrongValue
from labbook.workloads.keyvalue.protocols import registry as stores

READERS = 8
TRIES = 3       # of a row that the server did not answer for


def look(spec: dict) -> tuple[int, str]:
    """How many rows are missing or wrong, and of the first of them why."""
    stores.calls(stores.of_client(spec, 0))  # loads what the threads need
    with ThreadPoolExecutor(READERS) as pool:
        found = list(pool.map(partial(_part, spec), range(READERS)))
    return sum(wrong for wrong, _ in found), next((first for _, first in found if first), "")


def _part(spec, number) -> tuple[int, str]:
    """One connection's part of the rows."""
    wrong, first = 0, ""
    calls = stores.calls(stores.of_client(spec, number))
    try:
        calls.connect()
        for row in range(spec["rows"] * number // READERS, spec["rows"] * (number + 1) // READERS):
            error = _error(calls, row)
            if error is not None:
                wrong, first = wrong + 1, first or f"row {row}: {type(error).__name__}: {error}"
    finally:
        calls.close()
    return wrong, first


def _error(calls, row) -> Exception | None:
    """Why a row cannot be had; a server that is late, or has hung up, is asked again."""
    for left in reversed(range(TRIES)):
        try:
            calls.read(row)
            return None
        except WrongValue as error:
            return error
        except Exception as error:
            if not left:
                return error
            if not calls.keeps_connection(error):
                calls.close()
                calls.connect()

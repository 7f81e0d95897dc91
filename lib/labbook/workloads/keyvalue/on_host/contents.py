"""Fill a store and check what it holds: called in the engine of a client host, by a few threads."""

import http.client
import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlencode

from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.wire.pairs import WrongValue

CONNECTIONS = 8     # that fill or read a table
TRIES = 3           # of a call that a store is too slow for
SAMPLE = 200        # rows that are read back after loading, beside the first and the last
REMOVE_SECONDS = 120    # for a statement that takes out what was added
PAGE_SECONDS = 10   # for one call to a web server


def fill(spec: dict, checked_at: str | None) -> float:
    """Write every row once, then read it back at the level `checked_at`: seconds that took."""
    begin = time.monotonic()
    protocols.calls(protocols.of_client(spec, 0))  # loads what the threads need
    for op, level in (("write", spec["consistency"]), ("read", checked_at)):
        of_level = dict(spec, consistency=level)
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda number: visit(of_level, op, _part(spec, number), number),
                          range(CONNECTIONS)))
    return time.monotonic() - begin


def visit(spec: dict, op: str, rows, number: int = 0) -> None:
    """Read or write these rows, one after the other, as client `number`; raises what fails."""
    if not rows:
        return
    calls = protocols.calls(protocols.of_client(spec, number))
    try:
        calls.connect()
        for row in rows:
            _insist(calls, op, row)
    finally:
        calls.close()


def remove_added(spec: dict) -> None:
    """Take out the rows that clients of this spec's operation added."""
    calls = protocols.calls(protocols.of_client(dict(spec, call_seconds=REMOVE_SECONDS), 0))
    try:
        calls.connect()
        calls.remove_added()
    finally:
        calls.close()


def read_sample(spec: dict) -> int:
    """Read some rows, drawn by the spec's seed, and check their values: how many."""
    rows = range(spec["rows"])
    drawn = random.Random(spec["seed"]).sample(rows, min(SAMPLE, len(rows)))
    drawn = sorted({*drawn, rows[0], rows[-1]})
    visit(spec, "read", drawn)
    return len(drawn)


def count_wrong(spec: dict) -> tuple[int, str]:
    """Read all rows: (how many are missing or wrong, why the first of them is; "" without one)."""
    protocols.calls(protocols.of_client(spec, 0))
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        found = list(pool.map(partial(_wrong_in_part, spec), range(CONNECTIONS)))
    return sum(wrong for wrong, _ in found), next((first for _, first in found if first), "")


def _part(spec, number) -> range:
    """One connection's rows: neighbours, since locks of stores reach from a row to the next."""
    return range(spec["rows"] * number // CONNECTIONS, spec["rows"] * (number + 1) // CONNECTIONS)


def _insist(calls, op, row) -> None:
    """A store that has just started may be too slow for a first call, and answer that it was."""
    for left in reversed(range(TRIES)):
        try:
            return getattr(calls, op)(row)
        except WrongValue:
            raise
        except Exception as error:
            if not (left and calls.keeps_connection(error)):
                raise


def _wrong_in_part(spec, number) -> tuple[int, str]:
    wrong, first = 0, ""
    calls = protocols.calls(protocols.of_client(spec, number))
    try:
        calls.connect()
        for row in _part(spec, number):
            error = _error(calls, row)
            if error is not None:
                wrong, first = wrong + 1, first or f"row {row}: {type(error).__name__}: {error}"
    finally:
        calls.close()
    return wrong, first


def _error(calls, row) -> Exception | None:
    """Why a row cannot be read; a server that is late, or has closed the connection, is asked
    again."""
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


def count_shared(addresses, port, pages) -> int:
    """Save pages of a wiki through one address after the other: how many every other address
    returns at once and unaltered."""
    connections = {address: http.client.HTTPConnection(address, port, timeout=PAGE_SECONDS)
                   for address in addresses}
    try:
        return sum(_is_shared(connections, addresses[i % len(addresses)], f"/Shared{i:04d}")
                   for i in range(pages))
    finally:
        for connection in connections.values():
            connection.close()


def _is_shared(connections, saver, page) -> bool:
    text = uuid.uuid4().hex
    _save(connections[saver], page, text)
    right = all(_text(connections[other], page) == text
                for other in connections if other != saver)
    _save(connections[saver], page, "")
    return right


def _save(connection, page, text) -> None:
    connection.request("POST", page, urlencode({"text": text}),
                       {"Content-Type": "application/x-www-form-urlencoded"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != 303:
        raise RuntimeError(f"{page} was not saved: {answer.status} {answer.reason}")


def _text(connection, page) -> str:
    connection.request("GET", f"{page}?raw")
    return connection.getresponse().read().decode()

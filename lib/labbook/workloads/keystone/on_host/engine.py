"""What the engine on a client host does for Keystone's clients: starts, begins, ends them."""

import json

from labbook.workloads.clients.on_host import process as clients_process
from labbook.workloads.keystone.on_host import runner as keystone_runner


def prepare(spec: dict, seconds: float) -> None:
    """Start the clients and return when all are ready."""
    clients_process.begin(keystone_runner.__name__, seconds=seconds,
                          first=json.dumps(spec).encode() + b"\n")


def begin(start: float) -> None:
    """Let them start at `start` (seconds since the epoch) and leave them at it."""
    clients_process.start(start)


def end(seconds: float) -> list:
    """Stop clients that know no end of their own, wait for the others': what the runner found."""
    return json.loads(clients_process.rows(seconds))


def go(start: float, seconds: float) -> list:
    """Start at `start` (seconds since the epoch), wait for the end: what the runner found."""
    begin(start)
    return end(seconds)

"""What the engine on a client host does for a stream: starts its clients, and hands over their rows
in pieces, so that no answer has all of them."""

import json

from labbook.workloads.clients.on_host import process as clients_process
from labbook.workloads.keyvalue.on_host import stream as keyvalue_stream_runner


def prepare(spec: dict, seconds: float) -> None:
    """Start the clients and return when all have connected and warmed up."""
    clients_process.begin(keyvalue_stream_runner.__name__, json.dumps(spec), seconds=seconds)


def begin(start: float) -> None:
    """Let them start at `start` (seconds since the epoch) and leave them at it."""
    clients_process.start(start)


def end(seconds: float) -> int:
    """Stop the clients after the calls under way: how many bytes the runner wrote."""
    return clients_process.end(seconds)


def piece(offset: int, size: int, last: bool) -> bytes:
    """What it wrote, in part; with the last one it is taken away."""
    found = clients_process.piece(offset, size)
    if last:
        clients_process.clear()
    return found

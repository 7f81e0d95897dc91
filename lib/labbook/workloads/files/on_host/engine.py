"""What the engine on a client host does for metadata clients: starts, leads and ends them."""

import json
import time

from labbook.workloads.clients.on_host import process as clients_process
from labbook.workloads.files.on_host import runner as metadata_runner
from labbook.workloads.keyvalue.on_host.stream_engine import piece

__all__ = ["await_phase", "begin", "end", "piece", "prepare"]


def prepare(spec: dict, seconds: float) -> None:
    """Start the clients and return when all are ready for the first phase."""
    clients_process.begin(metadata_runner.__name__, json.dumps(spec), seconds=seconds)


def begin(start: float) -> None:
    """Let them begin the next phase at `start` (seconds since the epoch)."""
    clients_process.start(start)


def await_phase(seconds: float) -> int | None:
    """The phase for which all are ready; AT_END when there is none to wait for, None when nothing
    was heard within `seconds`."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        lines = clients_process.heard(left)
        if lines is None:
            return metadata_runner.AT_END
        if lines:
            return int(lines[-1])
    return None


def end(seconds: float) -> int:
    """Stop the clients, and leave those that are blocked: how many bytes the runner wrote."""
    return clients_process.end(seconds)

"""The clients of one host: `python -m labbook.workloads.keyvalue.on_host.closed_loop SPEC OUT`.

Forks `clients` processes, one connection each. All connect and warm up, and start together (see
forks). OUT holds the sheet's fields without more (no NumPy here: its import costs a small point a
third of a second). A call that fails is a row with its error; so is each call of a client that
cannot connect.
"""

import gc
import json
import mmap
import struct
import sys
import time
from array import array
from bisect import bisect_left

from labbook.workloads.clients.on_host.forks import Forks, cpu_seconds
from labbook.workloads.keyvalue.on_host.client import (
    ERROR_BYTES,
    KINDS_OF_ERRORS,
    Client,
    load_code,
)

OF_CALLS = ("started", "seconds", "error")
NOT_MADE = -1  # seconds of a call that was not made, because the time was up


class Sheet:
    """Results that all processes of the host share: fields over (client, request), flat."""

    def __init__(self, clients: int, requests: int):
        self.clients, self.requests = clients, requests
        self.started, self.seconds, self.error, self.texts, self.cpu_seconds = (
            _shared(clients * columns, code) for _, code, columns in sheet_fields(requests))
        self.seconds[:] = array("d", [NOT_MADE]) * len(self.seconds)

    def save(self, path) -> None:
        """As many columns as the fastest client made calls, and before all their number."""
        made = max(self._calls(client) for client in range(self.clients))
        with open(path, "wb") as file:
            file.write(struct.pack("q", made))
            for name, _, columns in sheet_fields(self.requests):
                width = made if name in OF_CALLS else columns
                for first in range(0, self.clients * columns, columns):
                    file.write(getattr(self, name)[first:first + width])

    def _calls(self, client) -> int:
        first = client * self.requests
        return bisect_left(range(self.requests), True,
                           key=lambda i: self.seconds[first + i] == NOT_MADE)


def sheet_fields(calls: int):
    """Name, type code and columns (a row is a client) of each field, in the file's order."""
    return [("started", "d", calls), ("seconds", "d", calls), ("error", "B", calls),
            ("texts", "B", KINDS_OF_ERRORS * ERROR_BYTES), ("cpu_seconds", "d", 1)]


def _shared(count: int, code: str):
    size = count * struct.calcsize(code)
    return memoryview(mmap.mmap(-1, size))[:size].cast(code)


class SheetClient(Client):
    """Makes `requests` calls, into its line of the sheet."""

    def __init__(self, spec: dict, number: int, sheet: Sheet):
        """The sheet's lines count from this host's first client."""
        super().__init__(spec, number)
        self.sheet, self.at = sheet, number - spec["first_client"]
        self.rows = self.chosen.choices(range(spec["rows"]), k=spec["requests"])
        self.warm_up()

    def measure(self, start: float) -> None:
        """`start`: when the clients of all hosts start, seconds since the epoch."""
        first, clock = self.at * len(self.rows), time.perf_counter_ns
        time.sleep(max(0, start - time.time()))
        zero = clock() + int((start - time.time()) * 1e9)
        deadline = zero + int(self.spec["seconds_at_most"] * 1e9)
        started, took = array("d"), array("d")
        cpu, once, call = cpu_seconds(), self.once, self.call
        for i, row in enumerate(self.rows):
            begin = clock()
            if begin > deadline:
                break
            try:
                call(row) if self.connected else once(row)
            except Exception as error:
                self.sheet.error[first + i] = self.note(error)
                self.recover(error)
            took.append((clock() - begin) / 1e9)
            started.append((begin - zero) / 1e9)
        self.sheet.cpu_seconds[self.at] = cpu_seconds() - cpu
        self.sheet.started[first:first + len(started)] = started
        self.sheet.seconds[first:first + len(took)] = took
        self._tell_errors()

    def _tell_errors(self):
        for i, text in enumerate(self.texts):
            place = (self.at * KINDS_OF_ERRORS + i) * ERROR_BYTES
            self.sheet.texts[place:place + len(text)] = text


def main(spec_json: str, out: str) -> int:
    spec = json.loads(spec_json)
    sheet = Sheet(spec["clients"], spec["requests"])
    load_code(spec)
    gc.disable()  # no pauses of our own making, and no pages copied for its marks
    numbers = range(spec["first_client"], spec["first_client"] + spec["clients"])
    clients = Forks(numbers, lambda number: SheetClient(spec, number, sheet))
    if not clients.start():
        return 1
    well = clients.wait()
    sheet.save(out)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""One client of a store: its connection, what it does before it is measured, and its errors."""

import random
import sys
import time

from labbook.workloads.keyvalue.on_host.pairs import DOTS, key_of, value_of
from labbook.workloads.keyvalue.protocols import registry as stores

KINDS_OF_ERRORS, ERROR_BYTES = 8, 160  # distinct texts kept a client, the last one for the rest


class Client:
    """`number` counts over all hosts; what it draws follows from the spec's seed and from that."""

    def __init__(self, spec: dict, number: int):
        self.spec, self.number, self.texts = spec, number, []
        self.calls, self.connected = stores.calls(stores.of_client(spec, number)), False
        self.call = getattr(self.calls, spec["op"])
        self.chosen = random.Random(f"{spec['seed']} {number}")
        self.warmup = self.chosen.choices(range(spec["rows"]), k=spec["warmup_requests"])

    def warm_up(self) -> None:
        until = time.monotonic() + self.spec["seconds_at_most"]
        for row in self.warmup or [None]:
            try:
                self._reconnect() if row is None else self.once(row)
            except Exception as error:
                self.recover(error)
            if time.monotonic() > until:
                return

    def once(self, row) -> None:
        if not self.connected:
            self._reconnect()
        self.call(row)

    def recover(self, error) -> None:
        if not (self.connected and self.calls.keeps_connection(error)):
            self.connected = False

    def note(self, error) -> int:
        """The number, from 1, under which this error's text is kept."""
        text = f"{type(error).__name__}: {error}".encode()[:ERROR_BYTES]
        if text not in self.texts:
            if len(self.texts) == KINDS_OF_ERRORS:
                text = self.texts[-1]
            else:
                text = text if len(self.texts) < KINDS_OF_ERRORS - 1 else b"other errors"
                self.texts.append(text)
        return self.texts.index(text) + 1

    def _reconnect(self):
        self.calls.close()
        self.calls.connect()
        self.connected = True


def load_code(spec: dict) -> None:
    """What all clients need is loaded and made once, before they are forked."""
    sys.modules.setdefault("numpy", None)  # cassandra-driver would load it, and nobody use it
    stores.calls(stores.of_client(spec, 0))
    value_of(key_of(0), spec["value_bytes"], spec.get("values", DOTS))

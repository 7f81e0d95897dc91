"""Prepared calls: a driver encodes a call once, which makes further calls cheap for the client.

A driver encodes a call for one row and decodes its answer. A call for another row differs only in
the key, and a later write in the time: these are replaced in the same bytes. An answer that equals
a decoded one, except for the key that was asked for and the time its value was written, needs no
decoding. So every value is checked at a fraction of the CPU that the driver's own calls take, and a
client's memory does not grow with the number of rows.
"""

import re
import socket
import struct

from labbook.targets import DOTS, key_of
from labbook.workloads.keyvalue.wire.pairs import WrongValue, noise_bytes, noise_of, value_of

MOST_BYTES = 65536  # received at once; an answer that comes in parts is put together


class PreparedCalls:
    """One client's connection: `read(row)`, `write(row)` and what else is in OPS; errors are raised.

    A subclass sets `_requests` (a Template by operation) and the socket in `connect`, and defines
    `_checked` (the template of a read's answer), `_done` (a write's answer) and `_now`;
    `_completed` where an answer says how long it is. Its drivers are imported in the constructor:
    the driver's side reads the attributes below without them.
    """

    OPS = ("read", "write", "both")     # what a client can do
    ADDS = ()                   # those of OPS that add rows, which `remove_added` takes out again
    LEVELS = {}                 # {op: consistency levels}; {}: there are none
    LEVEL = STRONGEST = None    # the level where none is asked for; that of all copies
    ANY_BYTES = False           # whether values may be any bytes, not text alone
    BATCHES = False             # whether there is `write_many`
    REGISTERS = False           # whether there are `put` and `get`
    NULL_SERVER = None          # the NullServer's protocol that answers these calls, if one does

    def __init__(self, spec: dict):
        self.spec, self._socket = spec, None
        self._requests, self._known, self._acknowledged = {}, None, set()
        self._reads_next = False
        self._values = spec.get("values", DOTS)
        self._noise_bytes = noise_bytes(spec["value_bytes"], self._values)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def read(self, row: int) -> None:
        self._send(self._requests["read"].of(row))
        answer = self._receive(MOST_BYTES)
        if self._known is None or not self._known.fits(answer, row):
            whole = self._completed(answer)
            if whole is answer or self._known is None or not self._known.fits(whole, row):
                self._known = self._checked(whole, row)

    def write(self, row: int) -> None:
        self._store("write", row)

    def both(self, row: int) -> None:
        """A read or a write, in turn."""
        self._reads_next = not self._reads_next
        (self.read if self._reads_next else self.write)(row)

    def write_many(self, rows: list[int], microseconds: int) -> None:
        """Write rows, each once, all with that time, and wait once for all of them; of protocols
        with BATCHES."""
        raise NotImplementedError

    def put(self, row: int, value: bytes, microseconds: int) -> None:
        """Write any value to a row, with that time; of protocols with REGISTERS."""
        raise NotImplementedError

    def get(self, row: int) -> bytes | None:
        """The value of a row, None without one; of protocols with REGISTERS."""
        raise NotImplementedError

    def remove_added(self) -> None:
        """Take out all rows that the operations of ADDS added."""
        raise NotImplementedError

    @staticmethod
    def keeps_connection(error: Exception) -> bool:
        """Whether the error is an answer, after which the connection can be used again."""
        return isinstance(error, WrongValue)

    def _store(self, op, row) -> None:
        request = self._requests[op]
        request.of(row)
        self._send(request.at_time(self._now()))
        self._acknowledge(op, self._receive(MOST_BYTES))

    def _acknowledge(self, op, answer) -> None:
        if answer not in self._acknowledged:
            self._acknowledged.add(self._done(op, answer))

    def _talk_through(self, connection) -> None:
        self._socket = connection
        self._send, self._receive = connection.sendall, connection.recv

    def _value(self, row) -> bytes:
        return value_of(key_of(row), self.spec["value_bytes"], self._values)

    def _completed(self, answer: bytes) -> bytes:
        """The answer with the part of it that has not come yet; itself when it is complete, or does
        not say how long it is."""
        return answer

    def _now(self) -> bytes:
        """The time in the format of this protocol's writes."""
        raise NotImplementedError

    def _checked(self, answer: bytes, row: int) -> "Template":
        """Decode a read's answer, raise what is wrong with it, and return its template."""
        raise NotImplementedError

    def _done(self, op: str, answer: bytes) -> bytes:
        """Decode a write's answer, raise what is wrong with it, and return all its bytes."""
        raise NotImplementedError


class Template:
    """Bytes encoded for one row, from which those of every other row are made.

    `time`: the time in them, as bytes, of which `at_time` replaces the last one; `first_time`: the place of the
    first one. `noise`: how many bytes of noise follow the last key.
    """

    def __init__(self, made: bytes, row: int, time: bytes = b"", noise: int = 0):
        self._bytes, self._row = bytearray(made), row
        self._keys = _positions(made, key_of(row))
        times = _positions(made, time) if time else [None]
        self.first_time, self._time = times[0], times[-1]
        self._noise = slice(self._keys[-1].stop, self._keys[-1].stop + noise) if noise else None

    def of(self, row: int) -> bytearray:
        if row != self._row:
            key = key_of(row)
            for part in self._keys:
                self._bytes[part] = key
            if place := self._noise:
                self._bytes[place] = noise_of(row, place.stop - place.start)
            self._row = row
        return self._bytes

    def at_time(self, time: bytes) -> bytearray:
        """`time` is as long as the one it replaces."""
        self._bytes[self._time] = time
        return self._bytes

    def fits(self, answer: bytes, row: int) -> bool:
        """Whether the answer is that of this row, except for the time."""
        if answer == self.of(row):
            return True
        if self._time is None or len(answer) != len(self._bytes):
            return False
        return answer == self.at_time(answer[self._time])


def connected(address, call_seconds: float) -> socket.socket:
    """A blocking socket whose waits the kernel limits: Python's own limit costs a `poll` a call."""
    connection = socket.create_connection(address, timeout=call_seconds)
    connection.settimeout(None)
    limit_waits(connection, call_seconds)
    return connection


def limit_waits(connection: socket.socket, call_seconds: float) -> None:
    limit = struct.pack("@ll", int(call_seconds), int(call_seconds % 1 * 1e6))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def _positions(made: bytes, part: bytes) -> list[slice]:
    return [slice(*found.span()) for found in re.finditer(re.escape(part), made)]

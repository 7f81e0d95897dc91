"""Cassandra's Thrift calls `set_keyspace`, `get`, `insert` and `batch_mutate`."""

import struct

MOST_BYTES = 1 << 24   # of a message, as in Cassandra
MOST_KEPT = 4096       # answers in memory


def size_of(received: bytes) -> int | None:
    if len(received) < 4:
        return None
    size = 4 + int.from_bytes(received[:4], "big")
    if size > MOST_BYTES:
        raise ValueError("no Thrift message")
    return size


def answers(value_of):
    """The greeting, and the function from a message to its answer."""
    known, done = {}, {call: frame(call, b"\0")
                       for call in (b"set_keyspace", b"insert", b"batch_mutate")}

    def answer(message: bytes) -> bytes:
        if message[12:15] != b"get":
            return done[message[12:12 + message[11]]]
        key = message[26:26 + message[25]]
        if key not in known:
            if len(known) == MOST_KEPT:
                known.clear()
            known[key] = column_answer(value_of(key))
        return known[key]

    return b"", answer


def column_answer(value: bytes) -> bytes:
    """The answer to `get`: a ColumnOrSuperColumn with a column of name, value and time."""
    time = struct.pack(">bhq", 10, 3, 1)
    column = text(1, b"value") + text(2, value) + time + b"\0"
    opened = struct.pack(">bh", 12, 0) + struct.pack(">bh", 12, 1)
    return frame(b"get", opened + column + b"\0\0")


def frame(call: bytes, result: bytes) -> bytes:
    body = struct.pack(">II", 0x80010002, len(call)) + call + struct.pack(">I", 0) + result
    return struct.pack(">I", len(body)) + body


def text(field: int, value: bytes) -> bytes:
    return struct.pack(">bhI", 11, field, len(value)) + value

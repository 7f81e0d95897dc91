"""CQL's native protocol, version 4: a SELECT and an INSERT by name, prepared.

Of other queries, the one for the node itself has a row, which a driver's session needs.
"""

import struct

HEADER_BYTES = 9  # version, flags, stream (2), operation, length of the body (4)
VERSION, OF_SERVER = 4, 0x80
ERROR, STARTUP, READY, OPTIONS, SUPPORTED, QUERY, RESULT, PREPARE, EXECUTE, REGISTER = (
    0, 1, 2, 5, 6, 7, 8, 9, 10, 11)
VOID, ROWS, PREPARED = 1, 2, 4  # kinds of results
ONE_TABLE, NO_METADATA = 1, 4   # flags of metadata
SKIP_METADATA = 2               # flag of an EXECUTE
BLOB, VARCHAR = 3, 13
NODE = {b"cluster_name": b"null", b"data_center": b"null", b"rack": b"null",
        b"partitioner": b"org.apache.cassandra.dht.Murmur3Partitioner",
        b"release_version": b"5.0"}
MOST_KEPT = 4096  # answers in memory
MOST_BYTES = 1 << 28  # of a message
SELECT, INSERT = (verb.ljust(16) for verb in (b"SELECT", b"INSERT"))  # ids of the statements


def size_of(received: bytes) -> int | None:
    if len(received) < HEADER_BYTES:
        return None
    size = HEADER_BYTES + int.from_bytes(received[5:9], "big")
    if size > MOST_BYTES:
        raise ValueError("no CQL message")
    return size


def answers(value_of):
    """The greeting, and the function from a message to its answer, which is valid until the next
    call."""
    rows, void = {}, frame(RESULT, number(VOID))

    def answer(message: bytes) -> bytearray:
        if message[0] != VERSION:
            reply = frame(ERROR, number(10) + text(b"Invalid or unsupported protocol version"))
        elif message[4] != EXECUTE:
            reply = other(message)
        elif message[11:27] == SELECT:
            request = message[29] & SKIP_METADATA, message[36:36 + message[35]]
            reply = rows.get(request)
            if not reply:
                if len(rows) == MOST_KEPT:
                    rows.clear()
                reply = rows[request] = value_row(value_of(request[1]), bare=request[0])
        else:
            reply = void
        reply[2:4] = message[2:4]  # the stream; in place, as a value may be long
        return reply

    return b"", answer


def other(message: bytes) -> bytes:
    """The answer to a message before the first call."""
    operation, body = message[4], message[13:]
    if operation in (STARTUP, REGISTER):
        return frame(READY, b"")
    if operation == OPTIONS:
        return frame(SUPPORTED, b"\0\2" + text(b"CQL_VERSION") + b"\0\1" + text(b"3.0.0")
                     + text(b"COMPRESSION") + b"\0\0")
    if operation == PREPARE:
        return prepared(SELECT if body.startswith(b"SELECT") else INSERT)
    if operation == QUERY:
        cells = NODE.values() if b"system.local" in body else []
        return frame(RESULT, number(ROWS) + columns(NODE, VARCHAR) + row(cells))
    raise ValueError(f"unknown operation {operation}")


def value_row(value: bytes, bare: bool) -> bytes:
    """The SELECT's row; `bare`: without the columns' metadata, which the client has."""
    metadata = number(NO_METADATA) + number(1) if bare else columns([b"value"], BLOB)
    return frame(RESULT, number(ROWS) + metadata + row([value]))


def prepared(statement: bytes) -> bytes:
    read = statement == SELECT
    parameters = columns([b"name"] if read else [b"name", b"value"], BLOB)
    key = number(1) + b"\0\0"  # the partition key is one of the parameters, the first
    result = columns([b"value"], BLOB) if read else number(NO_METADATA) + number(0)
    return frame(RESULT, number(PREPARED) + text(statement) + parameters[:8] + key
                 + parameters[8:] + result)


def columns(names, kind: int) -> bytes:
    """Metadata of columns of one type: flags, how many, keyspace and table, each one's name."""
    described = b"".join(text(name) + struct.pack(">H", kind) for name in names)
    return number(ONE_TABLE) + number(len(names)) + text(b"labbook") + text(b"pairs") + described


def row(cells) -> bytes:
    """One row; none without cells."""
    return number(bool(cells)) + b"".join(number(len(cell)) + cell for cell in cells)


def frame(operation: int, body: bytes) -> bytearray:
    return bytearray(struct.pack(">BBhBI", VERSION | OF_SERVER, 0, 0, operation, len(body))) + body


def number(value: int) -> bytes:
    return struct.pack(">I", value)


def text(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value

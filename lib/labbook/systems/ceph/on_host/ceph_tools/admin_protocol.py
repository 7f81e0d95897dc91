"""The protocol of admin sockets: a JSON question and a zero byte; back come a length (4 bytes) and the answer."""

import json
import socket
import struct
import time

LENGTH = struct.Struct(">I")


def ask(path: str, question: dict, seconds: float) -> bytes:
    """The bytes of the answer; OSError if it is not complete within `seconds`."""
    until = time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        connection.sendall(json.dumps({"format": "json", **question}).encode() + b"\0")
        length, = LENGTH.unpack(_exactly(connection, LENGTH.size, until))
        return _exactly(connection, length, until)


def answer(connection: socket.socket, text: bytes) -> None:
    connection.sendall(LENGTH.pack(len(text)) + text)


def question(connection: socket.socket) -> dict:
    """Read a question as a server; ConnectionError or ValueError if it is incomplete or no JSON."""
    received = b""
    while not received.endswith(b"\0"):
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("incomplete question")
        received += part
    return json.loads(received[:-1])


def _exactly(connection, size, until) -> bytes:
    parts, left = [], size
    while left:
        connection.settimeout(max(until - time.monotonic(), 0.001))
        part = connection.recv(min(left, 1 << 20))
        if not part:
            raise ConnectionError(f"the answer lacks its last {left} bytes")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)

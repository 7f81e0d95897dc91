"""Admin sockets: a question in JSON and a zero byte out, a length of 4 bytes and an answer back."""

import json
import socket
import struct
import time

LENGTH = struct.Struct(">I")


def ask(path: str, question: dict, seconds: float) -> bytes:
    """The answer's bytes, all within `seconds`; OSError when there is none."""
    until = time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(seconds)
        asking.connect(path)
        asking.sendall(json.dumps({"format": "json", **question}).encode() + b"\0")
        length, = LENGTH.unpack(_exactly(asking, LENGTH.size, until))
        return _exactly(asking, length, until)


def answer(connection: socket.socket, text: bytes) -> None:
    connection.sendall(LENGTH.pack(len(text)) + text)


def question(connection: socket.socket) -> dict:
    """The other side's part; ConnectionError or ValueError when it is none."""
    received = b""
    while not received.endswith(b"\0"):
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("no whole question")
        received += part
    return json.loads(received[:-1])


def _exactly(asking, size, until) -> bytes:
    parts, left = [], size
    while left:
        asking.settimeout(max(until - time.monotonic(), 0.001))
        part = asking.recv(min(left, 1 << 20))
        if not part:
            raise ConnectionError(f"the answer ended {left} bytes before its end")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)

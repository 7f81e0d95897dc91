"""Answers key-value clients with next to no work.

`null_program.py PROTOCOL ADDRESS PORT VALUE_BYTES`

The clients' rate against it is the clients' own ceiling. It needs nothing but Python, answers
one message a read (the clients wait for each answer) and never looks at more than the key.
Thrift: `set_keyspace`, `get`, `insert`. MySQL: any query; one with SELECT gets the row whose key
it names last. The value is the key, cut or padded with dots.
"""

import select
import socket
import struct
import sys


def thrift_frame(call: bytes, result: bytes) -> bytes:
    body = struct.pack(">II", 0x80010002, len(call)) + call + struct.pack(">I", 0) + result
    return struct.pack(">I", len(body)) + body


def thrift_text(field: int, value: bytes) -> bytes:
    return struct.pack(">bhI", 11, field, len(value)) + value


def thrift_value(key: bytes, value: bytes) -> bytes:
    """The answer to `get`: a ColumnOrSuperColumn with a column of name, value and time."""
    time = struct.pack(">bhq", 10, 3, 1)
    column = thrift_text(1, b"value") + thrift_text(2, value) + time + b"\0"
    opened = struct.pack(">bh", 12, 0) + struct.pack(">bh", 12, 1)
    return thrift_frame(b"get", opened + column + b"\0\0")


def thrift_answers(value_bytes: int):
    values, done = {}, {call: thrift_frame(call, b"\0") for call in (b"set_keyspace", b"insert")}

    def answer(message: bytes) -> bytes:
        if message[12:15] != b"get":
            return done[message[12:12 + message[11]]]
        key = message[26:26 + message[25]]
        if key not in values:
            values[key] = thrift_value(key, padded(key, value_bytes))
        return values[key]

    return b"", answer


def mysql_packet(number: int, body: bytes) -> bytes:
    return struct.pack("<I", len(body) | number << 24) + body


def mysql_text(value: bytes) -> bytes:
    length = bytes([len(value)]) if len(value) < 251 else b"\xfc" + struct.pack("<H", len(value))
    return length + value


def mysql_value(value: bytes) -> bytes:
    """The answer to SELECT: one VARCHAR column, one row."""
    names = b"".join(map(mysql_text, (b"def", b"labbook", b"pairs", b"pairs", b"VALUE", b"VALUE")))
    column = names + b"\x0c" + struct.pack("<HIBHBH", 33, 300, 253, 0, 0, 0)
    end = b"\xfe\0\0\x02\0"
    return b"".join(mysql_packet(i + 1, body) for i, body in
                    enumerate((b"\x01", column, end, mysql_text(value), end)))


def mysql_answers(value_bytes: int):
    greeting = mysql_packet(0, b"\x0a5.5.9-null\0" + struct.pack("<I", 1) + b"12345678\0"
                            + struct.pack("<HBHHB", 0xa28d, 33, 2, 0x8008, 21) + bytes(10)
                            + b"123456789012\0" + b"mysql_native_password\0")
    values = {}
    ok, replaced = (mysql_packet(number, b"\0" + rows + b"\0\x02\0\0\0")
                    for number, rows in ((1, b"\0"), (1, b"\x02")))
    logged_in = mysql_packet(2, b"\0\0\0\x02\0\0\0")

    def answer(message: bytes) -> bytes:
        if message[5:11] == b"SELECT":
            key = message[message.rindex(b"'", 0, -1) + 1:-1]
            if key not in values:
                values[key] = mysql_value(padded(key, value_bytes))
            return values[key]
        if message[5:12] == b"REPLACE":
            return replaced
        return ok if message[3] == 0 else logged_in

    return greeting, answer


def padded(key: bytes, value_bytes: int) -> bytes:
    return key[:value_bytes].ljust(value_bytes, b".")


def serve(listener: socket.socket, greeting: bytes, answer) -> None:
    poll, connections = select.epoll(), {}
    door = listener.fileno()
    poll.register(door, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            if number == door:
                connection = listener.accept()[0]
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[connection.fileno()] = connection, connection.recv, connection.send
                connection.send(greeting)
                poll.register(connection.fileno(), select.EPOLLIN)
                continue
            connection, receive, send = connections[number]
            try:
                send(answer(receive(65536)))
            except (OSError, LookupError, ValueError):  # gone, or no message of ours
                poll.unregister(number)
                connections.pop(number)[0].close()


ANSWERS = {"thrift": thrift_answers, "mysql": mysql_answers}

if __name__ == "__main__":
    protocol, address, port, value_bytes = sys.argv[1:]
    serve(socket.create_server((address, int(port)), backlog=512),
          *ANSWERS[protocol](int(value_bytes)))

"""MySQL: any login and any statement; a SELECT gets the row of the key that it names last."""

import struct

OK = 0x0002  # status: each statement is a transaction


def answers(value_of):
    """The greeting, and the function from a message to its answer."""
    greeting = packet(0, b"\x0a5.5.9-null\0" + struct.pack("<I", 1) + b"12345678\0"
                      + struct.pack("<HBHHB", 0xa28d, 33, OK, 0x8008, 21) + bytes(10)
                      + b"123456789012\0" + b"mysql_native_password\0")
    known = {}
    ok, replaced = changed(0), changed(2)
    updated = changed(1, b"(Rows matched: 1  Changed: 1  Warnings: 0")
    logged_in = packet(2, ok[4:])
    writes = {b"REPLAC": replaced, b"UPDATE": updated, b"INSERT": changed(1)}

    def answer(message: bytes) -> bytes:
        verb = message[5:11]
        if verb == b"SELECT":
            key = message[message.rindex(b"'", 0, -1) + 1:-1]
            if key not in known:
                known[key] = one_row(value_of(key))
            return known[key]
        return writes.get(verb) or (ok if message[3] == 0 else logged_in)

    return greeting, answer


def changed(rows: int, message: bytes = b"") -> bytes:
    return packet(1, bytes([0, rows, 0]) + struct.pack("<HH", OK, 0) + message)


def one_row(value: bytes) -> bytes:
    """The answer to SELECT: one VARCHAR column, one row."""
    names = b"".join(map(text, (b"def", b"labbook", b"pairs", b"pairs", b"VALUE", b"VALUE")))
    column = names + b"\x0c" + struct.pack("<HIBHBH", 33, 300, 253, 0, 0, 0)
    end = b"\xfe\0\0" + struct.pack("<H", OK)
    return b"".join(packet(number, body) for number, body in
                    enumerate((b"\x01", column, end, text(value), end), start=1))


def packet(number: int, body: bytes) -> bytes:
    return struct.pack("<I", len(body) | number << 24) + body


def text(value: bytes) -> bytes:
    length = bytes([len(value)]) if len(value) < 251 else b"\xfc" + struct.pack("<H", len(value))
    return length + value

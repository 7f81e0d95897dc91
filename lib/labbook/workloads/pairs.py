"""The pairs that all stores hold: row numbers, their keys and the value that belongs to a key."""

DATABASE, TABLE, COLUMN = "labbook", "pairs", b"value"
MOST_ROWS = 1_000_000  # whose keys are of one length


class WrongValue(Exception):
    """The store gave a value that was never written under this key."""


def key_of(row: int) -> bytes:
    return b"row%06d" % row


def value_of(key: bytes, value_bytes: int) -> bytes:
    """The key, cut or padded: a value tells whose it is, and a null server can make it too."""
    return key[:value_bytes].ljust(value_bytes, b".")


def check_value(key: bytes, value: bytes | None, value_bytes: int) -> None:
    if value is None:
        raise WrongValue("no such row")
    if value != value_of(key, value_bytes):
        raise WrongValue(f"{value[:40]!r}, {len(value)} bytes")

"""The pairs that all stores hold: row numbers, their keys and the value that belongs to a key.

A value is its key and after it dots, or `random` bytes, which no store can make smaller: of each
row another piece of the same noise, so that making and checking them costs a copy.
"""

import hashlib
from functools import cache

from labbook.targets import (
    COLUMN,
    DATABASE,
    DOTS,
    RANDOM,
    TABLE,
    VALUES,
    key_of,
    row_of,
)
from labbook.targets import MAX_ROWS as MOST_ROWS

# The null server, which imports nothing of ours, makes the same noise.
NOISE_PLACES, NOISE_STRIDE = 1 << 22, 2654435761  # odd: so no two rows' pieces begin in one place
MOST_RANDOM_BYTES = 1 << 20


class WrongValue(Exception):
    """The store gave a value that was never written under this key."""


def value_of(key: bytes, value_bytes: int, values: str = DOTS) -> bytes:
    """The key, cut or padded: a value tells whose it is, and a null server can make it too."""
    if values == RANDOM:
        return key + noise_of(row_of(key), noise_bytes(value_bytes, values))
    return key[:value_bytes].ljust(value_bytes, b".")


def check_value(key: bytes, value: bytes | None, value_bytes: int, values: str = DOTS) -> None:
    if value is None:
        raise WrongValue("no such row")
    if value != value_of(key, value_bytes, values):
        raise WrongValue(f"{value[:40]!r}, {len(value)} bytes")


def noise_bytes(value_bytes: int, values: str) -> int:
    """How much of a value is noise, after its key."""
    return value_bytes - len(key_of(0)) if values == RANDOM else 0


def noise_of(row: int, size: int) -> memoryview:
    """The row's own `size` bytes of noise."""
    begin = row * NOISE_STRIDE % NOISE_PLACES
    return _noise()[begin:begin + size]


@cache
def _noise() -> memoryview:
    """5 MB, the same everywhere; once a process, before it forks its clients."""
    return memoryview(hashlib.shake_128(b"labbook").digest(NOISE_PLACES + MOST_RANDOM_BYTES))

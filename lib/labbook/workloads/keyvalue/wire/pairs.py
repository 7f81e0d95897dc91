"""Values of the pairs that all stores hold, and what shows that a value is right.

A value is its key and after it dots, or `random` bytes, which no store can compress: of each row
another part of the same noise, so that making and checking a value costs a copy.
"""

import hashlib
from functools import cache

from labbook.targets import DOTS, RANDOM, key_of, row_of

# The null server, which imports nothing of ours, makes the same noise.
NOISE_PLACES, NOISE_STRIDE = 1 << 22, 2654435761  # odd: so that no two rows' parts begin in one place
MOST_RANDOM_BYTES = 1 << 20


class WrongValue(Exception):
    """The store returned a value that was never written under this key, or none."""


def value_of(key: bytes, value_bytes: int, values: str = DOTS) -> bytes:
    """The key, cut or padded: a value shows which row it is of, and a null server can make it."""
    if values == RANDOM:
        return key + noise_of(row_of(key), noise_bytes(value_bytes, values))
    return key[:value_bytes].ljust(value_bytes, b".")


def check_value(key: bytes, value: bytes | None, value_bytes: int, values: str = DOTS) -> None:
    if value is None:
        raise WrongValue("no such row")
    if value != value_of(key, value_bytes, values):
        raise WrongValue(f"{value[:40]!r}, {len(value)} bytes")


def noise_bytes(value_bytes: int, values: str) -> int:
    """How many bytes of a value are noise, after its key."""
    return value_bytes - len(key_of(0)) if values == RANDOM else 0


def noise_of(row: int, size: int) -> memoryview:
    """`size` bytes of noise, another part of it for each row."""
    begin = row * NOISE_STRIDE % NOISE_PLACES
    return _noise()[begin:begin + size]


@cache
def _noise() -> memoryview:
    """5 MB, the same everywhere; made once, before clients are forked."""
    return memoryview(hashlib.shake_128(b"labbook").digest(NOISE_PLACES + MOST_RANDOM_BYTES))

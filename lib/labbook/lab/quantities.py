"""Sizes as people write them."""

import re

_SIZE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size_bytes(text: str | int) -> int:
    """`4G` -> 4294967296; ValueError for anything else than digits and one of K, M, G, T, and below a byte."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", str(text))
    size = int(float(match[1]) * _SIZE[match[2]]) if match else 0
    if size < 1:
        raise ValueError(f"{text!r} is not a size")
    return size


def size_text(count: int) -> str:
    """4294967296 -> `4 GB`; units are powers of 1024."""
    for unit in ("T", "G", "M", "K"):
        if count >= _SIZE[unit]:
            return f"{count / _SIZE[unit]:.3g} {unit}B"
    return f"{count} B"

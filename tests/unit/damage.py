"""Damage to files, as disks and crashes do it."""

import random


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Cut short, with one bit flipped, with zeros as of a lost block, or with more at the end."""
    at = draw.randrange(len(data))
    kind = draw.choice(["cut", "bit", "bit", "bit", "zeros", "more"])
    if kind == "cut":
        return data[:at]
    if kind == "bit":
        return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1:]
    if kind == "zeros":
        lost = min(512, len(data) - at)
        return data[:at] + bytes(lost) + data[at + lost:]
    return data + draw.randbytes(1 + at)

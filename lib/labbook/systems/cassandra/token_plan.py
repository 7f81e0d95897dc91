"""Shares of a ring that grows: which token each joiner takes, what it must get, what that needs.

A position is a fraction of the ring, counted from the donor's token 0 on; shares are fractions too.
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from labbook.errors import InputError
from labbook.systems.cassandra.config import VERSIONS

FILE = "growing ring"
MARGIN = 0.1            # of its share, that a joiner may have too little of
SPREADS = 4             # standard deviations of how evenly a hash places rows
USUAL_ROW_BYTES = 16384
ROW_EXTRA_BYTES = 120   # of a row beside its value: key, name, times, and its entry in an index


def ring_size(version: str) -> int:
    least, most = VERSIONS[version]["tokens"]
    return 1 << (most - least - 1).bit_length()


def token_at(version: str, position: Fraction) -> int:
    """The token of a position below 1."""
    (least, most), size = VERSIONS[version]["tokens"], ring_size(version)
    token = int(position * size)
    return max(token - size, least) if token > most else token


def position(version: str, token: int) -> Fraction:
    """Where a range ends that ends at this token: above 0, and 1 at the donor's."""
    size = ring_size(version)
    return Fraction(token % size, size) or Fraction(1)


def plan(version: str, taken: Mapping[str, int], names, asked) -> dict[str, int]:
    """{name: token} of the nodes to join, in order.

    `taken` are the tokens of nodes in the ring, `names` all hosts. `asked` is {name: token}, or a
    list of shares: of hosts not in the ring, each takes the range after that of the one before.
    """
    if not asked:
        raise InputError("no node is to join", file=FILE, key="shares")
    wanted = (dict(asked) if isinstance(asked, Mapping)
              else _in_order(version, taken, names, list(asked)))
    _check(version, taken, names, wanted)
    return wanted


def owned(version: str, tokens: Mapping[str, int]) -> dict[str, Fraction]:
    """Share of each node of a ring of these tokens."""
    ends = sorted((position(version, token), name) for name, token in tokens.items())
    before = [ends[-1][0] - 1, *(end for end, _ in ends)]
    return {name: end - begin for (end, name), begin in zip(ends, before)}


def coming(version: str, taken: Mapping[str, int], token: int) -> Fraction:
    """Share that a node gets which joins at this token of a ring of these nodes.

    Of several that join at once each gets so much: none goes by the others before they are there.
    """
    return owned(version, {**taken, "": token})[""]


def least_bytes(expected: float, row_bytes: int = USUAL_ROW_BYTES) -> float:
    """What must have come of a share of so many bytes: few rows are not placed evenly."""
    return expected * (1 - MARGIN) - SPREADS * math.sqrt(expected * row_bytes)


def room_bytes(version: str, rows: int, value_bytes: int, compacting: bool) -> int:
    """Free disk that loading takes: the rows, their commit log, and as much as the rows again
    where SSTables are merged meanwhile."""
    data = rows * (value_bytes + ROW_EXTRA_BYTES)
    return data * (2 if compacting else 1) + min(data, VERSIONS[version]["commit_log_mb"] << 20)


def check_room(version: str, rows: int, value_bytes: int, compacting: bool, free_bytes: int,
               where: str) -> None:
    """InputError when it does not fit the free disk."""
    need = room_bytes(version, rows, value_bytes, compacting)
    if need > free_bytes:
        most = rows * free_bytes // need
        while most and room_bytes(version, most, value_bytes, compacting) > free_bytes:
            most -= max(1, most // 100)
        raise InputError(f"{rows} rows of {value_bytes} bytes take {need} bytes of disk while they "
                         f"are loaded, and {where} has {free_bytes} free", file=FILE, key="rows",
                         allowed=f"at most {most}")


def _in_order(version, taken, names, shares) -> dict[str, int]:
    free = [name for name in names if name not in taken]
    if len(shares) > len(free):
        raise InputError(f"{len(shares)} nodes to join, and {len(free)} hosts not in the ring",
                         file=FILE, key="shares", allowed=f"at most {len(free)}")
    at = max((place for place in (position(version, token) for token in taken.values())
              if place < 1), default=Fraction(0))
    wanted = {}
    for name, share in zip(free, shares):
        at += _share(share)
        if at >= 1:
            raise InputError(f"the shares {_listed(shares)} leave nothing of the ring for the "
                             "donor", file=FILE, key="shares",
                             allowed="less than 1 in all, with those of nodes in the ring")
        wanted[name] = token_at(version, at)
    return wanted


def _share(share) -> Fraction:
    try:
        exact = Fraction(str(share))  # 0.2 is a fifth
    except ValueError:
        exact = Fraction(0)
    if not 0 < exact <= 1:
        raise InputError(f"{share!r} is no share of the ring", file=FILE, key="shares",
                         allowed="more than 0, and less than 1 in all")
    return exact


def _check(version, taken, names, wanted) -> None:
    least, most = VERSIONS[version]["tokens"]
    used = {position(version, token): name for name, token in taken.items()}
    for name, token in wanted.items():
        if name not in names or name in taken:
            why = "is in the ring already" if name in taken else "is no host of it"
            raise InputError(f"{name!r} {why}", file=FILE, key="shares",
                             allowed=[n for n in names if n not in taken])
        if type(token) is not int or not least <= token <= most:
            raise InputError(f"{token!r} is no token of Cassandra {version}", file=FILE,
                             key=f"shares.{name}", allowed=f"integers from {least} to {most}")
        place = position(version, token)
        if place in used:
            raise InputError(f"token {token} is that of {used[place]}", file=FILE,
                             key=f"shares.{name}", allowed="a token that no node has")
        used[place] = name


def _listed(shares) -> str:
    return ", ".join(str(share) for share in shares)

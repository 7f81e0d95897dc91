"""Plan which token each joiner of a ring takes, which data it must receive, and the disk it needs.

A position is a fraction of the ring, counted from the donor's token 0 on; shares are fractions too.
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from labbook.errors import InputError
from labbook.systems.cassandra.config import VERSIONS

FILE = "elastic ring"
MARGIN = 0.1            # of its expected data, that a joiner may lack
SPREADS = 4             # standard deviations of the data in a range, as a hash spreads rows
USUAL_ROW_BYTES = 16384
ROW_EXTRA_BYTES = 120   # of a row besides its value: key, column name, times, index entry


def ring_size(version: str) -> int:
    least, most = VERSIONS[version]["tokens"]
    return 1 << (most - least - 1).bit_length()


def token_at(version: str, position: Fraction) -> int:
    """The token of a position below 1."""
    (least, most), size = VERSIONS[version]["tokens"], ring_size(version)
    token = int(position * size)
    return max(token - size, least) if token > most else token


def position(version: str, token: int) -> Fraction:
    """The position of a token as the end of a range: above 0, and 1 for the donor's."""
    size = ring_size(version)
    return Fraction(token % size, size) or Fraction(1)


def plan(version: str, taken: Mapping[str, int], names, joiners) -> dict[str, int]:
    """{name: token} of the nodes that are to join, in order.

    `taken`: tokens of the nodes in the ring, by name. `names`: all hosts. `joiners`: {name: token},
    or a list of shares, which go to the first hosts that are not in the ring; each takes the range
    after that of the one before. InputError for what does not fit.
    """
    if not joiners:
        raise InputError("no node is to join", file=FILE, key="shares")
    wanted = (dict(joiners) if isinstance(joiners, Mapping)
              else _in_order(version, taken, names, list(joiners)))
    _check(version, taken, names, wanted)
    return wanted


def owned(version: str, tokens: Mapping[str, int]) -> dict[str, Fraction]:
    """The share of each node of a ring with these tokens."""
    ends = sorted((position(version, token), name) for name, token in tokens.items())
    before = [ends[-1][0] - 1, *(end for end, _ in ends)]
    return {name: end - begin for (end, name), begin in zip(ends, before)}


def coming(version: str, taken: Mapping[str, int], token: int) -> Fraction:
    """The share that a node receives which joins at `token` a ring with the tokens `taken`.

    Each of several that join at once receives as much: none knows of the others yet.
    """
    return owned(version, {**taken, "": token})[""]


def least_bytes(expected: float, row_bytes: int = USUAL_ROW_BYTES) -> float:
    """The least bytes that a joiner may have received of `expected`: a hash spreads few rows
    unevenly."""
    return expected * (1 - MARGIN) - SPREADS * math.sqrt(expected * row_bytes)


def room_bytes(version: str, rows: int, value_bytes: int, compacting: bool) -> int:
    """Free disk that loading needs: the rows, their commit log, and once more the rows where SSTables
    are merged meanwhile."""
    data = rows * (value_bytes + ROW_EXTRA_BYTES)
    return data * (2 if compacting else 1) + min(data, VERSIONS[version]["commit_log_mb"] << 20)


def check_room(version: str, rows: int, value_bytes: int, compacting: bool, free_bytes: int,
               where: str) -> None:
    """InputError where `room_bytes` exceeds the free disk; it names how many rows would fit."""
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
        raise InputError(f"{share!r} is not a share of the ring", file=FILE, key="shares",
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

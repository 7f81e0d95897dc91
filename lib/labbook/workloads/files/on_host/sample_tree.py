"""Run as a program on a client host: makes a tree of files whose metadata differ in every respect.

Its argument is a JSON object with folder, directories, files, pins (ranks in turn, or null), pin (a rank, or
null), seed. Prints how many names it has made. Without root all files are the
caller's.
"""

import json
import os
import random
import sys
from contextlib import suppress

MODES = (0o644, 0o600, 0o755, 0o4750, 0o440)
DAY_NS, FIRST_NS = 86_400 * 10**9, 1_262_304_000 * 10**9      # the year 2010
MOST_BYTES = 4096


def make(folder, directories, files, pins, pin, seed) -> int:
    draw = random.Random(seed)
    os.mkdir(folder)
    if pin is not None:
        _pin(folder, pin)
    names = 0
    for number in range(directories):
        place = f"{folder}/d{number:03d}"
        os.mkdir(place)
        if pins:
            _pin(place, pins[number % len(pins)])
        names += 1 + sum(_one(place, i, draw) for i in range(files))
        _times(place, draw)
    return names


def _pin(folder, rank):
    os.setxattr(folder, "ceph.dir.pin", str(rank).encode())


def _one(place, i, draw) -> int:
    """Make a file, and for each tenth a symbolic and a hard link: how many names."""
    path = f"{place}/f{i:05d}"
    with open(path, "xb") as out:
        out.write(draw.randbytes(draw.choice((0, 0, 0, draw.randrange(MOST_BYTES)))))
    with suppress(PermissionError):
        os.chown(path, draw.randrange(1000, 2000), draw.randrange(1000, 2000))
    if i % 4 == 0:
        os.setxattr(path, "user.labbook", draw.randbytes(8).hex().encode())
    os.chmod(path, draw.choice(MODES))      # last: writing needs the permission, chown clears bits
    if i % 10 == 0:
        os.symlink(f"f{i:05d}", f"{place}/s{i:05d}")
        os.link(path, f"{place}/h{i:05d}")
    _times(path, draw)
    return 3 if i % 10 == 0 else 1


def _times(path, draw):
    at = FIRST_NS + draw.randrange(1000 * DAY_NS)
    os.utime(path, ns=(at, at + draw.randrange(DAY_NS)))


if __name__ == "__main__":
    print(make(**json.loads(sys.argv[1])))

"""The tracer's file, read: one row a request. Pure: asks no host."""

import re
import zlib

SECTOR_BYTES = 512      # the kernel's, whatever the disk's own
CHUNK_BYTES = 16 << 20
TEXTS = ("thread", "event", "io_class")
EVENTS = {"rq_issue": "issue", "bio_queue": "queue"}
# The I/O class (none,0,0) is told by newer kernels only:
#  java-812 [001] d..1. 46.135: block_rq_issue: 7,0 RA 131072 () 2048 + 256 none,0,0 [ReadStage:1]
#  java-812 [001] ..... 46.134: block_bio_queue: 7,0 RA 2048 + 256 [ReadStage:1]
LINE = re.compile(
    r"^.*?-(?P<tid>\d+) +\[\d+\] +\S+ +(?P<t>\d+\.\d+): block_(?P<event>rq_issue|bio_queue): "
    r"\d+,\d+ (?P<flags>\w+) (?:\d+ \(.*?\) )?(?P<sector>\d+) \+ (?P<count>\d+) "
    r"(?:(?P<io_class>\w+),\d+,\d+ )?\[(?P<thread>.*)\]$", re.M)


def frame(packed: bytes, offset_s: float = 0.0):
    """DataFrame of requests in the order of their times, one row an event.

    t_s (the trace's clock + offset_s), event ("issue": given to the disk; "queue": asked for, which
    is before it was merged with others or split), sector (of 512 bytes), size_bytes, write, ahead
    (a read that nobody waits for yet), thread (its name, at most 15 characters; on an issue often
    one of the kernel's own), tid (as the machine numbers it), io_class ("rt", "be", which is
    also who has none of their own, "idle" or "none"; "" on a queue or where the kernel does not tell). Flushes and discards are left out.
    """
    import numpy as np
    import pandas as pd

    parts = [_columns(text) for text in _texts(packed)] or [_columns("")]
    joined = {name: [value for part in parts for value in part[name]] if name in TEXTS
              else np.concatenate([part[name] for part in parts]) for name in parts[0]}
    joined["t_s"] = joined["t_s"] + offset_s
    made = pd.DataFrame(joined).astype(dict.fromkeys(TEXTS, object))
    made = made.astype(dict.fromkeys(TEXTS, "category"))
    # processors' buffers are read one page after the other, so that two events may be the wrong way
    return made.sort_values("t_s", kind="stable", ignore_index=True)


def _columns(text: str) -> dict:
    import numpy as np

    found = [line for line in LINE.findall(text) if _moves(line[3], line[5])]
    tid, t, event, flags, sector, count, io_class, thread = zip(*found) if found else [()] * 8
    return {
        "t_s": np.array(t, float), "event": [EVENTS[one] for one in event],
        "sector": np.array(sector, np.int64),
        "size_bytes": np.array(count, np.int64) * SECTOR_BYTES,
        "write": np.array(["W" in one for one in flags], bool),
        "ahead": np.array(["A" in one for one in flags], bool),
        "thread": list(thread), "tid": np.array(tid, np.int32), "io_class": list(io_class),
    }


def _moves(flags, count):
    return count != "0" and ("R" in flags or "W" in flags)


def _texts(packed):
    """The file's text in pieces that end with a line."""
    unpacker, rest = zlib.decompressobj(), b""
    while packed or unpacker.unconsumed_tail:
        piece = unpacker.decompress(packed, CHUNK_BYTES)
        packed = unpacker.unconsumed_tail
        whole, line, rest = (rest + piece).rpartition(b"\n")
        yield (whole + line).decode(errors="replace")
        if not piece and not packed:
            break
    yield rest.decode(errors="replace")

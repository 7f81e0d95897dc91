"""A table's files as they are a while after it was filled: merged as far as they are by themselves.

A node that is filled flushes many small files, and merges them for long after, at its throttle's
pace. Here it does so as fast as it can.
"""

from labbook.errors import InputError
from labbook.systems.cassandra import sstables as files
from labbook.targets import DATABASE, TABLE


def merge(ring, seconds: float) -> list[int]:
    """Returns when the ring's donor finds nothing more to merge: bytes of its files, largest first.

    What is left is what the table's own strategy leaves alone: size-tiered, fewer than four files
    of about one size, a few large ones and a few small. It is not one file, which only a major
    compaction makes. Compaction and its throttle are as they were afterwards.
    """
    donor, before = ring.donor, ring.compacting
    _check_room(ring)
    donor.nodetool("setcompactionthroughput", 0)
    try:
        ring.compaction(True)
        donor.admin.look_for_merges(DATABASE, TABLE)
        ring.quiet(seconds)
    finally:
        donor.nodetool("setcompactionthroughput", donor.version["compaction_throttle"])
    if not before:
        ring.compaction(False)
    return files.table_files(donor)


def _check_room(ring) -> None:
    """InputError when the files do not fit the donor's disk once more, as they may while the
    largest are merged."""
    need, free = ring.data_bytes(), files.free_bytes(ring.host)
    if need > free:
        raise InputError(f"{need} bytes are to be merged, and {ring.host.name} has {free} free",
                         file="growing ring", key="merge", allowed="as much again free")

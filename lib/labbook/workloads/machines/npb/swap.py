"""How much the kernels of places have swapped out."""

from labbook.errors import LabError
from labbook.workloads.machines.machine import said_by_all

ASK = "grep pswpout /proc/vmstat"
PAGE_BYTES = 4096       # of x86 and of most others


def out_mb(places) -> float:
    """Megabytes since they booted, added up."""
    return added(said_by_all(places, ASK), len(places))


def added(lines: list[str], places: int) -> float:
    pages = [int(line.split()[1]) for line in lines if line.startswith("pswpout ")]
    if len(pages) != places:
        raise LabError(f"only {len(pages)} of {places} places told what they have swapped out")
    return sum(pages) * PAGE_BYTES / 1e6

"""How much the kernels of places have swapped out."""

from labbook.errors import LabError

ASK = "grep pswpout /proc/vmstat"
PAGE_BYTES = 4096       # of x86 and of most others
ASK_SECONDS = 60


def out_mb(places) -> float:
    """Megabytes since they booted, added up; asked of all at a time, by their common host."""
    line = " & ".join(f"( {place.line(ASK)} )" for place in places)
    return added(places[0].via.run(f"{line} & wait", timeout=ASK_SECONDS).stdout, len(places))


def added(said: str, places: int) -> float:
    pages = [int(line.split()[1]) for line in said.splitlines() if line.startswith("pswpout ")]
    if len(pages) != places:
        raise LabError(f"only {len(pages)} of {places} places told what they have swapped out")
    return sum(pages) * PAGE_BYTES / 1e6

"""Which rows of a table are there with their values: each is read once."""

from labbook.workloads.keyvalue.on_host import readable_engine as readable_host
from labbook.workloads.keyvalue.on_host.pairs import RANDOM
from labbook.workloads.keyvalue.spec import spec_of

FIRST_SECONDS = 120     # for a server that has just come up to be asked for the first time
ROWS_A_SECOND = 50      # at the least


def readable(crew, target, *, rows: int, value_bytes: int, values: str = RANDOM,
             consistency: str = "ONE") -> dict:
    """Read every row and check its value: `readable`, the share that is there and right, `wrong`,
    how many are not, and `first_wrong`, what the first of these gave ("" if none)."""
    spec = spec_of(target, op="read", rows=rows, value_bytes=value_bytes, values=values,
                   consistency=consistency)
    (wrong, first), = crew.run(readable_host.look, [spec],
                               timeout=FIRST_SECONDS + rows / ROWS_A_SECOND)
    return {"readable": 1 - wrong / rows, "wrong": wrong, "first_wrong": first}

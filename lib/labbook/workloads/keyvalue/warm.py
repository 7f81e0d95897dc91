"""Warming a server that has just come up, until its hot code is compiled and its caches are full."""

from itertools import product

from labbook.workloads.keyvalue.load import fill, keyvalue

MANY, ONE = 10, 1   # clients: hot code under load, and its way with one at a time
FILL_AT = "ALL"     # every copy has every row before anything is measured


def fill_and_warm(crew, target, *, rows: int, value_bytes: int, rounds: int, requests: int,
                  seconds: float) -> None:
    """Write all rows, then `rounds` times reads and writes by many clients and by one, `requests` of
    each client or as many as it makes in `seconds`. Several servers get as many rounds each."""
    told = dict(rows=rows, value_bytes=value_bytes)
    fill(crew, target, **told, consistency=FILL_AT)
    servers = len(getattr(target, "addresses", None) or [target.address])
    for op, clients in product(["read", "write"] * (rounds * servers), [MANY, ONE]):
        keyvalue(crew, target, op=op, clients=clients, requests=requests, warmup_requests=0,
                 seconds_at_most=seconds, consistency="ONE", seed=0, **told)

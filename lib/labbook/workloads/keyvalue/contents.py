"""Fill a store, warm it, and check what it holds."""

import math
import operator
from functools import reduce

from labbook.targets import DOTS, RANDOM, Servers, addresses
from labbook.workloads.clients.cpu import server_cpu
from labbook.workloads.clients.warm import Warmth, until_stable
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.load import begin_pairs
from labbook.workloads.keyvalue.on_host import contents as on_host
from labbook.workloads.keyvalue.spec import spec_of

FIRST_SECONDS = 120     # for a server that has just started to answer for the first time
ROWS_A_SECOND = 50      # at least
ROUND_SECONDS = 30      # for a busy host to say how many calls were made, beyond a round's own time


def fill(crew, target: Servers, *, rows: int, value_bytes: int, values: str = DOTS,
         consistency: str | None = None) -> None:
    """Write every row of the table once at that level, and read all back.

    They are read at the strongest level, which shows that every replica has them: so they can be
    read at any.
    """
    spec = spec_of(target, rows=rows, value_bytes=value_bytes, values=values,
                   consistency=consistency)
    crew.run(on_host.fill, [spec], [_strongest_level(target)],
             timeout=FIRST_SECONDS + rows / ROWS_A_SECOND)


def fill_and_warm(crew, target: Servers, *, rows: int, value_bytes: int, levels=(None,), **how) -> Warmth:
    """Write all rows to every replica; then `warm` servers that have just started at each of these levels of
    consistency in turn (None: the protocol's own). how: as `warm` takes it."""
    fill(crew, target, rows=rows, value_bytes=value_bytes, consistency=_strongest_level(target))
    return reduce(operator.add, (warm(crew, target, rows=rows, value_bytes=value_bytes, consistency=level, **how)
                                 for level in levels))


def warm(crew, target: Servers, *, rows: int, value_bytes: int, consistency: str | None, rounds: int, clients: int,
         requests: int, seconds: float, within: float, in_a_row: int = 1) -> Warmth:
    """Call servers until their hot code is compiled and their caches are full.

    Each of `clients` clients reads and writes in turn, until the servers are warm: when in a round a call cost them no
    less CPU, in µs, than in the round before, by a share `within`, `in_a_row` times in a row (see `until_stable`). A
    round lasts `seconds` for each server, so that each of several has as many calls as one alone. They end after
    `rounds` rounds, and no client makes more than `requests` calls a round and server on the whole; a round without
    calls, after these, has no cost and leaves the servers unstable. The first round's cost includes connecting.
    """
    servers = len(addresses(target))
    if not rounds:
        return Warmth(0, 0.0, False, [])
    before, patience_s = (0, server_cpu(target)), seconds * servers + ROUND_SECONDS
    with begin_pairs(crew, target, op="both", clients=clients, rows=rows, value_bytes=value_bytes, seed=0,
                     consistency=consistency, requests_at_most=requests * rounds * servers,
                     say_seconds=seconds * servers, seconds_at_most=rounds * patience_s) as stream:
        def costs():
            nonlocal before
            (calls, used), before = before, (stream.calls_made(patience_s), server_cpu(target))
            made = before[0] - calls
            return {"both": (before[1] - used) / made * 1e6 if made else math.nan}

        return until_stable(costs, within=within, in_a_row=in_a_row, most_rounds=rounds, most_seconds=math.inf)


def readable(crew, target: Servers, *, rows: int, value_bytes: int, values: str = RANDOM,
             consistency: str | None = None) -> dict:
    """Read every row once and check its value: `readable`, the share that is there and right;
    `wrong`, how many are not; `first_wrong`, why the first of these is not ("" without one)."""
    spec = spec_of(target, op="read", rows=rows, value_bytes=value_bytes, values=values,
                   consistency=consistency)
    (wrong, first), = crew.run(on_host.count_wrong, [spec],
                               timeout=FIRST_SECONDS + rows / ROWS_A_SECOND)
    return {"readable": 1 - wrong / rows, "wrong": wrong, "first_wrong": first}


def shared_pages(crew, target: Servers, pages: int = 20) -> float:
    """The share of `pages` pages, saved through one of the target's web servers after the other,
    that every other one returns at once and unaltered. The pages are removed again."""
    found = crew.run(on_host.count_shared, [list(target.addresses)], [target.port], [pages],
                     timeout=on_host.PAGE_SECONDS * pages)
    return found[0] / pages


def _strongest_level(target: Servers) -> str | None:
    return protocols.protocol(target.protocol).STRONGEST

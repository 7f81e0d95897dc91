"""Fill a store, warm it, and check what it holds."""

import math

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


def fill_and_warm(crew, target: Servers, *, rows: int, value_bytes: int, rounds: int, clients: int,
                  requests: int, seconds: float, within: float, in_a_row: int = 1) -> Warmth:
    """Write all rows to every replica; then warm a server that has just started, until its hot code
    is compiled and its caches are full.

    Each of `clients` clients reads and writes in turn, until the server is warm: when in a round of `seconds` a
    call cost it no less CPU, in µs, than in the round before, by a share `within`, `in_a_row` times in a row (see
    `until_stable`). They end after `rounds` rounds, with several servers as many times as many, and no client makes
    more than `requests` calls for each of these. The first round's cost includes connecting.
    """
    table = dict(rows=rows, value_bytes=value_bytes)
    fill(crew, target, **table, consistency=_strongest_level(target))
    most = rounds * len(addresses(target))
    if not most:
        return Warmth(0, 0.0, False, [])
    before = 0, server_cpu(target)
    with begin_pairs(crew, target, op="both", clients=clients, requests_at_most=requests * most, say_seconds=seconds,
                     seconds_at_most=most * (seconds + ROUND_SECONDS), seed=0, **table) as stream:
        def costs():
            nonlocal before
            (calls, used), before = before, (stream.calls_made(seconds + ROUND_SECONDS), server_cpu(target))
            return {"both": (before[1] - used) / max(1, before[0] - calls) * 1e6}

        return until_stable(costs, within=within, in_a_row=in_a_row, most_rounds=most, most_seconds=math.inf)


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

"""Histories of clients of one register that nobody ran: right ones, and ways to spoil them."""

import random

from labbook.workloads.histories.calls import FAILED, OK, READ, UNKNOWN, WRITE, Call

CLIENTS = ("a", "b", "c", "d")
LAST_S = 1000.0     # when the last reads begin, long after all else


def right(draw: random.Random, calls: int = 40, write_share: float = 0.5) -> list[Call]:
    """A history that a register may give: each call has its effect at a moment between its start
    and its end, that of an unknown write may come later or never. It ends with two last reads."""
    planned = []
    for client in CLIENTS:
        now = draw.random()
        for number in range(calls // len(CLIENTS)):
            begin, effect, end = now, *(now + x for x in sorted((draw.random(), draw.random())))
            is_write, fate = draw.random() < write_share, draw.random()
            value, outcome = f"{client}{number}", OK
            if is_write and fate < 0.15:
                outcome, effect = UNKNOWN, draw.choice((effect, effect + 5 * draw.random(), None))
            elif is_write and fate < 0.2:
                outcome, effect = FAILED, None
            planned.append((effect, Call(client, WRITE if is_write else READ, "key",
                                         value if is_write else None, begin, end, outcome)))
            now = end + draw.choice((0.0, 0.3 * draw.random()))
    for client in CLIENTS[:2]:
        planned.append((LAST_S, Call(client, READ, "key", None, LAST_S, LAST_S + 1, last=True)))
    return [call for _, call in _effects(planned)]


def _effects(planned):
    """The same calls, in the order of their effects, with the values that reads then return."""
    now = None
    for effect, call in sorted((one for one in planned if one[0] is not None), key=lambda one: one[0]):
        if call.op == WRITE:
            now = call.value
        else:
            call = call._replace(value=now)
        yield effect, call
    yield from (one for one in planned if one[0] is None)


def any_reads(draw: random.Random, calls: int = 12) -> list[Call]:
    """The same kind of history whose reads return any of the values: right or, mostly, wrong."""
    found = right(draw, calls)
    values = [None, *(call.value for call in found if call.op == WRITE)]
    return [call._replace(value=draw.choice(values))
            if call.op == READ and draw.random() < 0.3 else call for call in found]

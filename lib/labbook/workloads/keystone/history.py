"""The history of users: a set to which clients add one each, and which they read. Pure functions.

The key of a user is its name. To create one is a write; the client reads it back at once, as Rally
does, and a list is a read of the whole set. Keystone reads any node of its database, and a Galera node
may apply what another has committed some moments later (`wsrep_sync_wait` is 0 as shipped): so a
read may be stale, or go back in time, but no user whose creation was acknowledged may be lost, and
none may be there whose creation nobody began.
"""

from collections.abc import Iterable

from labbook.workloads.histories.calls import (
    ABSENT,
    LIST,
    OK,
    READ,
    THERE,
    UNKNOWN,
    WRITE,
    Call,
)
from labbook.workloads.keystone.on_host.calls import OURS

NOT_FOUND = "NotFound:"     # how the error of a read begins that found no such user


def calls_of(client: int, steps: Iterable) -> list[Call]:
    """The Calls of a client, from the `history` that its runner kept."""
    return [call for step in steps for call in _of_step(str(client), *step)]


def _of_step(client, begun, seconds, error, tried, made_s, seen):
    end = begun + seconds
    if seen is not None:
        yield Call(client, LIST, "", tuple(seen), begun, end)
    if not tried:
        return
    made = made_s is not None
    yield Call(client, WRITE, tried, THERE, begun, made_s if made else end, OK if made else UNKNOWN)
    if made and (not error or error.startswith(NOT_FOUND)):
        yield Call(client, READ, tried, ABSENT if error else THERE, made_s, end)


def last_lists(names: dict, begun: float, end: float) -> list[Call]:
    """A last list of each node's own: `names` of all users by node, asked for between two times."""
    return [Call(node, LIST, "", tuple(name for name in found if name.startswith(OURS)), begun, end,
                 last=True) for node, found in names.items()]

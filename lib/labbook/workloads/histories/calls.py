"""A history: its calls, the table in which it is recorded, and the metrics of what was found in it."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from labbook.lab.clock import DRIFT
from labbook.workloads.histories.registers import ANOMALIES, check_register

WRITE, READ, LIST = "write", "read", "list"
OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
ABSENT = None       # the value of a key that nobody has written, or that was removed
THERE = "there"     # the value of a key that is in a set


class Call(NamedTuple):
    """One call. A write sets its key to a value that no other write of the key has; a read returned
    `value`; a list returned the keys that are in a set, as a tuple. The key of a list is what its set's keys
    begin with, "" where all are of one set.

    invoked_s, returned_s: seconds since the load's start; a call that did not return has the time at
    which it was given up. last: a read once all is at rest, by which a write can be seen to be lost.
    """

    client: str
    op: str
    key: str
    value: object
    invoked_s: float
    returned_s: float
    outcome: str = OK
    last: bool = False


def frame(calls: Iterable[Call]) -> pd.DataFrame:
    """The history as a table, a row a call in the order of the calls' times, to be recorded as a
    series. The value of a list is its keys, with spaces between them."""
    rows = [call._replace(value=" ".join(call.value)) if call.op == LIST and call.value is not None
            else call for call in sorted(calls, key=lambda call: call.invoked_s)]
    found = pd.DataFrame(rows, columns=list(Call._fields), dtype=object)
    return found.astype({"invoked_s": float, "returned_s": float, "last": bool})


def metrics(calls: Iterable[Call], slack_s: float = 0.0) -> dict:
    """Metrics of a history, all of them numbers.

    lost_writes: acknowledged writes that a last read does not show, though nothing later explains
    it. stale_reads: reads that began after a later write was acknowledged. phantom_values: reads of
    what nobody had written by then. backward_reads: reads of a value after a later one had been
    read, by any client; own_backward_reads: by the same one. unknown_calls: writes of which nobody
    knows whether they had an effect. checked_calls, checked_keys: the size of the history.

    slack_s: how far apart the clients' clocks may be at the start, 0 where all have one clock (see drifted).
    ValueError for two writes of one value.
    """
    calls = list(calls)
    found, slack_s = dict.fromkeys(ANOMALIES, 0), drifted(slack_s, calls)
    by_key = _by_key(calls)
    for of_key in by_key.values():
        for name, count in check_register(of_key, slack_s).items():
            found[name] += count
    unknown = sum(call.op == WRITE and call.outcome == UNKNOWN for call in calls)
    return {name: float(count) for name, count in found.items()} | {
        "unknown_calls": float(unknown), "checked_calls": float(len(calls)),
        "checked_keys": float(len(by_key))}


def drifted(slack_s: float, calls: list[Call]) -> float:
    """How far apart clocks may be by the end of these calls that may be `slack_s` apart at the start, in seconds:
    each of two may leave ours by DRIFT. 0 stays 0, since one clock does not leave itself."""
    length_s = max((call.returned_s for call in calls), default=0.0)
    return slack_s and slack_s + 2 * DRIFT * max(0.0, length_s)


def _by_key(calls) -> dict[str, list[Call]]:
    """The calls of each key; of a list, a read of each key of its set that was written, or that it shows."""
    found = {}
    for call in calls:
        if call.op != LIST:
            found.setdefault(call.key, []).append(call)
    written = list(found)
    for call in calls:
        if call.op == LIST and call.outcome == OK:
            listed = set(call.value)
            of_set = (key for key in written if key.startswith(call.key))
            for key in {**dict.fromkeys(of_set), **dict.fromkeys(call.value)}:
                found.setdefault(key, []).append(call._replace(
                    op=READ, key=key, value=THERE if key in listed else ABSENT))
    return found

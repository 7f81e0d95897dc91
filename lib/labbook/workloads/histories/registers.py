"""Check the history of one register: writes of different values, and reads. Pure functions.

Of each value two times are known. It was certainly there at `known`, the first return of a call that
wrote or read it, and somebody may still have found it there when the last such call began. So a came
before b if a was known before a call of b began. Where each of two values came before the other, a
read was out of order. A history without such a pair, and without values from nowhere, is
linearizable, and no other is (Gibbons and Korach; see the package). The read that is counted is the
one of the two that began last; but where one write had returned before the other began, it is the
read of the first one's value: who reads the second again afterwards is right.
"""

import math
from bisect import bisect_left

ANOMALIES = ("lost_writes", "stale_reads", "phantom_values", "backward_reads", "own_backward_reads")
WRITE, READ, OK, FAILED = "write", "read", "ok", "failed"


def check_register(calls, slack_s: float = 0.0, initial=None) -> dict[str, int]:
    """{anomaly: how often it was found}, as calls.metrics explains them.

    calls: of one key, in any order, with the attributes of calls.Call. `initial`: the value before
    all writes. slack_s: how far apart the clocks of two clients may be, seconds. ValueError for two
    writes of one value.
    """
    register = _Register(calls, slack_s / 2, initial)
    found, lost = dict.fromkeys(ANOMALIES, 0), set()
    found["phantom_values"] = register.phantoms
    for read in register.reads:
        if read.last:
            lost |= register.missed(read)
        else:
            found["stale_reads"] += register.acknowledged.has_later(*register.of(read))
        found["backward_reads"] += register.read.has_later(*register.of(read))
        found["own_backward_reads"] += register.read_by[read.client].has_later(*register.of(read, own=True))
    return found | {"lost_writes": len(lost)}


class _Register:
    """The calls of a register. phantoms: the number of reads of values from nowhere, which are not
    among `reads`. acknowledged, read, read_by[client]: what came when, counted from when a value's
    write was acknowledged, the value was first read, and first read by that client."""

    def __init__(self, calls, half_slack_s: float, initial):
        self._half, self._initial = half_slack_s, initial
        self._writes = writes = _writes(calls)
        reads = [call for call in calls if call.op == READ and call.outcome == OK]
        self.reads = [read for read in reads if read.value == initial or (
            read.value in writes and self._begin(writes[read.value]) <= self._end(read))]
        self.phantoms = len(reads) - len(self.reads)
        effective = [*writes.values(), *self.reads]
        self._known = {initial: -math.inf} | _first(
            (call.value, self._end(call)) for call in effective
            if call.outcome == OK and call.value != initial)
        self.acknowledged = _Order(effective, self._begin, self.overwrote, {
            value: self._end(write) for value, write in writes.items() if write.outcome == OK})
        self.read = _Order(effective, self._begin, self.overwrote, _first(
            (one.value, self._end(one)) for one in self.reads))
        self.read_by = {client: _Order(effective, self._begin, self.overwrote, _first(
            (one.value, one.returned_s) for one in self.reads if one.client == client))
            for client in {one.client for one in self.reads}}

    def of(self, read, own=False) -> tuple:
        """(value, when it was known, when the read began); `own`: by its client's clock."""
        return (read.value, self._known[read.value],
                read.invoked_s if own else self._begin(read))

    def missed(self, read) -> set:
        """Acknowledged values that came after the one that this read returned."""
        value, known, begin = self.of(read)
        began = {call.value for call in (*self._writes.values(), *self.reads)
                 if known < self._begin(call) <= begin}
        return {other for other in began - {value} if other in self._writes
                and self._writes[other].outcome == OK and self._end(self._writes[other]) < begin
                and not self.overwrote(value, other)}

    def overwrote(self, value, other) -> bool:
        """Whether the write of `value` certainly came after the one of `other`, as their times say."""
        if other == self._initial:
            return True
        before, after = self._writes.get(other), self._writes.get(value)
        return bool(before and after) and before.outcome == OK and self._end(before) < self._begin(after)

    def _begin(self, call) -> float:
        return call.invoked_s - self._half

    def _end(self, call) -> float:
        return call.returned_s + self._half


def _writes(calls) -> dict:
    """{value: its write}, of those that may have had an effect."""
    writes, tried = {}, set()
    for call in calls:
        if call.op != WRITE:
            continue
        if call.value in tried:
            raise ValueError(f"two writes of {call.value!r} to {call.key!r}")
        tried.add(call.value)
        if call.outcome != FAILED:
            writes[call.value] = call
    return writes


def _first(pairs) -> dict:
    """{value: the least time that it comes with}."""
    first = {}
    for value, time in pairs:
        first[value] = min(time, first.get(value, math.inf))
    return first


class _Order:
    """Answers whether a value was later than another, as far as was known when a read began.

    A value counts from `since[value]` on; how late it is says the last of its calls that had begun
    by then. Kept are, by time, the latest value so far, and the latest of the others.
    """

    def __init__(self, calls, begin, overwrote, since: dict):
        self._overwrote = overwrote
        # A call that begins together with a read counts: its moment is just before the read's.
        events = sorted((max(since[call.value], math.nextafter(begin(call), -math.inf)), begin(call),
                         number, call.value)
                        for number, call in enumerate(calls) if call.value in since)
        self._times, self._latest = [event[0] for event in events], []
        first = second = (-math.inf, None)
        for _, began, _, value in events:
            if value == first[1]:
                first = (max(began, first[0]), value)
            elif began > first[0]:
                first, second = (began, value), first
            elif began > second[0]:
                second = (began, value)
            self._latest.append((first, second))

    def has_later(self, value, known: float, begin: float) -> bool:
        """Whether, when a read of `value` began, another value had come after `known`."""
        at = bisect_left(self._times, begin)
        if not at:
            return False
        return any(began > known and other != value and not self._overwrote(value, other)
                   for began, other in self._latest[at - 1])

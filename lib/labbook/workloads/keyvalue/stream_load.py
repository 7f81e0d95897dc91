"""Clients that read or write pairs until they are stopped, as many as come out or at a rate."""

import time

from labbook.workloads.clients.start import clocks, notice_seconds, shares
from labbook.workloads.keyvalue.load import CONNECT_SECONDS
from labbook.workloads.keyvalue.on_host import stream_engine as host
from labbook.workloads.keyvalue.on_host.pairs import DOTS
from labbook.workloads.keyvalue.rows import Load, metrics, of_stream, together
from labbook.workloads.keyvalue.spec import CALL_SECONDS, spec_of

SETTLE_SECONDS = 0.1
END_SECONDS = 3 * CALL_SECONDS + 60  # a last call may connect, say where to, and ask; and the file
PIECE_BYTES = 1 << 24  # of a host's rows, fetched at once
PIECE_SECONDS = 120


class Stream:
    """Clients at work; `started`: when they began, seconds since the epoch by our clock."""

    def __init__(self, crew, spec: dict):
        self._crew, self._spec, self._load = crew, spec, None
        self._specs = shares(spec, spec["clients"], len(crew.hosts))
        ready_seconds = CONNECT_SECONDS + spec["seconds_at_most"] + CALL_SECONDS
        self._run(host.prepare, self._specs, ready_seconds, timeout=ready_seconds + 10)
        offsets, self._uncertainty = clocks(crew)
        self.started = time.time() + notice_seconds(crew, spec["clients"])
        self._run(host.begin, [self.started + offset for offset in offsets])
        time.sleep(max(0, self.started - time.time()) + SETTLE_SECONDS)

    def end(self) -> Load:
        """Stop after the calls under way; asked again, what it gave before."""
        if self._load is None:
            truncated = time.time() > self.started + self._spec["seconds_at_most"]
            sizes = self._run(host.end, END_SECONDS, timeout=END_SECONDS + 10)
            self._load = self._of(self._fetched(sizes), truncated)
        return self._load

    def _fetched(self, sizes) -> list[bytearray]:
        """What each host's runner wrote."""
        found = [bytearray() for _ in sizes]
        for offset in range(0, max(sizes), PIECE_BYTES):
            last = offset + PIECE_BYTES >= max(sizes)
            pieces = self._run(host.piece, offset, PIECE_BYTES, last, timeout=PIECE_SECONDS)
            for whole, piece in zip(found, pieces):
                whole += piece
        return found

    def _of(self, found, truncated: bool) -> Load:
        hosts = self._crew.hosts[:len(found)]
        frames, used = zip(*(of_stream(raw, each.name) for raw, each in zip(found, hosts)))
        rows = together(frames)
        made = metrics(rows, used, hosts)
        made["start_spread_s"] += self._uncertainty
        if rate := self._spec["rate_per_s"]:
            made["latest_s"] = latest(rows, rate, self._spec["clients"])
        return Load(rows, made | {"truncated": float(truncated)}, self.started)

    def _run(self, function, *arguments, timeout=60):
        """On the hosts that have clients; what is no list is the same for all."""
        count = len(self._specs)
        each = [(a if isinstance(a, list) else [a] * count)[:count] for a in arguments]
        return self._crew.run(function, *each, timeout=timeout)


def begin_pairs(crew, target, *, op: str, clients: int, rows: int, value_bytes: int,
                values: str = DOTS, rate_per_s: float | None = None, warmup_requests: int = 0,
                seconds_at_most: float, seed: int, consistency: str = "ONE") -> Stream:
    """The clients of `keyvalue`, who call until `end()`: returns when all call.

    With `rate_per_s` they make so many calls a second together, each client at its own times, all
    equally far apart: one that is late makes its next calls at once until it has caught up. After
    `seconds_at_most` no new call is made though nobody ends the stream; and it ends with its
    engine, and so with the lab. One stream at a time.
    """
    spec = spec_of(target, op=op, clients=clients, rows=rows, value_bytes=value_bytes,
                   values=values, rate_per_s=rate_per_s, warmup_requests=warmup_requests,
                   seconds_at_most=seconds_at_most, seed=seed, consistency=consistency)
    return Stream(crew, dict(spec, all_clients=clients))


def latest(rows, rate_per_s: float, clients: int) -> float:
    """How much later than it was due a call began at most, seconds: call i of client n was due at
    (n + i * clients) / rate_per_s."""
    turn = rows.groupby("client").cumcount()
    late = rows.started_s - (rows.client + turn * clients) / rate_per_s
    return float(late.max())

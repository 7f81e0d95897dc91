"""The driver's side of all client programs: distribute clients over hosts, correct clock offsets,
choose a common start time, collect the rows."""

import time
from contextlib import suppress
from dataclasses import dataclass

from labbook.errors import LabbookError
from labbook.lab import clock
from labbook.targets import Server
from labbook.workloads.clients.cpu import server_cpu
from labbook.workloads.clients.on_host import engine
from labbook.workloads.clients.on_host.runner import results

ASK_SECONDS = 10
ANSWER_SECONDS = 10         # for an engine's answer, beyond what it waits for itself
NOTICE = 0.1                # seconds, at least: hosts hear of a start one after the other
ONE_NOTICE = 0.02           # on a single host of this machine, whose clients hear of it together
SETTLE_SECONDS = 0.1        # after the start of a stream, for all clients to be at work
CHUNK_BYTES = 1 << 24       # of a host's rows in one message
CHUNK_SECONDS = 120
FORK_SECONDS = 60   # for all clients of a host to be forked


class Clients:
    """Clients on a crew's hosts, ready to start when this has been constructed.

    `specs`: of each host with clients, as `shares` gives them. `started`: the start, seconds since
    the epoch by our clock. `uncertainty_s`: how far two hosts' starts may be apart because their
    clock offsets are not known exactly. `server_cpu_s`: CPU seconds of the servers during `run`,
    None where they are not known.
    """

    started = uncertainty_s = server_cpu_s = None

    def __init__(self, crew, runner, specs: list[dict], ready_seconds: float):
        """`runner`: the module that runs a host's clients. RuntimeError or SystemFailure when they
        are not ready within `ready_seconds`."""
        self._crew, self.specs, self.hosts = crew, specs, crew.hosts[:len(specs)]
        self._run(engine.prepare, runner.__name__, specs, ready_seconds,
                  timeout=ready_seconds + ANSWER_SECONDS)

    def start(self) -> float:
        """Choose a time a little ahead and let all clients start then: `started`. Of clients that
        wait between phases, each call starts the next one; `started` is the first."""
        offsets, notice = self._clocks()
        start = clock.now() + notice
        self._run(engine.start, [start + offset for offset in offsets])
        if self.started is None:
            self.started = start
            clock.starts.append(start)
        return start

    def run(self, seconds: float, target: Server | None = None) -> list:
        """Start, and wait for the clients' end, up to `seconds` after the start: `results` of each
        host. `target`: servers whose CPU is measured meanwhile."""
        offsets, notice = self._clocks()
        before = server_cpu(target) if target is not None else None
        self.started = clock.now() + notice
        clock.starts.append(self.started)
        limit = self.started - clock.now() + seconds
        sizes = self._run(engine.run, [self.started + offset for offset in offsets], limit,
                          timeout=limit + ANSWER_SECONDS)
        if before is not None:      # without the time in which the results are fetched
            self.server_cpu_s = server_cpu(target) - before
        return self._collect(sizes)

    def progress(self, seconds: float, answer_seconds: float) -> list[tuple[int | None, bool]]:
        """Of each host (last number printed within `seconds`, whether its clients run still)."""
        return self._run(engine.progress, seconds, timeout=seconds + answer_seconds)

    def finish(self, seconds: float) -> list:
        """Stop the clients, which may take `seconds`: `results` of each host."""
        return self._collect(self._run(engine.finish, seconds, timeout=seconds + ANSWER_SECONDS))

    def clear(self) -> None:
        """Kill the clients."""
        self._run(engine.clear)

    def _clocks(self) -> tuple[list[float], float]:
        """(clock offset of each host, seconds of notice for a start); sets `uncertainty_s`."""
        offsets, self.uncertainty_s = clocks(self._crew)
        count = sum(spec["clients"] for spec in self.specs)
        one = len(self.specs) == 1 and not self.uncertainty_s
        return offsets[:len(self.specs)], notice_seconds(self._crew, count, ONE_NOTICE if one else NOTICE)

    def _collect(self, sizes: list[int]) -> list:
        raw = [bytearray() for _ in sizes]
        for offset in range(0, max(sizes), CHUNK_BYTES):
            last = offset + CHUNK_BYTES >= max(sizes)
            chunks = self._run(engine.chunk, offset, CHUNK_BYTES, last, timeout=CHUNK_SECONDS)
            for whole, chunk in zip(raw, chunks):
                whole += chunk
        return [results(of_host) for of_host in raw]

    def _run(self, function, *arguments, timeout=60) -> list:
        """On the hosts with clients; an argument that is no list is the same for all of them."""
        count = len(self.specs)
        each = [a if isinstance(a, list) else [a] * count for a in arguments]
        return self._crew.run(function, *each, timeout=timeout)


class Stream:
    """Clients at work until `end()`; `started`: seconds since the epoch by our clock.

    As a context manager it ends them at the latest with its block.
    """

    def __init__(self, clients: Clients, seconds_at_most: float, finish):
        """Returns when all have started. `finish(truncated)` stops them and gives their Load."""
        self._finish, self._seconds, self._load = finish, seconds_at_most, None
        self._clients, self._made = clients, [0] * len(clients.hosts)
        self.started = clients.start()
        ahead = self.started - clock.now()
        self._zero = time.monotonic() + ahead
        time.sleep(max(0, ahead) + SETTLE_SECONDS)

    def since_start(self) -> float:
        """Seconds since the clients started, also if the clock was set meanwhile."""
        return time.monotonic() - self._zero

    def calls_made(self, seconds: float) -> int:
        """How many calls the clients have made, as their hosts print it next, each within `seconds`; of clients
        that print how many."""
        found = self._clients.progress(seconds, ANSWER_SECONDS)
        self._made = [before if number is None else number for before, (number, _) in zip(self._made, found)]
        return sum(self._made)

    def end(self):
        """Stop after the calls under way: the Load, which further calls return again."""
        if self._load is None:
            self._load = self._finish(float(self.since_start() > self._seconds))
        return self._load

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()
        else:
            with suppress(LabbookError, RuntimeError):  # the first error is the one to report
                self.end()


@dataclass(frozen=True)
class OfOneHost:
    """What is known of the clients of one of several hosts; the servers' CPU is not."""

    host: object
    started: float
    uncertainty_s: float
    server_cpu_s = None

    @property
    def hosts(self) -> list:
        return [self.host]


def side_by_side(crew, runner, specs: list[dict], ready_seconds: float, seconds: float) -> list[tuple]:
    """Run each spec on a host of its own, the first on the crew's first, all at the same time.

    The times are those of Clients and its run. Returns (OfOneHost, its `results`) of each.
    """
    clients = Clients(crew, runner, specs, ready_seconds)
    return of_each_host(clients, clients.run(seconds))


def of_each_host(clients: Clients, found: list) -> list[tuple]:
    """(OfOneHost, its `results`) of each host of clients that have ended."""
    return [(OfOneHost(host, clients.started, clients.uncertainty_s), of_host)
            for host, of_host in zip(clients.hosts, found)]


def shares(spec: dict, hosts: int) -> list[dict]:
    """Spread spec["clients"] evenly over hosts: the spec of each host that gets any, with its
    `clients`, `first_client` and `all_clients`."""
    clients = spec["clients"]
    least, more = divmod(clients, hosts)
    counts = [least + (i < more) for i in range(hosts)]
    return [dict(spec, clients=n, first_client=sum(counts[:i]), all_clients=clients)
            for i, n in enumerate(counts) if n]


def clocks(crew) -> tuple[list[float], float]:
    """(how far each host's clock is ahead of ours, seconds; how far two starts by these clocks may
    be apart because the offsets are not known exactly)."""
    measured = getattr(crew, "clock_offsets", None)
    found = measured() if measured else [(0.0, 0.0)] * len(crew.hosts)
    return [offset for offset, _ in found], 2 * max(uncertainty for _, uncertainty in found)


def notice_seconds(crew, clients: int, least: float) -> float:
    """How long ahead a start time is chosen, so that it is known on every host by then: `least`, and what the
    way there takes."""
    begin = time.monotonic()
    crew.run(time.time, timeout=ASK_SECONDS)
    return least + 0.001 * clients + 2 * (time.monotonic() - begin)

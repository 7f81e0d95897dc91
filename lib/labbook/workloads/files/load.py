"""Clients that make, look up, rename and delete files on mounted file systems: a row an operation."""

import time
import uuid
from contextlib import suppress

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.workloads.clients.start import clocks, notice_seconds, shares
from labbook.workloads.files.on_host import engine as host
from labbook.workloads.files.on_host.runner import AT_END, KILLED_SECONDS
from labbook.workloads.files.rows import Load, metrics, of_host, phases_of, together
from labbook.workloads.keyvalue.stream_load import PIECE_BYTES, PIECE_SECONDS

__all__ = ["PATTERNS", "PHASES", "Load", "Stream", "begin_metadata", "metadata"]
# of each pattern, in their order; rows and metrics are named after them
PHASES = {
    "bonnie": ("sequential_create", "sequential_stat", "sequential_delete",
               "random_create", "random_stat", "random_delete"),
    "mixed": ("mixed",),
    "hot": ("create", "stat", "delete"),
    "deep": ("mkdir", "create", "stat", "readdir", "delete"),
    "wide": ("mkdir", "create", "stat", "readdir", "delete"),
    "renames": ("rename", "rename_across"),
}
PATTERNS = tuple(PHASES)
CALL_SECONDS = 60     # for a call that is under way when all is over to come back
READY_SECONDS = 120   # for the folders, and the files that are there before, to be made
FILE_SECONDS = 0.01   # for each of these files
SETTLE_SECONDS = 0.1
WRITE_SECONDS = 60


def metadata(crew, paths, *, pattern: str, clients: int = 1, directories: int, files: int,
             shared: bool = False, phase_s: float = 0, pause_s: float = 0, homes=None, seed: int,
             seconds_at_most: float, call_seconds: float = CALL_SECONDS) -> Load:
    """Let `clients` clients, spread evenly over the crew's hosts, go through the pattern's phases.

    `paths`: of each client host the mounted folder, or a list of several over which its clients go
    round. Each client has `directories` of `files` empty files each; with `shared` all work in the
    same directories ("hot": always one directory, shared). All begin a phase together. A phase that
    is over sooner than `phase_s` goes on: a stat, readdir or rename with further passes, mixed
    calls with more of them; a create (of trees: mkdir) with further sets of as many directories,
    which the phases behind it then go through as well. For `pause_s` before each phase but the first
    nothing is called, so that what is counted meanwhile tells one from the other. `homes`, for
    "bonnie": folders below each path, which are there, in which directory i is made in turn, that of
    client n's own in the (i+n)th. After `seconds_at_most` no new call is made; one that does not
    come back within `call_seconds` after that is a row with the error "blocked".
    """
    if homes and pattern != "bonnie":
        raise InputError(f"{pattern!r} has folders of its own", key="homes", allowed="for bonnie")
    clients = _Clients(crew, paths, _spec(
        pattern=pattern, clients=clients, directories=directories, files=files, shared=shared,
        phase_s=phase_s, pins=None, homes=homes, rate_per_s=None, seed=seed,
        seconds_at_most=seconds_at_most, call_seconds=call_seconds))
    clients.begin()
    clients.lead(pause_s)
    return clients.end()


class Stream:
    """Clients at work; `started`: when they began, seconds since the epoch by our clock; `folder`:
    where their files are, below each path."""

    def __init__(self, clients: "_Clients"):
        self._clients, self._load, self.folder = clients, None, clients.folder
        self.started = clients.begin()
        time.sleep(max(0, self.started - time.time()) + SETTLE_SECONDS)

    def end(self) -> Load:
        """Stop after the calls under way; asked again, what it gave before. A call that does not
        come back within `call_seconds` is a row: error "blocked", its length so far, and its
        process is left behind."""
        if self._load is None:
            self._load = self._clients.end()
        return self._load

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()
        else:
            with suppress(LabbookError, RuntimeError):  # what went wrong first is what must be told
                self.end()


def begin_metadata(crew, paths, *, pattern: str = "mixed", clients: int = 1, directories: int,
                   files: int, shared: bool = False, pins=None, rate_per_s: float | None = None,
                   seed: int, seconds_at_most: float, call_seconds: float = CALL_SECONDS) -> Stream:
    """The same clients, who make their files first, and then call until `end()`: returns when all
    call. With `rate_per_s` they make so many calls a second together. The pattern has one phase.
    `pins`: ranks to which directory i is pinned in turn (ceph.dir.pin), that of client n's own to the
    (i+n)th; a server sees to that some seconds later.
    After `seconds_at_most` no new call is made though nobody ends the stream."""
    if len(PHASES.get(pattern, "?")) != 1:
        raise InputError(f"{pattern!r} is not allowed in a stream", key="pattern",
                         allowed=[p for p, phases in PHASES.items() if len(phases) == 1])
    if rate_per_s is not None and rate_per_s <= 0:
        raise InputError(f"{rate_per_s!r} is no rate", key="rate_per_s", allowed="more than 0")
    return Stream(_Clients(crew, paths, _spec(
        pattern=pattern, clients=clients, directories=directories, files=files, shared=shared,
        phase_s=seconds_at_most, pins=pins, homes=None, rate_per_s=rate_per_s, seed=seed,
        seconds_at_most=seconds_at_most, call_seconds=call_seconds)))


class _Clients:
    """Clients on the crew's hosts, ready for their first phase when this has been made."""

    def __init__(self, crew, paths, spec: dict):
        self._crew, self._spec = crew, spec
        self.folder = spec["folder"]
        places = _places(paths, len(crew.hosts))
        self._specs = [dict(of_host, paths=of_paths) for of_host, of_paths in
                       zip(shares(spec, spec["clients"], len(places)), places)]
        ready = READY_SECONDS + FILE_SECONDS * spec["files"] * spec["directories"] * spec["clients"]
        self._run(host.prepare, self._specs, ready, timeout=ready + 10)

    def begin(self) -> float:
        """When they begin their first phase, by our clock."""
        self.started = self._next()
        return self.started

    def lead(self, pause_s: float) -> None:
        """Let them begin each phase together; returns when they have ended, or do not come back."""
        until = self.started + self._spec["seconds_at_most"]
        for _ in self._spec["phases"]:
            seconds = max(0, until - time.time()) + SETTLE_SECONDS
            heard = self._run(host.await_phase, seconds, timeout=seconds + 30)
            if AT_END in heard or None in heard:
                return
            time.sleep(pause_s)
            self._next()

    def end(self) -> Load:
        truncated = time.time() > self.started + self._spec["seconds_at_most"]
        seconds = self._spec["call_seconds"] + KILLED_SECONDS + WRITE_SECONDS
        sizes = self._run(host.end, seconds, timeout=seconds + 10)
        hosts, names = self._crew.hosts[:len(sizes)], self._spec["phases"]
        frames, used = zip(*(of_host(raw, names, each.name)
                             for raw, each in zip(self._fetched(sizes), hosts)))
        rows = together(frames)
        if rows.empty:
            raise SystemFailure("the metadata clients made no calls")
        phases = phases_of(rows)
        made = metrics(rows, phases, names, used, hosts)
        made["start_spread_s"] += self._uncertainty
        return Load(rows, phases, made | {"truncated": float(truncated)}, self.started, self.folder)

    def _next(self) -> float:
        """Tell all when to begin: that time."""
        offsets, self._uncertainty = clocks(self._crew)
        start = time.time() + notice_seconds(self._crew, self._spec["clients"])
        self._run(host.begin, [start + offset for offset in offsets])
        return start

    def _fetched(self, sizes) -> list[bytearray]:
        """What each host's runner wrote."""
        found = [bytearray() for _ in sizes]
        for offset in range(0, max(sizes), PIECE_BYTES):
            last = offset + PIECE_BYTES >= max(sizes)
            for whole, piece in zip(found, self._run(host.piece, offset, PIECE_BYTES, last,
                                                     timeout=PIECE_SECONDS)):
                whole += piece
        return found

    def _run(self, function, *arguments, timeout=60):
        """On the hosts that have clients; what is no list is the same for all."""
        count = len(self._specs)
        each = [(a if isinstance(a, list) else [a] * count)[:count] for a in arguments]
        return self._crew.run(function, *each, timeout=timeout)


def _places(paths, hosts: int) -> list[list[str]]:
    """Of each host with clients the folders in which they work."""
    if isinstance(paths, str) or not 1 <= len(paths) <= hosts:
        raise InputError(f"{paths!r}: one for each client host is wanted", key="paths",
                         allowed=f"1 to {hosts}")
    places = [[str(of) for of in (each if isinstance(each, (list, tuple)) else [each])]
              for each in paths]
    if not all(places):
        raise InputError("a client host without a path", key="paths")
    return places


def _spec(**given) -> dict:
    for key, least in (("clients", 1), ("directories", 1), ("files", 1), ("phase_s", 0)):
        if given[key] < least:
            raise InputError(f"{given[key]!r} is too few", key=key, allowed=f"{least} and more")
    for key in ("seconds_at_most", "call_seconds"):
        if given[key] <= 0:
            raise InputError(f"{given[key]!r} s leave no time", key=key, allowed="more than 0")
    if given["pattern"] not in PHASES:
        raise InputError(f"{given['pattern']!r} is not allowed", key="pattern", allowed=PATTERNS)
    lists = {key: list(given[key]) if given[key] else None for key in ("pins", "homes")}
    return dict(given, **lists, all_clients=given["clients"],
                phases=PHASES[given["pattern"]], folder=f"labbook-{uuid.uuid4().hex[:8]}")

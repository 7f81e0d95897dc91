"""Clients that create, stat, rename and delete files on mounted file systems: a row an operation."""

import time
import uuid

from labbook.errors import InputError, SystemFailure
from labbook.lab import clock
from labbook.workloads.clients import driver as clients_driver
from labbook.workloads.clients.driver import SETTLE_SECONDS, Clients, shares
from labbook.workloads.clients.rows import from_due, rate_metrics, together
from labbook.workloads.files.on_host import runner
from labbook.workloads.files.on_host.client import MOST_ROWS
from labbook.workloads.files.on_host.runner import AT_END, KILLED_SECONDS
from labbook.workloads.files.rows import Load, metrics_of, of_host, phases_of

__all__ = ["PATTERNS", "PHASES", "Load", "Stream", "begin_metadata", "metadata"]
# The phases of each pattern, in order; rows and metrics are named after them.
PHASES = {
    "bonnie": ("sequential_create", "sequential_stat", "sequential_delete",
               "random_create", "random_stat", "random_delete"),
    "remount": tuple(f"{order}_{op}" for order in ("sequential", "random")
                     for op in ("create", "stat", "reread", "delete")),
    "remount_in_order": tuple(f"sequential_{op}" for op in ("create", "stat", "reread", "delete")),
    "creates": ("sequential_create",),
    "mixed": ("mixed",),
    "hot": ("create", "stat", "delete"),
    "deep": ("mkdir", "create", "stat", "readdir", "delete"),
    "wide": ("mkdir", "create", "stat", "readdir", "delete"),
    "renames": ("rename", "rename_across"),
}
PATTERNS = tuple(PHASES)
CALL_SECONDS = 60     # for a call that is under way at the end to return
READY_SECONDS = 120   # for making folders, and files that must exist before the start
FILE_SECONDS = 0.01   # for each of these files
WRITE_SECONDS = 60


def metadata(crew, paths, *, pattern: str, clients: int = 1, directories: int, files: int,
             shared: bool = False, phase_s: float = 0, pause_s: float = 0, homes=None, fresh=(),
             before_phase=None, seed: int, seconds_at_most: float, call_seconds: float = CALL_SECONDS) -> Load:
    """Let `clients` clients, spread evenly over the crew's hosts, go through the pattern's phases.

    `paths`: one item for each client host: its mounted folder, or a list of several, which its
    clients take in turn. Each client has `directories` of `files` empty files each; with `shared`
    all work in the same directories ("hot": always one directory, shared). All begin a phase
    together. A phase that ends before `phase_s` is repeated: stat, readdir and rename by further
    passes, mixed by further calls, create by further sets of as many directories (of trees: by further trees, whose
    mkdir is a part of it), which the later phases go through as well. Nothing is called for `pause_s` before each phase but
    the first, so that counters read then can be assigned to a phase. `homes`, for "bonnie": existing
    folders below each path, in which directories are made in turn: directory i in the i-th, of
    client n's own directories in the (i+n)th. After `seconds_at_most` no new call is made; one that
    does not return within `call_seconds` after that is a row with the error "blocked".

    "remount" is "bonnie" with a further reading of all files in each order, and what follows, through other
    mounts ("remount_in_order" is its first half): `fresh` has the mounts of each rereading, as `paths` has the first ones. `before_phase(phase)` is
    called in the pause before a phase; the clients have left the earlier mounts then.
    """
    if homes and pattern != "bonnie":
        raise InputError(f"{pattern!r} has folders of its own", key="homes", allowed="for bonnie")
    fresh = [list(stage) for stage in fresh]
    wanted = sum(phase.endswith("reread") for phase in PHASES.get(pattern, ()))
    if len(fresh) != wanted:
        raise InputError(f"{len(fresh)} lists of fresh mounts", key="fresh", allowed=f"{wanted} for {pattern!r}")
    clients = _Clients(crew, paths, _spec(
        pattern=pattern, clients=clients, directories=directories, files=files, shared=shared,
        phase_s=phase_s, pins=None, homes=homes, rate_per_s=None, seed=seed,
        seconds_at_most=seconds_at_most, call_seconds=call_seconds), fresh)
    return clients.end(float(clients.lead(pause_s, before_phase)))


class Stream(clients_driver.Stream):
    """Clients at work until `end()`. `folder`: where their files are, below each path. A call that
    does not return within `call_seconds` of the end is a row: error "blocked", its length so far;
    its process is left behind."""

    def __init__(self, clients: "_Clients"):
        self.folder = clients.folder
        super().__init__(clients.clients, clients.seconds, clients.end)


def begin_metadata(crew, paths, *, pattern: str = "mixed", clients: int = 1, directories: int,
                   files: int, shared: bool = False, pins=None, rate_per_s: float | None = None,
                   seed: int, seconds_at_most: float, call_seconds: float = CALL_SECONDS) -> Stream:
    """The same clients, who make their files first and then call until `end()`: returns when all call. The pattern must
    have one phase. With `rate_per_s` they make that many calls a second together, and times count as in
    keyvalue.load.begin_pairs. `pins`: ranks to which directories are pinned in turn (ceph.dir.pin): directory i to the
    i-th, of client n's own directories to the (i+n)th; servers follow some seconds later. After `seconds_at_most` no
    new call is made though nobody ends the stream."""
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
    """Clients on the crew's hosts, ready for their first phase when this has been constructed."""

    def __init__(self, crew, paths, spec: dict, fresh=()):
        self._spec, self.folder, self.seconds = spec, spec["folder"], spec["seconds_at_most"]
        places = work_places(paths, len(crew.hosts))
        further = [work_places(stage, len(crew.hosts)) for stage in fresh]
        specs = [dict(of_host, paths=of_paths, fresh=[stage[number] for stage in further])
                 for number, (of_host, of_paths) in enumerate(zip(shares(spec, len(places)), places))]
        self.clients = Clients(crew, runner, specs, READY_SECONDS + FILE_SECONDS * (
            spec["files"] * spec["directories"] * spec["clients"]))

    def lead(self, pause_s: float, before_phase=None) -> bool:
        """Let all begin each phase together; returns when they have ended, or do not answer:
        whether the time was up. `before_phase(phase)` is called in the pause before a phase."""
        start = self.clients.start()
        until = time.monotonic() + start - clock.now() + self.seconds
        for phase in [*self._spec["phases"][1:], None]:
            seconds = max(0, until - time.monotonic()) + SETTLE_SECONDS
            found = self.clients.progress(seconds, 30)
            if not all(running and number not in (None, AT_END) for number, running in found):
                break
            time.sleep(pause_s)
            if before_phase is not None:
                before_phase(phase)
            self.clients.start()
        return time.monotonic() > until

    def end(self, truncated: float) -> Load:
        names = self._spec["phases"]
        found = self.clients.finish(self._spec["call_seconds"] + KILLED_SECONDS + WRITE_SECONDS)
        if full := [head["client"] for heads, _ in found for head in heads if head["rows"] >= MOST_ROWS]:
            raise SystemFailure(f"client {full[0]} stopped early, after {MOST_ROWS} calls; no more are recorded of "
                                "one: take a shorter time, fewer files or more clients")
        rows = together([of_host(heads, raw, names, host.name)
                         for (heads, raw), host in zip(found, self.clients.hosts)])
        if rows.empty:
            raise SystemFailure("the metadata clients made no calls")
        rate, clients = self._spec["rate_per_s"], self._spec["clients"]
        if rate:
            rows = from_due(rows, rate, clients)
        phases = phases_of(rows)
        used = [sum(head["cpu_s"] for head in heads) for heads, _ in found]
        made = metrics_of(rows, phases, names, used, self.clients) | {"truncated": float(truncated)}
        if rate:
            made |= rate_metrics(rows, rate, clients)
        return Load(rows, phases, made, self.clients.started, self.folder)


def work_places(paths, hosts: int) -> list[list[str]]:
    """The folders in which the clients work, of each host with clients."""
    if isinstance(paths, str) or not 1 <= len(paths) <= hosts:
        raise InputError(f"{paths!r}: one item for each client host is needed", key="paths",
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
    return dict(given, **lists,
                phases=PHASES[given["pattern"]], folder=f"labbook-{uuid.uuid4().hex[:8]}")

"""Clients that make, look up, rename and delete files on mounted file systems: a row an operation."""

from dataclasses import dataclass

import pandas as pd

PATTERNS = ("bonnie", "mixed", "hot", "deep", "wide", "renames")
# of each pattern, in their order; rows and measures are named after them
PHASES = {
    "bonnie": ("sequential_create", "sequential_stat", "sequential_delete",
               "random_create", "random_stat", "random_delete"),
    "mixed": ("mixed",),
    "hot": ("create", "stat", "delete"),
    "deep": ("mkdir", "create", "stat", "readdir", "delete"),
    "wide": ("mkdir", "create", "stat", "readdir", "delete"),
    "renames": ("rename", "rename_across"),
}


@dataclass(frozen=True)
class Load:
    """`rows`: client, host, phase, op, started_s, seconds, ok, error.

    `op` is "create", "stat", "unlink", "rename", "readdir", "mkdir" or "rmdir"; `error` the
    errno's name ("ENOENT"), "blocked" for a call that was cut off, "" else. `phases`: a row a phase
    that began: phase, started_s, ended_s, operations, errors, rate_per_s (of its own operation,
    such as the unlinks of a delete; from the first one's begin to the last one's end). `measures`:
    {phase}_per_s and {phase}_p99_ms of each phase (NaN where it was not come to), rate_per_s (of
    all), longest_s, errors, blocked, truncated (1 when the time limit ended it), start_spread_s,
    clients_cpu_share, clients_cpu_us_per_call. `started`: seconds since the epoch, by our clock, at
    which started_s is 0.
    """

    rows: pd.DataFrame
    phases: pd.DataFrame
    measures: dict
    started: float


def metadata(crew, paths, *, pattern: str, clients: int = 1, directories: int, files: int,
             shared: bool = False, phase_s: float = 0, pins=None, seed: int,
             seconds_at_most: float, call_seconds: float = 60) -> Load:
    """Let `clients` clients, spread evenly over the crew's hosts, go through the pattern's phases.

    `paths`: of each client host the mounted folder, or a list of several over which its clients go
    round. Each client has `directories` of `files` empty files each; with `shared` all work in the
    same directories. All begin a phase together. A phase that is over sooner than `phase_s` goes
    on: a stat with further passes; a create with further sets of as many directories, which the
    delete then has to go through as well. `pins`: ranks to which directory i is pinned in turn
    (ceph.dir.pin). All that is made is below one folder of each path, and taken away again.
    """
    raise NotImplementedError


class Stream:
    """Clients at work; `started`: when they began, seconds since the epoch by our clock."""

    started: float

    def end(self) -> Load:
        """Stop after the calls under way; asked again, what it gave before. A call that does not
        come back within the stream's `call_seconds` is a row: error "blocked", its length so far,
        and its process is left behind."""
        raise NotImplementedError


def begin_metadata(crew, paths, *, pattern: str = "mixed", clients: int = 1, directories: int,
                   files: int, shared: bool = False, pins=None, rate_per_s: float | None = None,
                   seed: int, seconds_at_most: float, call_seconds: float = 60) -> Stream:
    """The same clients, who make the files first and then call ("mixed") until `end()`: returns
    when all call. With `rate_per_s` they make so many calls a second together."""
    raise NotImplementedError

"""Which names each directory must have after a stream of mixed calls. Pure functions.

For clients with directories of their own, whose every create, unlink and rename is a row; a rename
stays in its directory. What a client called is found by going through its plan again, which is drawn from
a seed. Whether a failed call had an effect is unknown, so its names may be there or not.
"""

import json
from dataclasses import dataclass, field

import pandas as pd

from labbook.workloads.files.on_host.calls import CREATE, OPS, RENAME, UNLINK
from labbook.workloads.files.on_host.patterns import Mixed

PHASE = "mixed"


@dataclass
class Names:
    """Names of one directory: those that must be in it, those that may be, and pairs of which one must be, since it is
    not known whether the one was renamed to the other."""

    sure: set = field(default_factory=set)
    unknown: set = field(default_factory=set)
    either: list = field(default_factory=list)

    def made(self, name: str, ok: bool) -> None:
        (self.sure if ok else self.unknown).add(name)
        self._called(name)

    def gone(self, name: str, ok: bool) -> None:
        self.unknown.discard(name) if ok else self.unknown.add(name)
        self.sure.discard(name)
        self._called(name)

    def renamed(self, name: str, new: str, ok: bool) -> None:
        was_there = name in self.sure
        self.gone(name, ok)
        self.made(new, ok)
        if was_there and not ok:
            self.either.append({name, new})

    def _called(self, name):
        self.either = [pair for pair in self.either if name not in pair]


def places(clients: int, directories: int) -> dict[str, tuple[int, int]]:
    """{path below the stream's folder: (client, number)} of each directory of the clients."""
    return {f"{PHASE}-{client}.0/{number:05d}": (client, number)
            for client in range(clients) for number in range(directories)}


def expected(rows: pd.DataFrame, clients: int, directories: int, files: int, seed: int) -> dict[tuple, Names]:
    """{(client, directory): its Names} after the calls of `rows`.

    `rows`: as of begin_metadata's Load; the other arguments are those of begin_metadata. ValueError for rows of
    another plan.
    """
    spec = {"path": "", "folder": "", "directories": directories, "files": files, "shared": False, "pins": None,
            "homes": None, "seed": seed}
    found = {}
    for client in range(clients):
        mine = rows[rows["client"] == client]
        of_client = _replayed(Mixed(spec, client), zip(mine["op"], mine["directory"], mine["ok"]))
        found |= {(client, number): of_client.get(number, Names()) for number in range(directories)}
    return found


def _replayed(plan: Mixed, rows) -> dict[int, Names]:
    """{directory: its Names} after a plan's calls, of which `rows` has (op, directory, ok) in their order."""
    found, answer, before = {}, None, plan.before(PHASE)
    while (call := _next(before, answer)) is not None:
        code, number, _, name, _ = call
        answer = True
        if code == CREATE:
            _noted(found, code, number, name, None, True)
    calls, answer = plan.calls(PHASE, lambda: True), None
    for op, directory, ok in rows:
        code, number, _, name, new = _next(calls, answer)
        if (OPS[code], number) != (op, directory):
            raise ValueError(f"{op} in directory {directory} is not of this plan, which has {OPS[code]} in {number}")
        _noted(found, code, number, name, new, bool(ok))
        answer = bool(ok) or None
    return found


def _next(calls, answer):
    """The next call of a plan; None at its end."""
    try:
        return calls.send(answer)
    except StopIteration:
        return None


def _noted(found: dict[int, Names], code: int, number: int, name: str, new: str | None, ok: bool) -> None:
    """Note what a call made and removed."""
    names = found.setdefault(number, Names())
    if code == RENAME:
        names.renamed(_last(name), _last(new), ok)
    elif code == UNLINK:
        names.gone(_last(name), ok)
    elif code == CREATE:
        names.made(_last(name), ok)


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def off(wanted: dict[tuple, Names], entries: dict) -> dict[str, float]:
    """How far directories are from what is expected.

    `entries`: {(client, directory): JSON of the names in it, None where it does not exist}.
    load_names: names that exist; load_lost: names that are missing; load_back: names that were deleted or never
    made, and exist; load_off: lost and back together.
    """
    lost = back = there = 0
    for place, names in wanted.items():
        listed = set(json.loads(entries[place])) if isinstance(entries[place], str) else set()
        there += len(listed)
        lost += len(names.sure - listed) + sum(not pair & listed for pair in names.either)
        back += len(listed - names.sure - names.unknown)
    return {"load_names": float(there), "load_lost": float(lost), "load_back": float(back),
            "load_off": float(lost + back)}

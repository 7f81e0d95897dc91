"""All metadata of files as one client sees them, and how two such inventories differ.

An inventory is a table, a row a name: name (relative to the mounted folder), state ("there",
"missing": ENOENT; "unobtainable": no answer in time, EIO and the like; "not asked": there was no
time left to), error (errno's name, "timeout", or why it was not asked; "" else), seconds (what its
calls took), and ATTRIBUTES where it is there: kind ("file", "directory", "link", "other"), ino, mode,
uid, gid, nlink, size, mtime_ns, ctime_ns, xattrs (JSON), target (of a link), entries (of a
directory: JSON of its sorted names).
"""

import json
import shlex
import uuid
from contextlib import suppress

import pandas as pd

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.workloads.files.on_host import inventory as on_host
from labbook.workloads.files.on_host.inventory import MISSING, NOT_ASKED, THERE, UNOBTAINABLE

__all__ = ["ATTRIBUTES", "MISSING", "NOT_ASKED", "THERE", "UNOBTAINABLE", "compare", "take",
           "verdicts"]
NUMBERS = ("ino", "mode", "uid", "gid", "nlink", "size", "mtime_ns", "ctime_ns")
ATTRIBUTES = ("kind", *NUMBERS, "xattrs", "target", "entries")
COLUMNS = ("name", "state", "error", "seconds", *ATTRIBUTES)
RIGHT, WRONG, UNASKED = "right", "wrong", "unasked"
MORE_SECONDS = 30   # beyond the time for asking: to start, and to write what was found


def take(host, path: str, names=None, *, call_seconds: float = 30, seconds: float = 90
         ) -> pd.DataFrame:
    """The inventory of `names` below `path` on a client host; of all that is below it, where None.

    Asked by a process on the host that can be left behind: a name whose calls have no answer within
    `call_seconds` is unobtainable; so are others of its directory once several of them are, while
    other directories are asked on. For `seconds` names are asked for; what is left then was not
    asked. SystemFailure when the process fails.
    """
    spec = {"path": str(path), "names": None if names is None else list(dict.fromkeys(names)),
            "call_seconds": call_seconds, "seconds": seconds}
    process_name = f"inventory-{uuid.uuid4().hex[:8]}"
    given, found = f"{process_name}.json", f"{process_name}.out"
    try:
        host.put(json.dumps(spec), given)
        process = host.start(process_name, shlex.join((
            host.python, "-m", on_host.__name__, given, found)),
            env={"PYTHONDONTWRITEBYTECODE": "1"})
        host.wait_for(lambda: not process.alive(), f"an inventory of {path}",
                      seconds + call_seconds + MORE_SECONDS, process)
        if process.exit_code():
            raise SystemFailure(f"{host.name}: no inventory of {path}", log=process.log_tail())
        rows = json.loads(host.get(found))
    finally:
        with suppress(LabbookError):   # what went wrong first is what must be told
            host.run(f"rm -rf {given} {found} processes/{process_name}")
    return table(rows)


def table(rows: list[dict]) -> pd.DataFrame:
    """Of what the runner found; whole numbers stay exact, also beside names that have none."""
    found = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    return found.astype({**{name: "Int64" for name in NUMBERS}, "seconds": float})


def verdicts(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Of each name of `before`: name, verdict (RIGHT, all ATTRIBUTES equal; WRONG; MISSING;
    UNOBTAINABLE; UNASKED), differing (the attributes that are not equal, by commas), error.

    InputError where a name was not there before, or was not asked for after.
    """
    before, after = (inventory.set_index("name") for inventory in (before, after))
    for wrong, what in ((before.index[before.state != THERE], "not there before"),
                        (before.index.difference(after.index), "not asked for afterwards")):
        if len(wrong):
            raise InputError(f"{len(wrong)} names were {what}, such as {wrong[0]!r}", key="names")
    after = after.loc[before.index]
    unlike = pd.DataFrame({name: _unlike(before[name], after[name]) for name in ATTRIBUTES})
    there = after.state == THERE
    verdict = after.state.replace(NOT_ASKED, UNASKED).mask(there & unlike.any(axis=1), WRONG).mask(
        there & ~unlike.any(axis=1), RIGHT)
    differing = [",".join(unlike.columns[row]) if asked else ""
                 for row, asked in zip(unlike.to_numpy(), there)]
    return pd.DataFrame({"name": before.index, "verdict": verdict.to_numpy(),
                         "differing": differing, "error": after.error.to_numpy()}, dtype=object)


def compare(before: pd.DataFrame, after: pd.DataFrame) -> dict:
    """How the names of `before` are in `after`: how many are right, wrong, missing, unobtainable,
    unasked; `asked`: of how many; `differing`: {attribute: in how many names that are there}."""
    found = verdicts(before, after)
    differing = found.differing[found.differing != ""].str.split(",").explode().value_counts()
    return {**{verdict: int((found.verdict == verdict).sum())
               for verdict in (RIGHT, WRONG, MISSING, UNOBTAINABLE, UNASKED)},
            "asked": len(found), "differing": {name: int(differing[name]) for name in ATTRIBUTES
                                               if name in differing}}


def _unlike(one: pd.Series, other: pd.Series) -> pd.Series:
    """Where they differ; two that are not there are alike."""
    return ~((one == other).fillna(False).astype(bool) | (one.isna() & other.isna()))

"""Inventories: all metadata of files as one client sees them, and how two inventories differ.

An inventory is a table with a row a name: name (relative to the mounted folder), state ("there";
"missing": ENOENT; "unobtainable": no answer in time, EIO and the like; "not asked": no time was
left), error (errno's name, "timeout", or why it was not asked; "" else), seconds (what its calls
took) and, of a name that is there, ATTRIBUTES: kind ("file", "directory", "link", "other"), ino, mode,
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
MORE_SECONDS = 30   # beyond the time for asking: to start, and to write the rows


def take(host, path: str, names=None, *, call_seconds: float = 30, seconds: float = 90
         ) -> pd.DataFrame:
    """The inventory of `names` below `path` on a client host; None: of everything below it.

    A process on the host asks, which can be left behind when it hangs. A name whose calls have no
    answer within `call_seconds` is unobtainable; so are the others of its directory once several of
    them are, while other directories are still asked. After `seconds` the remaining names are not
    asked. SystemFailure when the process fails.
    """
    spec = {"path": str(path), "names": None if names is None else list(dict.fromkeys(names)),
            "call_seconds": call_seconds, "seconds": seconds}
    process_name = f"inventory-{uuid.uuid4().hex[:8]}"
    spec_file, out = f"{process_name}.json", f"{process_name}.out"
    try:
        host.put(json.dumps(spec), spec_file)
        process = host.start(process_name, shlex.join((
            host.python, "-m", on_host.__name__, spec_file, out)),
            env={"PYTHONDONTWRITEBYTECODE": "1"})
        host.wait_for(lambda: not process.alive(), f"an inventory of {path}",
                      seconds + call_seconds + MORE_SECONDS, process)
        if process.exit_code():
            raise SystemFailure(f"{host.name}: no inventory of {path}", log=process.log_tail())
        rows = json.loads(host.get(out))
    finally:
        with suppress(LabbookError):   # the first error is the one to report
            host.run(f"rm -rf {spec_file} {out} processes/{process_name}")
    return table(rows)


def table(rows: list[dict]) -> pd.DataFrame:
    """The inventory from the runner's rows; integers stay exact beside missing ones."""
    found = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    return found.astype({**{name: "Int64" for name in NUMBERS}, "seconds": float})


def verdicts(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """A row for each name of `before`: name, verdict (RIGHT: all ATTRIBUTES are equal; WRONG;
    MISSING; UNOBTAINABLE; UNASKED), differing (attributes that are not equal, separated by commas),
    error.

    InputError when a name was not there before, or is not in `after`.
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
    differing = [",".join(unlike.columns[row]) if is_there else ""
                 for row, is_there in zip(unlike.to_numpy(), there)]
    return pd.DataFrame({"name": before.index, "verdict": verdict.to_numpy(),
                         "differing": differing, "error": after.error.to_numpy()}, dtype=object)


def compare(before: pd.DataFrame, after: pd.DataFrame) -> dict:
    """Counts of the names of `before` by their verdicts in `after`: right, wrong, missing,
    unobtainable, unasked; `asked`: of how many names; `differing`: {attribute: how many of the names
    that are there differ in it}."""
    found = verdicts(before, after)
    differing = found.differing[found.differing != ""].str.split(",").explode().value_counts()
    return {**{verdict: int((found.verdict == verdict).sum())
               for verdict in (RIGHT, WRONG, MISSING, UNOBTAINABLE, UNASKED)},
            "asked": len(found), "differing": {name: int(differing[name]) for name in ATTRIBUTES
                                               if name in differing}}


def _unlike(one: pd.Series, other: pd.Series) -> pd.Series:
    """Where they differ; two missing values are equal."""
    return ~((one == other).fillna(False).astype(bool) | (one.isna() & other.isna()))

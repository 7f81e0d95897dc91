"""All metadata of files as one client sees them, and how two such inventories differ.

An inventory is a table, a row a name: name (relative to the mounted folder), state ("there",
"missing": ENOENT; "unobtainable": no answer in time, EIO and the like), error (errno's name or
"timeout", "" else), seconds (what the calls took), and ATTRIBUTES where it is there: kind ("file",
"directory", "link"), ino, mode, uid, gid, nlink, size, mtime_ns, ctime_ns, xattrs (JSON), target
(of a link), entries (of a directory: JSON of its sorted names).
"""

import pandas as pd

ATTRIBUTES = ("kind", "ino", "mode", "uid", "gid", "nlink", "size", "mtime_ns", "ctime_ns",
              "xattrs", "target", "entries")
THERE, MISSING, UNOBTAINABLE = "there", "missing", "unobtainable"


def take(host, path: str, names=None, *, call_seconds: float = 5, seconds: float = 60
         ) -> pd.DataFrame:
    """The inventory of `names` below `path` on a client host; of all below it, where None.

    Asked by a process on the host that can be left behind: a call that has no answer within
    `call_seconds` makes its name unobtainable, and so are all names not asked within `seconds`.
    """
    raise NotImplementedError


def compare(before: pd.DataFrame, after: pd.DataFrame) -> dict:
    """How the names of `before` are in `after`: numbers of names right (all ATTRIBUTES equal),
    wrong, missing, unobtainable; `asked`, their sum; `differing`: {attribute: of how many names}.
    ValueError where a name of `before` was not there, or was not asked after."""
    raise NotImplementedError

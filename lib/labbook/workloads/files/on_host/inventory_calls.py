"""The calls by which a name's metadata are asked for, and what a row of them says."""

import errno
import json
import os
import stat
import time

THERE, MISSING, UNOBTAINABLE, NOT_ASKED = "there", "missing", "unobtainable", "not asked"
KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "link"))


def asked(path: str, name: str) -> dict:
    """The row of a name."""
    began = time.monotonic()
    try:
        row = {"state": THERE, "error": "", **attributes(os.path.join(path, name))}
    except OSError as error:
        word = errno.errorcode.get(error.errno, str(error.errno))
        row = {"state": MISSING if error.errno == errno.ENOENT else UNOBTAINABLE, "error": word}
    return {"name": name, "seconds": time.monotonic() - began, **row}


def attributes(place: str) -> dict:
    found = os.lstat(place)
    kind = next((word for is_it, word in KINDS if is_it(found.st_mode)), "other")
    return {
        "kind": kind, "ino": found.st_ino, "mode": found.st_mode, "uid": found.st_uid,
        "gid": found.st_gid, "nlink": found.st_nlink, "size": found.st_size,
        "mtime_ns": found.st_mtime_ns, "ctime_ns": found.st_ctime_ns, "xattrs": xattrs(place),
        "target": os.readlink(place) if kind == "link" else None,
        "entries": json.dumps(sorted(os.listdir(place))) if kind == "directory" else None,
    }


def xattrs(place: str) -> str:
    try:
        names = os.listxattr(place, follow_symlinks=False)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        names = []
    return json.dumps({name: os.getxattr(place, name, follow_symlinks=False).decode("latin-1")
                       for name in sorted(names)})

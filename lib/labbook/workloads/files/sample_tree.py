"""A tree of files with all kinds of metadata, so that a later look can tell what has changed."""

import json
import shlex
from pathlib import Path

from labbook.errors import SystemFailure
from labbook.lab.host.mount_point import run_or_abandon

PROGRAM = Path(__file__).with_name("on_host") / "sample_tree.py"
NAME = "sample-tree"


def sample_tree(host, path, *, directories: int, files: int, seed: int, pins=None,
                pin: int | None = None, seconds_at_most: float = 120) -> str:
    """Make a folder below `path`, on a host, with so many directories of so many files each: small
    ones and empty ones, of many modes, owners and times, some with extended attributes and links.
    `pins`: ranks to which directory i is pinned in turn (ceph.dir.pin); `pin`: the folder's own,
    which the balancer may else give to any. Its path.

    SystemFailure, with what was said, when it fails or is not made in `seconds_at_most`.
    """
    folder = f"{path}/{NAME}-{seed}"
    words = json.dumps({"folder": folder, "directories": directories, "files": files,
                        "pins": list(pins) if pins else None, "pin": pin, "seed": seed})
    place = host.root / NAME
    host.run(f"mkdir -p {NAME}")
    host.put(PROGRAM, place / PROGRAM.name)
    done = run_or_abandon(host, shlex.join((host.python, "-I", "-S", f"{place}/{PROGRAM.name}", words)),
                     seconds_at_most)
    if done is None or done.exit_code:
        how = f"in {seconds_at_most:g} s" if done is None else "at all"
        raise SystemFailure(f"{host.name}: {folder} could not be made {how}",
                            log=done.stderr if done else "")
    return folder

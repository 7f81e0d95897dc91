"""A tree of files with all kinds of metadata, so that a later inventory shows what has changed."""

import json
import shlex
from pathlib import Path

from labbook.errors import SystemFailure
from labbook.lab.host.mount_point import run_or_abandon

PROGRAM = Path(__file__).with_name("on_host") / "sample_tree.py"
NAME = "sample-tree"


def sample_tree(host, path, *, directories: int, files: int, seed: int, pins=None,
                pin: int | None = None, seconds_at_most: float = 120) -> str:
    """Make a folder below `path`, on a host, with `directories` of `files` files each: its path.

    The files are small or empty, of many modes, owners and times, some with extended attributes and
    links. `pins`: ranks to which the directories are pinned in turn (ceph.dir.pin); `pin`: the
    folder's own, without which the balancer may give it to any rank. SystemFailure, with the
    program's error, when it fails or is not done within `seconds_at_most`.
    """
    folder = f"{path}/{NAME}-{seed}"
    arguments = json.dumps({"folder": folder, "directories": directories, "files": files,
                        "pins": list(pins) if pins else None, "pin": pin, "seed": seed})
    program = host.root / NAME / PROGRAM.name
    host.run(f"mkdir -p {NAME}")
    host.put(PROGRAM, program)
    done = run_or_abandon(host, shlex.join((host.python, "-I", "-S", str(program), arguments)),
                     seconds_at_most)
    if done is None or done.exit_code:
        how = f" within {seconds_at_most:g} s" if done is None else ""
        raise SystemFailure(f"{host.name}: {folder} could not be made{how}",
                            log=done.stderr if done else "")
    return folder

"""The privileged helper: reads one request (JSON) from standard input and prints one answer.

`open` makes a lab's state folder, `up` makes a planned lab, `limit` changes a host's quota, `trace`
notes a tracing instance, `down` undoes what the journal names. It runs as root, by `sudo -n` for
other users.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from labbook.lab import kernel
from labbook.lab.disk import tracefs
from labbook.lab.journal import Journal
from labbook.lab.local.layout import block_route, choose_block, layout, routes

STATE = Path("/run/labbook")
MARK = ".labbook"  # a file in every folder that a lab made
ID = r"[a-z0-9][a-z0-9-]{0,10}"  # `lb-ID` must fit an interface's name


def main():
    request = json.load(sys.stdin)
    os.umask(0o022)  # users and servers in hosts must be able to read what is made
    kernel.find_tools()
    try:
        answer = DOES[request.pop("do")](**request)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        answer = {"error": str(error)}
    json.dump(answer, sys.stdout)


def open_state(lab: str, uid: int, gid: int) -> dict:
    folder = _folder(lab)
    for place in (STATE, folder):
        place.mkdir(exist_ok=True)
        place.chmod(0o755)  # not left to the caller's mask
    owner = folder.stat().st_uid
    if owner != uid and (owner != 0 or any(folder.iterdir())):  # owned by root and empty: just made
        raise ValueError(f"lab {lab} belongs to another user")
    os.chown(folder, uid, gid)
    return {"folder": str(folder)}


def up(plan: dict, range: str, state: str, owner: dict) -> dict:
    from labbook.lab.local.make import make

    lab, folder = plan["lab"], _folder(plan["lab"])
    with _alone(folder):
        journal = Journal(folder)
        if journal.entries():
            raise ValueError(f"lab {lab} is there already")
        if kernel.start_time(owner["pid"]) is None:  # killed meanwhile
            raise ValueError(f"the command that asked for lab {lab} has ended")
        home = Path(state).resolve() / lab  # as the kernel names files in it
        with _alone(STATE):
            block_route(range)
            block = choose_block(range, _taken(), routes())
            _clear_orphans(home.parent)
            if home.exists():  # checked before it is in the journal, by which it would be deleted
                raise ValueError(f"{home} is in the way: it is no lab's folder")
            journal.write("lab", boot=kernel.boot_id(), block=block, **owner)
        journal.write("folder", path=str(home))
        home.mkdir(parents=True)
        (home / MARK).touch()
        made = layout(plan, block)
        for host in made["hosts"]:
            host["folder"] = str(home / host["name"])
            host["sees"], host["library"] = plan["sees"], plan["library"]
        make(made, folder, journal)
    return made


def limit(lab: str, uid: int, host: str, quota: float | None) -> dict:
    from labbook.lab.local import cgroups

    folder = _folder(lab)
    _check_owner(folder, uid)
    places = cgroups.folders(lab, host, {"quota"})
    if str(places["quota"]) not in [e["folder"] for e in Journal(folder).of("cgroup")]:
        raise ValueError(f"{host} came up without a quota, so it takes none now")
    cgroups.apply(places, cgroups.quota(quota, cgroups.version()))
    return {}


def trace(lab: str, uid: int, host: str) -> dict:
    folder = _folder(lab)
    _check_owner(folder, uid)
    with _alone(folder):
        return tracefs.make(str(folder), tracefs.instance(lab, host))


def down(lab: str, uid: int) -> dict:
    from labbook.lab.local.unmake import unmake

    folder = _folder(lab)
    try:
        _check_owner(folder, uid)
        with _alone(folder):
            problems = unmake(Journal(folder))
            if not problems:
                _remove(folder)
    except FileNotFoundError:  # another process took it down first
        problems = []
    return {"problems": problems}


def _check_owner(folder: Path, uid: int) -> None:
    if uid not in (0, folder.stat().st_uid):
        raise ValueError(f"lab {folder.name} belongs to another user")


def _remove(folder: Path) -> None:
    """Delete atomically: rename first, so that no process sees half a folder."""
    gone = folder.with_name(f".gone-{folder.name}-{os.getpid()}")
    folder.rename(gone)
    for trash in STATE.glob(".gone-*"):
        shutil.rmtree(trash, ignore_errors=True)


def _clear_orphans(state: Path) -> None:
    """Delete hosts' folders of labs from before a reboot; only those with our mark."""
    for mark in state.glob(f"*/{MARK}"):
        if not Journal(STATE / mark.parent.name).entries():
            shutil.rmtree(mark.parent)


def _taken() -> list[str]:
    journals = (Journal(entry) for entry in STATE.glob("[a-z0-9]*") if entry.is_dir())
    return [e["block"] for j in journals for e in j.of("lab")]


def _folder(lab: str) -> Path:
    if not re.fullmatch(ID, lab):
        raise ValueError(f"{lab!r} is not a lab's id (a-z, 0-9 and -, at most 11)")
    return STATE / lab


@contextmanager
def _alone(folder):
    """One helper at a time, by a file lock. OSError when the folder is gone."""
    path = folder / "helper.lock"
    while True:
        with open(path, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield
                return


DOES = {"open": open_state, "up": up, "limit": limit, "trace": trace, "down": down}

if __name__ == "__main__":
    main()

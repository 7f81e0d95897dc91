"""The privileged helper: reads one request (JSON) from standard input and prints one answer.

`open` makes a lab's state folder, `up` makes a planned lab, `limit` changes a host's quota, `freeze` freezes and thaws
hosts, `trace` notes a tracing instance, `down` undoes what the journal names, `clear` deletes what is left of labs that
are down. It runs as root, by `sudo -n` for other users. It ends within SECONDS, whatever the kernel does. As a standing
helper (see `serve`) it answers requests until its input is closed.
"""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from labbook.lab import deadline, kernel, locks
from labbook.lab.disk import tracefs
from labbook.lab.journal import Journal
from labbook.lab.local import cores
from labbook.lab.local.layout import block_route, choose_block, is_for_benchmarks, layout, routes

STATE = Path("/run/labbook")
TRASH = ".gone-*"   # folders of labs that are down
MARK = ".labbook"  # a file in every folder that a lab made
ID = r"[a-z0-9][a-z0-9-]{0,10}"  # `lb-ID` must fit an interface's name
SECONDS = 240   # for a request; 200 hosts take a few
FREEZE_SECONDS, FREEZE_ALL_SECONDS = 30, 90     # for a host, and for all; more than freezer.SECONDS
LOCK_SECONDS = 60   # for another helper to end
LAB_LOCK = "lab-"   # the lock of a lab, before its id
EVERY_LAB = "labs"  # the lock under which addresses and cores are given out


def main():
    request = json.load(sys.stdin)
    _begin()
    json.dump(_answer(request, DOES), sys.stdout)


def serve():
    """Answer one request a line, a line each, until there is no more: those of STANDING."""
    _begin()
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line), {do: DOES[do] for do in STANDING})), flush=True)


def _begin():
    os.umask(0o022)  # users and servers in hosts must be able to read what is made
    kernel.find_tools()


def _answer(request: dict, does: dict) -> dict:
    do = request.pop("do")
    try:
        with deadline.limit(SECONDS, f"the privileged helper ({do})"):
            return does[do](**request)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return {"error": str(error)}


def open_state(lab: str, uid: int, gid: int) -> dict:
    folder = _folder(lab)
    for place, mode in ((STATE, 0o755), (folder, 0o700)):   # others read no keys and hold no locks
        place.mkdir(mode=mode, exist_ok=True)
        place.chmod(mode)  # not left to the caller's mask
    owner = folder.stat().st_uid
    if owner != uid and (owner != 0 or any(folder.iterdir())):  # owned by root and empty: just made
        raise ValueError(f"lab {lab} belongs to another user")
    os.chown(folder, uid, gid)
    return {"folder": str(folder)}


def up(plan: dict, range: str, state: str, owner: dict) -> dict:
    from labbook.lab.local.make import make

    lab, folder = plan["lab"], _folder(plan["lab"])
    with _alone(folder, "up", owner["pid"]):
        journal = Journal(folder)
        if journal.entries():
            raise ValueError(f"lab {lab} is there already")
        if kernel.start_time(owner["pid"]) is None:  # killed meanwhile
            raise ValueError(f"the command that asked for lab {lab} has ended")
        home = Path(state).resolve() / lab  # as the kernel names files in it
        _check_state(home.parent, owner["uid"])
        with _every_lab(f"up of lab {lab}"):
            given = cores.choose(_cores_of(plan), _labs_with_cores(but=lab), plan["share_cores"])
            block = choose_block(range, _taken(), routes())
            if is_for_benchmarks(range):
                block_route(range)      # until the machine starts anew
            _clear_orphans(home.parent)
            if home.exists():  # checked before it is in the journal, by which it would be deleted
                raise ValueError(f"{home} is in the way: it is no lab's folder")
            journal.write("lab", boot=kernel.boot_id(), block=block, cores=given,
                          share_cores=plan["share_cores"], **owner)
            if not is_for_benchmarks(range):    # others may have addresses of it: while the lab is up
                journal.write("route", block=block)
                block_route(block)
        journal.write("folder", path=str(home))
        home.parent.mkdir(parents=True, exist_ok=True)
        _check_state(home.parent, owner["uid"])     # another may have made it meanwhile
        home.mkdir(mode=0o700)  # others read nothing of a host or its disk
        (home / MARK).touch()
        made = layout(plan, block)
        made["shared_cores"] = given if plan["share_cores"] else []
        for host in made["hosts"]:
            host["folder"] = str(home / host["name"])
            host["sees"], host["library"] = plan["sees"], plan["library"]
        make(made, given, folder, journal)
    return made


def free_cores(asked: int, share_cores: bool) -> dict:
    """Which cores a lab would get now; ValueError as `up` would raise it."""
    with _every_lab("a look at its cores"):
        return {"cores": cores.choose(asked, _labs_with_cores(), share_cores)}


def limit(lab: str, uid: int, host: str, quota: float | None) -> dict:
    from labbook.lab.local import cgroups

    folder = _folder(lab)
    _check_owner(folder, uid)
    places = cgroups.folders(lab, host, {"quota"})
    if str(places["quota"]) not in [e["folder"] for e in Journal(folder).of("cgroup")]:
        raise ValueError(f"lab {lab} has made no control group for a quota of {host!r}")
    cgroups.apply(places, cgroups.quota(quota, cgroups.version()))
    return {}


def freeze(lab: str, uid: int, hosts: list[str], frozen: bool) -> dict:
    """Freeze all of these hosts, or none of them; or thaw them."""
    from labbook.lab.local import freezer

    folder = _folder(lab)
    _check_owner(folder, uid)
    with _alone(folder, "freeze" if frozen else "thaw"):    # not while the lab goes down
        made = {entry["folder"] for entry in Journal(folder).of("cgroup")}
        places = [freezer.folder(lab, host) for host in hosts]
        if without := [place.name for place in places if str(place) not in made]:
            raise ValueError(f"{', '.join(without)} came up without a freezer")
        action = freezer.freeze if frozen else freezer.thaw
        problems = deadline.each(action, places, FREEZE_SECONDS, time.monotonic() + FREEZE_ALL_SECONDS)
        if problems and frozen:
            deadline.each(freezer.thaw, places, FREEZE_SECONDS, time.monotonic() + FREEZE_ALL_SECONDS)
    if problems:
        raise ValueError("; ".join(f"{place.name}: {why}" for place, why in problems))
    return {}


def trace(lab: str, uid: int, host: str) -> dict:
    folder = _folder(lab)
    _check_owner(folder, uid)
    with _alone(folder, "trace"):
        return tracefs.make(str(folder), tracefs.instance(lab, host))


def down(lab: str, uid: int) -> dict:
    from labbook.lab.local.unmake import unmake

    folder = _folder(lab)
    try:
        _check_owner(folder, uid)
        with _alone(folder, "down"):
            problems = unmake(Journal(folder))
            if not problems:
                _set_aside(folder)
    except FileNotFoundError:  # another process took it down first
        problems = []
    clear()     # after the lock is gone: until then the folder tells the next command that there is one
    return {"problems": problems}


def clear() -> dict:
    """Delete what is left of labs that are down: folders, and the locks of helpers that were killed."""
    for trash in STATE.glob(TRASH):
        shutil.rmtree(trash, ignore_errors=True)
    for name in forgotten_locks():
        with suppress(OSError), locks.alone(name, 0, _for("clear", os.getppid())):     # held: not forgotten
            pass
    return {}


def forgotten_locks() -> list[str]:
    """Names of labs' locks whose lab is not there; none for who may not look. A helper may hold one."""
    return [path.name for path in locks.FOLDER.glob(f"{LAB_LOCK}*")
            if not (STATE / path.name.removeprefix(LAB_LOCK)).exists()]


def _check_owner(folder: Path, uid: int) -> None:
    if uid not in (0, folder.stat().st_uid):
        raise ValueError(f"lab {folder.name} belongs to another user")


def _set_aside(folder: Path) -> None:
    """For `clear` to delete, so that no process sees half a folder."""
    folder.rename(folder.with_name(f".gone-{folder.name}-{os.getpid()}"))


def _check_state(state: Path, uid: int) -> None:
    """ValueError when others than root and user `uid`, who asked, could put something else in place of what root
    makes in this folder. In a sticky one above it, such as /tmp, nobody can replace what is another's."""
    for place in (state, *state.parents):
        if not place.exists():
            continue
        found = place.stat()
        shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and (place == state or not found.st_mode & stat.S_ISVTX)
        if shared or found.st_uid not in (0, uid):
            why = f"can be written by others (mode {stat.S_IMODE(found.st_mode):o})" if shared else "is another user's"
            raise ValueError(f"hosts' folders cannot lie in {state}: {place} {why}. Name another folder as `state` in "
                             f"the environment file, or type: chmod go-w {place}")


def _clear_orphans(state: Path) -> None:
    """Delete hosts' folders of labs from before a reboot; only those with our mark that `up` made."""
    for mark in state.glob(f"*/{MARK}"):
        found = mark.parent.lstat()
        mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700
        if mine and not Journal(STATE / mark.parent.name).entries():
            shutil.rmtree(mark.parent)


def _labs() -> list[tuple[Path, dict]]:
    """(state folder, the journal's entry of the lab) of all labs."""
    folders = [entry for entry in STATE.glob("[a-z0-9]*") if entry.is_dir()]
    return [(folder, entry) for folder in folders for entry in Journal(folder).of("lab")]


def _taken() -> list[str]:
    return [entry["block"] for _, entry in _labs()]


def _cores_of(plan) -> int:
    return sum(host["limits"].get("cores", 0) for host in plan["hosts"])


def _labs_with_cores(but: str = "") -> list[dict]:
    """Labs that have cores of their own, without those from before a reboot."""
    return [{**entry, "lab": folder.name, "keep": (folder / "keep").exists()}
            for folder, entry in _labs()
            if entry.get("cores") and entry["boot"] == kernel.boot_id() and folder.name != but]


def _folder(lab: str) -> Path:
    check_id(lab)
    return STATE / lab


def check_id(lab: str) -> None:
    """ValueError unless `lab` can be a lab's id."""
    if not re.fullmatch(ID, lab):
        raise ValueError(f"{lab!r} is not a lab's id (a-z, 0-9 and -, at most 11)")


@contextmanager
def _alone(folder, what, asker: int | None = None):
    """One helper of a lab at a time. OSError when the folder is gone, or another does not end."""
    holder = _for(f"{what} of lab {folder.name}", asker or os.getppid())
    with locks.alone(f"{LAB_LOCK}{folder.name}", LOCK_SECONDS, holder):
        folder.stat()
        yield


def _every_lab(what):
    return locks.alone(EVERY_LAB, LOCK_SECONDS, _for(what, os.getppid()))


def _for(what, asker) -> str:
    return f"{what} for process {asker}: {kernel.command(asker)}"


DOES = {"open": open_state, "up": up, "cores": free_cores, "limit": limit, "freeze": freeze, "trace": trace,
        "down": down, "clear": clear}
STANDING = ("limit", "freeze", "trace")    # what a measurement asks for again and again

if __name__ == "__main__":
    main()

"""The ssh provider's interface, and the state that it keeps on this machine.

A lab's state folder has `journal` (hosts that it has or may have claimed, how to reach each, and
which of them are clean again), `lab.json` and `ssh_config`. It needs no root and survives a reboot.
What is made on a host is in a journal on that host.
"""

import os
import shutil
from pathlib import Path, PurePosixPath

from labbook.errors import LabError
from labbook.lab.host.host import Host
from labbook.lab.local.root import check_id
from labbook.lab.ssh.login import Login
from labbook.paths import ssh_labs_dir

NAME = "ssh"
FREEZE_SECONDS = 30     # for each host of a machine, one after the other
ASK_SECONDS = 10


def folders() -> list[Path]:
    """State folders of all labs of this user on this machine."""
    return sorted(f for f in ssh_labs_dir().glob("[a-z0-9]*") if f.is_dir())


def open_state(lab_id: str) -> Path:
    """Make the lab's state folder if need be; only this user can read it."""
    folder = state_folder(lab_id)
    try:
        check_id(lab_id)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except ValueError as error:
        raise LabError(str(error)) from None
    except OSError as error:
        raise LabError(f"no place to write down what a lab does: {error}",
                       remedy="XDG_STATE_HOME may name another one") from None
    return folder


def state_folder(lab_id: str) -> Path:
    return ssh_labs_dir() / lab_id


def up(lab_id: str, description, environment) -> dict:
    from labbook.lab.remote.make import make

    return make(lab_id, description, environment, state_folder(lab_id))


def limit(lab_id: str, host: Host, quota: float | None) -> None:
    from labbook.lab.host import as_root
    from labbook.lab.remote import root

    as_root.call(host, root.change_quota, lab=lab_id, name=host.name, share=quota)


def freeze(lab_id: str, hosts: list[Host], frozen: bool) -> None:
    """Freeze hosts that have a freezer, or thaw them: all machines at the same time, in one call each."""
    from labbook.lab.host import as_root
    from labbook.lab.remote import root
    from labbook.lab.remote.parallel import each

    machines = {}
    for host in hosts:
        machines.setdefault((host.login, host.root.parent), []).append(host)

    def ask(wanted):
        each(machines.values(), lambda here: as_root.call(
            here[0], root.freeze, timeout_s=as_root.SECONDS + FREEZE_SECONDS * len(here), lab=lab_id,
            groups={host.name: list(host.groups) for host in here}, frozen=wanted))
    try:
        ask(frozen)
    except BaseException:
        if frozen:  # all or none
            ask(False)
        raise


def trace(lab_id: str, host: Host) -> str:
    """Write a tracing instance for a host's disk into its journal; return its name."""
    from labbook.lab.disk import tracefs
    from labbook.lab.host import as_root

    return as_root.call(host, tracefs.make, place=str(host.root.parent),
                        name=tracefs.instance(lab_id, host.name))["instance"]


def ask_disk(lab_id: str, host: Host, command: str) -> dict:
    """The answer of a host's modelled disk; LabError when there is none."""
    from labbook.lab.disk import modelled
    from labbook.lab.host import as_root

    return as_root.call(host, modelled.ask, path=str(_of_disk(host)["socket"]), line=command)


def served_log(lab_id: str, host: Host) -> bytes:
    """The log of served requests of a host's modelled disk."""
    return host.get(_of_disk(host)["log"])


def _of_disk(host):
    from labbook.lab.disk import modelled

    return modelled.places(host.name, host.root.parent)


def ended_for_memory(lab_id: str, host: Host) -> int:
    """Always 0: a host that has just failed is not asked."""
    return 0


def space_below(made: dict, host: Host) -> int:
    """KiB that are left on the machine's disk below a host's own, which is mounted on its root folder."""
    return int(host.run("df -k --output=avail .. | tail -n 1", timeout=ASK_SECONDS).stdout)


def down(lab_id: str) -> None:
    """Undo on every host what its journal names; LabError says what is left."""
    folder = state_folder(lab_id)
    if not folder.exists():  # another process took it down first
        return
    from labbook.lab.remote.unmake import unmake

    problems = unmake(lab_id, folder)
    if problems:
        raise LabError(
            f"lab {lab_id} is not wholly down: " + "; ".join(problems),
            remedy=f"Try again: labbook down {lab_id}. If a host is gone for good, forget the "
                   f"lab: rm -r {folder}")
    gone = folder.with_name(f".gone-{lab_id}-{os.getpid()}")
    folder.rename(gone)  # atomically: no process sees half a folder
    for trash in ssh_labs_dir().glob(".gone-*"):
        shutil.rmtree(trash, ignore_errors=True)


def host(made: dict, folder: Path) -> Host:
    return Host(made["name"], made["site"], made["role"], made["address"], Login.from_facts(made["login"]),
                PurePosixPath(made["root"]), made["python"], made["cores"], made["limits"],
                sudo=made["sudo"], env=made["env"], groups=tuple(made["groups"]),
                allow=frozenset(made["allow"]))

"""A user's own clouds: opened for a lab, cleaned when the lab goes down, swept after a kill.

A folder of `paths.clouds_dir()` records what was made on a cloud and how the cloud is reached, but no
secret. A process works there only while it holds the folder's lock, which it loses when it ends.
"""

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labbook.checks import did_you_mean
from labbook.errors import InputError, LabbookError, LabError
from labbook.lab.environment.clouds import OwnCloud, check_credentials
from labbook.lab.ownership import Ownership
from labbook.paths import clouds_dir
from labbook.systems.cloud.cloud import Cloud
from labbook.systems.cloud.ledger import JOURNAL, JournaledLedger, remove

MARK = "labbook"    # prefix of the study's id on clouds


@dataclass(frozen=True)
class Leftover:
    """How many resources a journal says may still be on a cloud."""

    id: str
    cloud: str
    study: str
    resources: int


def own_cloud(lab, name: str) -> Cloud:
    """The cloud of this name in the lab's environment file.

    Leftovers of an earlier lab with the same id are removed first. What is made is removed with the
    lab, unless `destroy` did so before. InputError if the file has no such cloud, or the cloud
    refuses the credentials; LabError if it does not answer, or another process uses it for this lab.
    """
    own = lab.clouds.get(name)
    if own is None:
        raise InputError(f"the environment has no cloud {name!r}{did_you_mean(name, lab.clouds)}",
                         key="clouds", allowed=list(lab.clouds) or "the file has none")
    check_credentials(own)
    folder = clouds_dir() / f"{lab.id}-{name}"
    ownership = _own(folder)
    try:
        _sweep(folder)
        (folder / JOURNAL).unlink(missing_ok=True)
        ledger = JournaledLedger(f"{MARK}-{lab.id}", folder)
        api = api_of(own, ledger.mark)
        api.quota()     # a first request, before anything is made
        ledger.begin(study=lab.study, own=own.facts())
    except BaseException:
        _release(folder, ownership)
        raise
    cloud = Cloud(api, ledger, own, at_end=lambda: _release(folder, ownership))

    def last():
        try:
            cloud.destroy()
        finally:    # what is left is the next `labbook down`'s, which skips a folder in use
            ownership.release()

    lab.before_down(last)
    return cloud


def api_of(own: OwnCloud, mark: str):
    """The API client of a cloud; sends no request yet."""
    if own.kind == "ec2":
        from labbook.systems.cloud.ec2 import Ec2Api

        return Ec2Api.of(own, mark)
    from labbook.systems.cloud.openstack import OpenStackApi

    return OpenStackApi.of(own, mark)


def sweep() -> list[Leftover]:
    """Remove what ended processes left on clouds; returns what was removed, by cloud.

    LabError, once all clouds have been tried, if something could not be removed.
    """
    swept, errors = [], []
    for folder in _folders():
        ownership = Ownership(folder)
        if not ownership.take():
            continue
        try:
            swept += _sweep(folder)
            _release(folder, ownership)
        except LabbookError as error:
            errors.append(error)
        finally:
            ownership.release()
    if errors:
        raise LabError(str(errors[0])) if isinstance(errors[0], InputError) else errors[0]
    return swept


def _sweep(folder) -> list[Leftover]:
    """Uses the recorded access to the cloud, since the environment file may have changed."""
    left, ledger = _leftover(folder), JournaledLedger("", folder)
    if left is None or not left.resources:
        return []
    own = OwnCloud(**ledger.about()["own"])
    print(f"labbook: removing what a run of {left.study} left on cloud {own.name}", file=sys.stderr)
    check_credentials(own)
    _require(remove(api_of(own, ledger.mark), ledger), own, folder)
    return [left]


def leftovers() -> list[Leftover]:
    """What may be on clouds, of ended and of running processes."""
    found = (_leftover(folder) for folder in _folders())
    return [one for one in found if one and one.resources]


def _leftover(folder) -> Leftover | None:
    """None if the process never reached the cloud."""
    ledger = JournaledLedger("", folder)
    about = ledger.about()
    if not about:
        return None
    return Leftover(folder.name, about["own"]["name"], about["study"], len(ledger.left()))


def _folders() -> list[Path]:
    return sorted(f for f in clouds_dir().glob("[a-z0-9]*") if f.is_dir())


def _own(folder: Path) -> Ownership:
    for _ in range(3):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise LabError(f"cannot record what is made on a cloud: {error}",
                           remedy="Set XDG_STATE_HOME to another folder") from None
        ownership = Ownership(folder)
        with suppress(LabError):    # a sweep may have removed the folder meanwhile
            ownership.require()
            return ownership
        if folder.exists():
            break
    raise LabError(f"cloud {folder.name} is in use by process {Ownership(folder).holder()}",
                   remedy="Wait for it, or end it")


def _require(problems, own, folder):
    if problems:
        raise LabError(f"not all could be removed from cloud {own.name}: {'; '.join(problems)}",
                       remedy="Try again: labbook down. If the cloud no longer exists, forget it: "
                              f"rm -r {folder}")


def _release(folder: Path, ownership: Ownership):
    """Release the folder; remove it if nothing of it is left on the cloud."""
    if ownership.held and not JournaledLedger("", folder).left():
        gone = folder.with_name(f".gone-{folder.name}-{os.getpid()}")
        folder.rename(gone)     # atomic: nobody sees half a folder
        shutil.rmtree(gone, ignore_errors=True)
    ownership.release()

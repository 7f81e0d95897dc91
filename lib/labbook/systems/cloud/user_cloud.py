"""Clouds of the user's own: taken for a lab, given back when it goes down, swept after a kill.

What was made on a cloud is written down in a folder of `paths.clouds_dir()`, with how the cloud is
reached and no secret. Whoever has the folder's lock works there; it dies with its holder.
"""

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labbook.checks import did_you_mean
from labbook.errors import InputError, LabbookError, LabError
from labbook.lab.clouds import OwnCloud, check_credentials
from labbook.lab.ownership import Ownership
from labbook.paths import clouds_dir
from labbook.systems.cloud.cloud import Cloud
from labbook.systems.cloud.ledger import JOURNAL, KeptLedger, remove

MARK = "labbook"    # what the study's id begins with, on clouds


@dataclass(frozen=True)
class Left:
    """What a journal tells: so many things may still be on that cloud."""

    id: str
    cloud: str
    study: str
    things: int


def own_cloud(lab, name: str) -> Cloud:
    """The cloud that the lab's environment file calls so, with nothing of an earlier lab of this
    id left on it. What is made there goes with the lab, if `destroy` does not take it before.

    InputError when the file has none of that name, or the cloud refuses the credentials; LabError
    when it does not answer, or another process has it for this lab.
    """
    own = lab.clouds.get(name)
    if own is None:
        raise InputError(f"the environment has no cloud {name!r}{did_you_mean(name, lab.clouds)}",
                         key="clouds", allowed=list(lab.clouds) or "none is named")
    check_credentials(own)
    folder = clouds_dir() / f"{lab.id}-{name}"
    ownership = _own(folder)
    try:
        _sweep(folder)
        (folder / JOURNAL).unlink(missing_ok=True)
        ledger = KeptLedger(f"{MARK}-{lab.id}", folder)
        api = api_of(own, ledger.mark)
        api.quota()     # the first question to it, before anything is made
        ledger.begin(study=lab.study, own=own.told())
    except BaseException:
        _let_go(folder, ownership)
        raise
    cloud = Cloud(api, ledger, own, at_end=lambda: _let_go(folder, ownership))
    lab.before_down(cloud.destroy)
    return cloud


def api_of(own: OwnCloud, mark: str):
    """What speaks with it; asks it nothing yet."""
    if own.kind == "ec2":
        from labbook.systems.cloud.ec2 import Ec2Api

        return Ec2Api.of(own, mark)
    from labbook.systems.cloud.openstack import OpenStackApi

    return OpenStackApi.of(own, mark)


def sweep() -> list[Left]:
    """Remove what processes that live no more have left on clouds: what was removed, by cloud.

    LabError, once all have been tried, when something stays.
    """
    swept, errors = [], []
    for folder in _folders():
        ownership = Ownership(folder)
        if not ownership.take():
            continue
        try:
            swept += _sweep(folder)
            _let_go(folder, ownership)
        except LabbookError as error:
            errors.append(error)
        finally:
            ownership.release()
    if errors:
        raise LabError(str(errors[0])) if isinstance(errors[0], InputError) else errors[0]
    return swept


def _sweep(folder) -> list[Left]:
    """By the way that is written down: the environment file may have another by now."""
    left, ledger = _left(folder), KeptLedger("", folder)
    if left is None or not left.things:
        return []
    own = OwnCloud(**ledger.about()["own"])
    print(f"labbook: removing what a run of {left.study} left on cloud {own.name}", file=sys.stderr)
    check_credentials(own)
    _require(remove(api_of(own, ledger.mark), ledger), own, folder)
    return [left]


def left() -> list[Left]:
    """What there may be on clouds, of runs that were killed and of such as are at work."""
    found = (_left(folder) for folder in _folders())
    return [one for one in found if one and one.things]


def _left(folder) -> Left | None:
    """None when it never came to a cloud."""
    ledger = KeptLedger("", folder)
    about = ledger.about()
    if not about:
        return None
    return Left(folder.name, about["own"]["name"], about["study"], len(ledger.left()))


def _folders() -> list[Path]:
    return sorted(f for f in clouds_dir().glob("[a-z0-9]*") if f.is_dir())


def _own(folder: Path) -> Ownership:
    for _ in range(3):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise LabError(f"no place to write down what is made on a cloud: {error}",
                           remedy="XDG_STATE_HOME may name another one") from None
        ownership = Ownership(folder)
        with suppress(LabError):    # a sweep may just have taken the folder away
            ownership.require()
            return ownership
        if folder.exists():
            break
    raise LabError(f"cloud {folder.name} is in use by process {Ownership(folder).holder()}",
                   remedy="wait for it, or end it")


def _require(problems, own, folder):
    if problems:
        raise LabError(f"cloud {own.name} is not rid of what was made there: {'; '.join(problems)}",
                       remedy="Try again: labbook down. If the cloud is gone for good, forget it: "
                              f"rm -r {folder}")


def _let_go(folder: Path, ownership: Ownership):
    """Away with the folder when nothing in it is left on the cloud; its lock is free then."""
    if ownership.held and not KeptLedger("", folder).left():
        gone = folder.with_name(f".gone-{folder.name}-{os.getpid()}")
        folder.rename(gone)     # in one step, so that nobody finds half a folder
        shutil.rmtree(gone, ignore_errors=True)
    ownership.release()

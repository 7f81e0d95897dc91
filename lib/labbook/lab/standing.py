"""Labs as their state folders tell them, and the end of those that nobody has any more."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.local import provider
from labbook.lab.ownership import Ownership


@dataclass(frozen=True)
class Standing:
    """A lab as its state folder tells it, also when nobody has it."""

    id: str
    study: str
    keep: bool
    hosts: tuple[str, ...]
    ssh_config: Path


def wholly_up() -> list[Standing]:
    found = []
    for folder in _folders():
        with suppress(FileNotFoundError):  # not wholly up, or taken down meanwhile
            found.append(_standing(folder))
    return found


def sweep(everything: bool) -> list[str]:
    """See Lab.sweep."""
    swept, errors = [], []
    for folder in _folders():
        ownership = Ownership(folder)
        kept = not everything and (folder / "keep").exists()
        if kept or not ownership.take():
            continue
        try:
            if everything or not (folder / "keep").exists():  # it may just have come up
                provider.down(folder.name)
                swept.append(folder.name)
        except LabError as error:
            errors.append(error)
        finally:
            ownership.release()
    if errors:
        raise errors[0]
    return swept


def _folders():
    return sorted(f for f in provider.STATE.glob("[a-z0-9]*")
                  if f.is_dir() and os.getuid() in (0, _owner(f)))


def _owner(folder):
    try:
        return folder.stat().st_uid
    except FileNotFoundError:
        return None


def _standing(folder) -> Standing:
    made = json.loads((folder / "lab.json").read_text())
    names = tuple(h["name"] for h in made["hosts"])
    return Standing(folder.name, made["study"], (folder / "keep").exists(), names,
                    folder / "ssh_config")

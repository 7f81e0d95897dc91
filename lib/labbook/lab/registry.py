"""Labs as their state folders tell them, and the end of those that nobody has any more."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.local import provider as namespaces
from labbook.lab.ownership import Ownership
from labbook.lab.remote import provider as ssh

PROVIDERS = (namespaces, ssh)


def provider_of(environment):
    return next(provider for provider in PROVIDERS if provider.NAME == environment.provider)


def provider_holding(lab_id: str):
    """The one in whose place the lab's state folder lies; the first when there is none."""
    return next((p for p in PROVIDERS if p.state_folder(lab_id).is_dir()), PROVIDERS[0])


@dataclass(frozen=True)
class LabRecord:
    """A lab as its state folder tells it, also when nobody has it."""

    id: str
    study: str
    keep: bool
    hosts: tuple[str, ...]
    ssh_config: Path


def save(made: dict, folder: Path) -> None:
    """What another process needs to take the lab up, which says that all of it is there."""
    partial = folder / "lab.json.partial"
    partial.write_text(json.dumps(made))
    partial.rename(folder / "lab.json")


def running_labs() -> list[LabRecord]:
    found = []
    for _, folder in _folders():
        with suppress(FileNotFoundError):  # not wholly up, or taken down meanwhile
            found.append(_record(folder))
    return found


def sweep(everything: bool) -> list[str]:
    """See Lab.sweep."""
    swept, errors = [], []
    for provider, folder in _folders():
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
    return [(provider, folder) for provider in PROVIDERS for folder in provider.folders()]


def _record(folder) -> LabRecord:
    made = json.loads((folder / "lab.json").read_text())
    names = tuple(h["name"] for h in made["hosts"])
    return LabRecord(folder.name, made["study"], (folder / "keep").exists(), names,
                    folder / "ssh_config")

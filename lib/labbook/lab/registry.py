"""Find labs from their state folders; remove orphaned ones. Choose the provider of a lab.

A provider is a module that makes labs, of namespaces on this machine or on a user's hosts by SSH.
It has NAME; folders(), open_state() and state_folder() for its files on this machine; up(), limit(),
trace(), ended_for_memory(), space_below() and down() of a lab; and host() for an entry of what up() returned.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.cache.build import delete_stale_drafts
from labbook.lab.local import provider as namespaces
from labbook.lab.ownership import Ownership
from labbook.lab.remote import provider as ssh

PROVIDERS = (namespaces, ssh)


def provider_of(environment):
    """The provider that an environment file names."""
    return next(provider for provider in PROVIDERS if provider.NAME == environment.provider)


def provider_holding(lab_id: str):
    """The provider that has a state folder of this lab; the first when none has."""
    return next((p for p in PROVIDERS if p.state_folder(lab_id).is_dir()), PROVIDERS[0])


@dataclass(frozen=True)
class LabRecord:
    """A lab that is up, read from its state folder; it may have no owner. `keep`: `sweep` leaves it.
    `checkout`: the folder of the checkout that brought it up. `links`: pairs of sites."""

    id: str
    study: str
    keep: bool
    hosts: tuple[str, ...]
    ssh_config: Path
    checkout: str = ""
    links: tuple[tuple[str, str], ...] = ()


def save(made: dict, folder: Path) -> None:
    """Write lab.json, from which another process attaches; its presence says that the lab is up."""
    partial = folder / "lab.json.partial"
    partial.write_text(json.dumps(made))
    partial.rename(folder / "lab.json")


def running_labs() -> list[LabRecord]:
    """Labs of this machine and user that are completely up."""
    labs = []
    for _, folder in _folders():
        with suppress(FileNotFoundError):  # coming up, or going down
            labs.append(_record(folder))
    return labs


def sweep(everything: bool) -> list[str]:
    """Take down labs without an owner, and delete what killed commands left of others; see Lab.sweep."""
    swept, errors = [], []
    delete_stale_drafts()
    namespaces.clear_trash()
    for provider, folder in _folders():
        ownership = Ownership(folder)
        kept = not everything and (folder / "keep").exists()
        if kept or not ownership.take():
            continue
        try:
            if everything or not (folder / "keep").exists():  # `keep` may have come meanwhile
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
                     folder / "ssh_config", made.get("checkout", ""),
                     tuple(tuple(link["between"]) for link in made.get("links", ())))

"""Find labs from their state folders; remove orphaned ones. Choose the provider of a lab.

A provider is a module that makes labs, of namespaces on this machine or on a user's hosts by SSH.
It has NAME; folders(), open_state() and state_folder() for its files on this machine; up(), limit(),
freeze(), trace(), ask_disk(), served_log(), ended_for_memory(), space_below() and down() of a lab; and host() for an
entry of what up() returned.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labbook.atomic_files import write_whole
from labbook.errors import LabError
from labbook.lab.cache.build import delete_stale_drafts
from labbook.lab.local import provider as namespaces
from labbook.lab.ownership import Ownership
from labbook.lab.remote import provider as ssh

PROVIDERS = (namespaces, ssh)
MADE = "lab.json"       # in a lab's state folder
DAMAGED = "unknown: its lab.json is damaged"    # in place of a study's name


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
    write_whole(folder / MADE, lambda file: file.write(json.dumps(made).encode()))


def made_of(folder: Path) -> dict:
    """What was saved of the lab with this state folder. LabError when it is not up, is another user's, or the
    file is damaged."""
    lab_id = folder.name
    try:
        return json.loads((folder / MADE).read_text())
    except FileNotFoundError:
        raise LabError(f"no lab {lab_id} is up", remedy="`labbook status` lists labs") from None
    except PermissionError:
        raise LabError(f"lab {lab_id} belongs to another user",
                       remedy=f"That user types: labbook down {lab_id}") from None
    except ValueError:
        raise LabError(f"lab {lab_id}: {folder / MADE} is damaged", remedy=f"Type: labbook down {lab_id}") from None


def running_labs() -> list[LabRecord]:
    """Labs of this machine and user that are completely up; one whose lab.json is damaged has no hosts."""
    labs = []
    for _, folder in _folders():
        with suppress(FileNotFoundError):  # coming up, or going down
            labs.append(_record(folder))
    return labs


def sweep(everything: bool) -> list[str]:
    """Take down labs without an owner, and delete what killed commands left of others; see Lab.sweep."""
    swept, stuck = [], {}
    delete_stale_drafts()
    namespaces.clear_trash()
    for provider, folder in _folders():
        ownership = Ownership(folder)
        kept = not everything and (folder / "keep").exists()
        try:
            if kept or not ownership.take():
                continue
        except LabError as error:       # its lock is another user's; the others are swept
            stuck[folder.name] = error
            continue
        try:
            if everything or not (folder / "keep").exists():  # `keep` may have come meanwhile
                provider.down(folder.name)
                swept.append(folder.name)
        except LabError as error:
            stuck[folder.name] = error
        finally:
            ownership.release()
    if stuck:
        raise StuckLabs(stuck)
    return swept


class StuckLabs(LabError):
    """Labs that could not be taken down. `labs`: {id: the error}."""

    def __init__(self, labs: dict):
        self.labs = labs
        super().__init__("\n".join(map(str, labs.values())))


def take_down(lab_id: str) -> None:
    """Take down one lab. LabError when another process owns it, or something cannot be undone."""
    provider = provider_holding(lab_id)
    ownership = Ownership(provider.state_folder(lab_id))
    ownership.require()
    try:
        provider.down(lab_id)
    finally:
        ownership.release()


def _folders():
    return [(provider, folder) for provider in PROVIDERS for folder in provider.folders()]


def _record(folder) -> LabRecord:
    keep, config = (folder / "keep").exists(), folder / "ssh_config"
    try:
        made = json.loads((folder / MADE).read_text())
    except ValueError:
        return LabRecord(folder.name, DAMAGED, keep, (), config)
    names = tuple(h["name"] for h in made["hosts"])
    return LabRecord(folder.name, made["study"], keep, names, config, made.get("checkout", ""),
                     tuple(tuple(link["between"]) for link in made.get("links", ())))

"""Labs that are up, for another process than the one that brought them up."""

from contextlib import contextmanager

from labbook import paths
from labbook.lab import registry
from labbook.lab.lab import Lab
from labbook.lab.ownership import Ownership


def find(study: str) -> Lab | None:
    """The lab of a study that this checkout keeps up, None without one. Nobody owns it then, so that
    `labbook down` takes it down as before."""
    here = str(paths.checkout())
    found = [one for one in Lab.list() if one.keep and (one.study, one.checkout) == (study, here)]
    if not found:
        return None
    lab = Lab.attach(found[-1].id)
    lab._ownership.release()
    return lab


@contextmanager
def held(lab_id: str):
    """A lab that is up, which no other process uses until the block's end; it stays up. LabError when
    another process owns it: what that measures must not change under it."""
    lab = Lab.attach(lab_id)
    try:
        yield lab
    finally:
        _close(lab)
        lab._ownership.release()


@contextmanager
def watched(lab_id: str):
    """A lab that is up, to look at, whoever owns it. LabError when it has gone down meanwhile."""
    provider = registry.provider_holding(lab_id)
    folder = provider.state_folder(lab_id)
    made = registry.made_of(folder)
    lab = Lab(lab_id, provider, made, Ownership(folder))
    try:
        yield lab
    finally:
        _close(lab)


def _close(lab):
    for host in [*lab.hosts.values(), *lab.routers.values()]:
        host.close()

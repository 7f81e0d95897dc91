"""What clouds answer, told as whose fault it is. Those with `refused` set say that nothing was made."""

import re
from contextlib import contextmanager

from labbook.errors import InputError, LabError, SystemFailure

NO_ROOM = re.compile(r"no valid host|not enough resources|NotEnoughResources|insufficient|"
                     r"InsufficientInstanceCapacity", re.I)
QUOTA = re.compile(r"quota|LimitExceeded", re.I)


def refused(error):
    error.refused = True
    return error


def credentials(own, said: str) -> InputError:
    """`own`: an OwnCloud, or None for a cloud of the lab's."""
    if own is None:
        return refused(InputError(f"the cloud refuses the credentials: {said}"))
    return refused(InputError(
        f"the cloud refuses profile {own.profile!r} of {own.credentials}: {said}", file=own.file,
        key=own.key("credentials"), allowed="credentials that the cloud knows"))


def forbidden(own, doing: str, said: str) -> InputError:
    return refused(InputError(
        f"the cloud does not let this user {doing}: {said}", file=own and own.file,
        key=own and own.key("profile"), allowed="a user who may"))


def unreachable(own, said: str) -> LabError:
    where = f"{own.file}: {own.key()}" if own else "the cloud"
    return LabError(f"{where} does not answer: {said}", remedy=(
        "See that its API runs and that this machine reaches it"))


def over_quota(doing: str, said: str) -> LabError:
    return refused(LabError(f"the cloud's quota does not let us {doing}: {said}", remedy=(
        "Ask for fewer or smaller ones, or have the quota raised")))


def no_room(what: str, said: str) -> LabError:
    return refused(LabError(f"no host of the cloud has room for {what}: {said}", remedy=(
        "Take a smaller flavour or fewer servers")))


def failed(doing: str, said: str, log=None) -> SystemFailure:
    return SystemFailure(f"the cloud could not {doing}: {said}", log=log)


def by_words(doing: str, said: str):
    """The error for what a cloud says in no class of its own; None when its words tell nothing."""
    if QUOTA.search(said):
        return over_quota(doing, said)
    return no_room(f"what it takes to {doing}", said) if NO_ROOM.search(said) else None


@contextmanager
def by_missing(*codes: str):
    """Nothing is raised meanwhile when the cloud answers with a code that has one of these in it."""
    try:
        yield
    except Exception as error:
        code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
        if not any(part in code for part in codes):
            raise

"""Clouds' errors as the project's. One with `refused` set says that nothing was made, unless
`perhaps_made` is set, too."""

import re
from contextlib import contextmanager

from labbook.errors import InputError, LabbookError, LabError, SystemFailure

NO_ROOM = re.compile(r"no valid host|not enough resources|NotEnoughResources|insufficient|"
                     r"InsufficientInstanceCapacity", re.I)
QUOTA = re.compile(r"quota|(?<!Request)LimitExceeded", re.I)    # EC2's RequestLimitExceeded is of a rate


def refused(error):
    error.refused = True
    return error


def credentials(own, message: str) -> InputError:
    """`own`: an OwnCloud, or None for the lab's own cloud."""
    if own is None:
        return refused(InputError(f"the cloud refuses the credentials: {message}"))
    return refused(InputError(
        f"the cloud refuses profile {own.profile!r} of {own.credentials}: {message}", file=own.file,
        key=own.key("credentials"), allowed="credentials that the cloud knows"))


def forbidden(own, doing: str, message: str) -> InputError:
    return refused(InputError(
        f"the cloud does not let this user {doing}: {message}", file=own and own.file,
        key=own and own.key("profile"), allowed="a user who may"))


def unreachable(own, message: str) -> LabError:
    where = f"{own.file}: {own.key()}" if own else "the cloud"
    return LabError(f"{where} does not answer: {message}", remedy=(
        "See that its API runs and that this machine reaches it"))


def over_quota(doing: str, message: str) -> LabError:
    return refused(LabError(f"the cloud's quota does not let us {doing}: {message}", remedy=(
        "Ask for fewer or smaller ones, or have the quota raised")))


def no_room(what: str, message: str) -> LabError:
    return refused(LabError(f"no host of the cloud has room for {what}: {message}", remedy=(
        "Take a smaller flavour or fewer servers")))


def failed(doing: str, message: str, log=None) -> SystemFailure:
    return SystemFailure(f"the cloud could not {doing}: {message}", log=log)


def from_message(doing: str, message: str):
    """The error that a message means by its words; None if they mean nothing in particular."""
    if QUOTA.search(message):
        return over_quota(doing, message)
    return no_room(f"what it takes to {doing}", message) if NO_ROOM.search(message) else None


@contextmanager
def perhaps_made():
    """For what is asked after the call that makes something: an error inside does not say that nothing was made."""
    try:
        yield
    except LabbookError as error:
        error.perhaps_made = True
        raise


@contextmanager
def suppress_codes(*codes: str):
    """Suppress errors of the cloud whose code contains one of these."""
    try:
        yield
    except Exception as error:
        code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
        if not any(part in code for part in codes):
            raise


@contextmanager
def translated(translate, doing: str, own):
    """Errors inside are raised as `translate(error, doing, own)`; unchanged where that is None."""
    try:
        yield
    except LabbookError:
        raise
    except Exception as error:
        translation = translate(error, doing, own)
        if translation is None:
            raise
        raise translation from error

"""What a crew's engine does beside its work: run functions, keep the last outcome, tell the time.

An answer is lost with the connection that carries it; kept here, it can be asked for again.
"""

import os
import time
import traceback
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """What a function returned or, where it raised, the error ("TypeError: ...") and its
    traceback."""

    answer: Any = None
    error: str | None = None
    traceback: str | None = None


class NeverCame(Exception):
    """The call that is asked for again was not the engine's last."""


_last: tuple[str | None, Outcome] = (None, Outcome())  # name of the call, its outcome


def call(name: str, function, *arguments) -> Outcome:
    """Call the function; `again` gives the same outcome once more."""
    global _last
    try:
        _last = name, Outcome(function(*arguments))
    except Exception as error:
        _last = name, Outcome(None, f"{type(error).__name__}: {error}", traceback.format_exc())
    return again(name)


def again(name: str) -> Outcome:
    """The outcome of the engine's last call. Asked for during the call, this waits: an engine does
    one thing after the other."""
    last, outcome = _last
    if last != name:
        raise NeverCame(name)
    return outcome


def place() -> str:
    """The name of the engine's host."""
    return os.environ["LABBOOK_HOST"]


def now() -> float:
    """Seconds since the epoch by the host's clock."""
    return time.time()

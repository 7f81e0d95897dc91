"""What a crew's engine does beside its work: keeps its last answer, says where it is and when.

An answer on its way is gone with the connection that it takes; kept here, it can be asked for again.
"""

import os
import time

_last = (None, None, None)  # name of the call, its answer, what it raised


class NeverCame(Exception):
    """The call that is asked for again was not the engine's last."""


def keep(name: str, function, *arguments):
    """What `function` gives or raises; `again` gives or raises it once more."""
    global _last
    try:
        _last = name, function(*arguments), None
    except Exception as error:
        _last = name, None, error.with_traceback(None)
    return again(name)


def again(name: str):
    """Asked for while the call is at work, this waits: an engine does one thing after the other."""
    kept, answer, error = _last
    if kept != name:
        raise NeverCame(name)
    if error is not None:
        raise error
    return answer


def place() -> str:
    return os.environ["LABBOOK_HOST"]


def now() -> float:
    """Seconds since the epoch by the host's clock."""
    return time.time()

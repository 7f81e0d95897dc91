"""Take away from a cloud what a ledger names, and nothing else: at a study's end, or after a kill."""

import time

from labbook.errors import InputError, LabbookError

ORDER = ("server", "volume", "image", "key", "flavor")   # what uses another goes before it
SECONDS, INTERVAL_S = 300, 1.0
# For so long what was asked for before a kill, and never heard of, is looked for: the cloud may
# still have been at it.
LOOK_S = 5.0


def remove(api, ledger, seconds: float = SECONDS) -> list[str]:
    """All of it, kind by kind; returns what could not be removed and why, a line each."""
    problems = []
    try:
        for kind in ORDER:
            problems += _remove(api, ledger, kind, seconds)
    except LabbookError as error:   # the cloud does not answer: the rest would not go either
        problems.append(str(error))
    return problems


def _remove(api, ledger, kind, seconds):
    began, why = time.monotonic(), {}
    pending = [entry for entry in ledger.left() if entry.kind == kind]
    seen = {entry.name for entry in pending if entry.ids is not None}
    while pending:
        passed = time.monotonic() - began
        pending = [e for e in pending if not _gone(api, ledger, e, seen, passed, why)]
        if pending and passed > seconds:
            return [f"{kind} {e.name} stays: {why.get(e.name, f'not gone within {seconds:g} s')}"
                    for e in pending]
        if pending:
            time.sleep(INTERVAL_S)
    return []


def _gone(api, ledger, entry, seen, passed, why) -> bool:
    """Whether nothing of the entry is there any more; else what is there is asked to go, again."""
    ids = api.find(entry.kind, entry.name, entry.ids or ())
    if ids:
        seen.add(entry.name)
    elif entry.name in seen or passed >= LOOK_S:
        ledger.strike_entry(entry)
        return True
    for one in ids:
        try:
            api.delete(entry.kind, one)
        except InputError:              # credentials, or leave: asking again would not help
            raise
        except LabbookError as error:   # in use yet: it is asked again
            why[entry.name] = str(error)
    return False

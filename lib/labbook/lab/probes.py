"""Which kernel features a lab can use here, by trying each one in a scratch namespace.

Probes run as root (`sudo -n` for other users), in parallel. Successes are cached until the next
boot; what is missing is tried again, since it may have been installed meanwhile.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from labbook.errors import InputError
from labbook.lab import deadline, locks
from labbook.lab.features import PROBES, ROOT_REMEDY, Missing, clear_leftovers
from labbook.lab.finding import Finding
from labbook.lab.kernel import find_tools

CACHE = Path("/run/labbook/probes.json")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SECONDS = 100    # for all; they take less than one
LOCK_SECONDS = 60   # of these, for another's tries to end
NAMES = tuple(PROBES)
LIB = Path(__file__).resolve().parents[2]
PROGRAM = ("import sys; sys.path.insert(0, sys.argv[1]); "
           "from labbook.lab.probes import main; main(sys.argv[2:])")

# Its absence is cached too: it is common, and a delay line replaces it.
OPTIONAL = {"netem"}
OF_THIS_USER = {"root"}     # not cached: it depends on the user


def probe(name: str) -> Finding:
    """Try one feature, one of NAMES."""
    return probes([name])[name]


def probes(names=None, again: bool = False) -> dict[str, Finding]:
    """A Finding for each of `names` (all when None); `again`: ignore the cache.

    `found` says what is there or what went wrong.
    """
    names = list(NAMES if names is None else names)
    for name in names:
        if name not in NAMES:
            raise InputError(f"no probe {name!r}", key="probe", allowed=NAMES)
    known = {} if again else _cached()
    tried = _as_root([name for name in names if name not in known])
    return {name: tried.get(name) or known[name] for name in names}


def main(names) -> None:
    """Run probes as root: print JSON, update the cache. A lock keeps out parallel runs."""
    find_tools()
    os.umask(0o022)     # others read the answers, whatever the caller's mask
    try:
        with locks.alone("probes", LOCK_SECONDS, "tries what labs need"), ThreadPoolExecutor(8) as pool:
            clear_leftovers()
            tried = dict(zip(names, pool.map(_try, names)))
            clear_leftovers()
    except OSError as error:
        sys.exit(str(error))
    _update_cache(tried)
    json.dump([asdict(p) for p in tried.values()], sys.stdout)


def _as_root(names) -> dict[str, Finding]:
    if not names:
        return {}
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(LIB), *names]
    if os.geteuid() != 0:
        command = ["sudo", "-n", *command]
    try:
        _, output, complaint = deadline.to_its_end(command, "", SECONDS)
        return {fields["name"]: Finding(**fields) for fields in json.loads(output)}
    except (OSError, ValueError) as error:
        reason = str(error) if not isinstance(error, ValueError) else complaint.strip()[-300:]
        return {name: Finding("", name, False, "", f"not tried: {reason}", ROOT_REMEDY) for name in names}


def _try(name) -> Finding:
    attempt, remedy = PROBES[name]
    try:
        return Finding("", name, True, "", attempt() or "works")
    except Missing as missing:
        return Finding("", name, False, "", str(missing), missing.remedy or remedy)
    except OSError as error:
        return Finding("", name, False, "", str(error), remedy)


def _cached() -> dict[str, Finding]:
    try:
        cache = json.loads(CACHE.read_text())
        if cache["boot"] != BOOT_ID.read_text():
            return {}
        known = {fields["name"]: Finding(**fields) for fields in cache["probes"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {name: p for name, p in known.items()
            if name in OPTIONAL or p.ok and name not in OF_THIS_USER}


def _update_cache(tried) -> None:
    known = _cached() | tried
    cache = {"boot": BOOT_ID.read_text(), "probes": [asdict(p) for p in known.values()]}
    with suppress(OSError):
        CACHE.parent.mkdir(mode=0o755, exist_ok=True)
        partial = CACHE.with_name(f"{CACHE.name}.{os.getpid()}")
        partial.write_text(json.dumps(cache))
        partial.chmod(0o644)
        partial.rename(CACHE)

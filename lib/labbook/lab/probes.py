"""Which kernel features a lab can use here: found by trying each in a scratch namespace.

Tried by root (`sudo -n` for other users), all at once, and remembered until the next boot, except
for what is missing: that is tried again, since you may have installed it meanwhile.
"""

import fcntl
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from labbook.errors import InputError
from labbook.lab.features import PROBES, ROOT_REMEDY, Missing, clear_leftovers
from labbook.lab.finding import Finding
from labbook.lab.local.kernel import find_tools

CACHE = Path("/run/labbook/probes.json")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SECONDS = 100    # for all; they take less than one
NAMES = tuple(PROBES)
LIB = Path(__file__).resolve().parents[2]
PROGRAM = ("import sys; sys.path.insert(0, sys.argv[1]); "
           "from labbook.lab.probes import main; main(sys.argv[2:])")

# Its absence is ordinary, so that it is remembered too: a delay line then stands in.
DISPENSABLE = {"netem"}
OF_THIS_USER = {"root"}     # what another user found out says nothing


def probe(name: str) -> Finding:
    """Whether this machine has the feature `name`, one of NAMES."""
    return probes([name])[name]


def probes(names=None, again: bool = False) -> dict[str, Finding]:
    """All of `names` (all when None), tried together; `again`: also what is remembered."""
    names = list(NAMES if names is None else names)
    for name in names:
        if name not in NAMES:
            raise InputError(f"no probe {name!r}", key="probe", allowed=NAMES)
    known = {} if again else _remembered()
    tried = _as_root([name for name in names if name not in known])
    return {name: tried.get(name) or known[name] for name in names}


def main(names) -> None:
    """Tried as root: answers with JSON, and remembers. One at a time, which the lock sees to."""
    find_tools()
    CACHE.parent.mkdir(mode=0o755, exist_ok=True)
    with open(CACHE.with_suffix(".lock"), "w") as lock, ThreadPoolExecutor(8) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        clear_leftovers()
        tried = dict(zip(names, pool.map(_try, names)))
    _remember(tried)
    json.dump([asdict(p) for p in tried.values()], sys.stdout)


def _as_root(names) -> dict[str, Finding]:
    if not names:
        return {}
    command = [sys.executable, "-S", "-E", "-c", PROGRAM, str(LIB), *names]
    if os.geteuid() != 0:
        command = ["sudo", "-n", *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        return {fields["name"]: Finding(**fields) for fields in json.loads(done.stdout)}
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        said = str(error) if not isinstance(error, ValueError) else done.stderr.strip()[-300:]
        return {name: Finding("", name, False, "", f"not tried: {said}", ROOT_REMEDY) for name in names}


def _try(name) -> Finding:
    attempt, remedy = PROBES[name]
    try:
        return Finding("", name, True, "", attempt() or "works")
    except Missing as missing:
        return Finding("", name, False, "", str(missing), missing.remedy or remedy)
    except OSError as error:
        return Finding("", name, False, "", str(error), remedy)


def _remembered() -> dict[str, Finding]:
    try:
        noted = json.loads(CACHE.read_text())
        if noted["boot"] != BOOT_ID.read_text():
            return {}
        known = {fields["name"]: Finding(**fields) for fields in noted["probes"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {name: p for name, p in known.items()
            if name in DISPENSABLE or p.ok and name not in OF_THIS_USER}


def _remember(tried) -> None:
    known = _remembered() | tried
    noted = {"boot": BOOT_ID.read_text(), "probes": [asdict(p) for p in known.values()]}
    with suppress(OSError):
        CACHE.parent.mkdir(mode=0o755, exist_ok=True)
        partial = CACHE.with_name(f"{CACHE.name}.{os.getpid()}")
        partial.write_text(json.dumps(noted))
        partial.chmod(0o644)
        partial.rename(CACHE)

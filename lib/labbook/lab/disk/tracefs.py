"""Instances of the kernel's tracing: a lab host whose disk is traced has one, named after both.

An instance is the machine's, not the host's, and outlives who made it; so it is in the journal
before it is made. Root's, with the standard library alone.
"""

import subprocess
from pathlib import Path

from labbook.lab.journal import Journal

KIND = "trace"      # of entries in a journal: {"made": "trace", "instance": name}
FOLDER = "/sys/kernel/tracing"
# Run it in a mount namespace of its own, or tracing may stay where everybody sees it.
MOUNT = f"[ -d {FOLDER}/instances ] || mount -t tracefs tracefs {FOLDER}"
EVENTS = "block_rq_issue block_bio_queue"
TRY = f"""{{ {MOUNT}; }} && for event in {EVENTS}; do
[ -d {FOLDER}/events/block/$event ] || {{ echo no event $event >&2; exit 1; }}; done"""
REMOVE = f"""{{ {MOUNT}; }} 2> /dev/null || exit 0
cd {FOLDER}/instances && for name in "$@"; do [ ! -d "$name" ] || rmdir "$name" || exit 1; done"""


def instance(lab: str, host: str) -> str:
    return f"labbook-{lab}-{host}"


def make(place: str, name: str) -> dict:
    """Write the instance down, once, in the journal of folder `place`, before a tracer makes it."""
    journal = Journal(Path(place))
    if name not in [entry["instance"] for entry in journal.of(KIND)]:
        journal.write(KIND, instance=name)
    return {"instance": name}


def undo(*names: str) -> None:
    """Remove instances that are there, with all that they recorded; OSError while one is read."""
    done = subprocess.run(["unshare", "--mount", "sh", "-c", REMOVE, "sh", *names],
                          capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"tracing instances {' '.join(names)}: {done.stderr.strip()}")


def found(prefix: str) -> list[str]:
    """Names of instances that begin so; none where the kernel has no tracing."""
    look = f"{{ {MOUNT}; }} 2> /dev/null && ls {FOLDER}/instances; true"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", look], capture_output=True, text=True)
    return [name for name in done.stdout.split() if name.startswith(prefix)]

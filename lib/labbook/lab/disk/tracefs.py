"""Instances of the kernel's tracing (tracefs). A lab host whose disk is traced has one.

An instance belongs to the machine, not to the host, and outlives the process that made it; so it is
written into the journal first. Runs as root, with the standard library alone.
"""

from pathlib import Path

from labbook.lab import deadline
from labbook.lab.journal import Journal

KIND = "trace"      # in a journal: {"made": "trace", "instance": name}
FOLDER = "/sys/kernel/tracing"
# To be run in a mount namespace, or the mount would stay visible to everybody.
MOUNT = f"[ -d {FOLDER}/instances ] || mount -t tracefs tracefs {FOLDER}"
EVENTS = "block_rq_issue block_bio_queue"
TRY = f"""{{ {MOUNT}; }} && for event in {EVENTS}; do
[ -d {FOLDER}/events/block/$event ] || {{ echo no event $event >&2; exit 1; }}; done"""
REMOVE = f"""{{ {MOUNT}; }} 2> /dev/null || exit 0
cd {FOLDER}/instances && for name in "$@"; do [ ! -d "$name" ] || rmdir "$name" || exit 1; done"""


def instance(lab: str, host: str) -> str:
    return f"labbook-{lab}-{host}"


def make(place: str, name: str) -> dict:
    """Write an instance, once, into the journal in folder `place`; the tracer makes it later."""
    journal = Journal(Path(place))
    if name not in [entry["instance"] for entry in journal.of(KIND)]:
        journal.write(KIND, instance=name)
    return {"instance": name}


def undo(*names: str) -> None:
    """Remove those of these instances that exist; OSError while one is being read."""
    deadline.run("unshare", "--mount", "sh", "-c", REMOVE, "sh", *names,
                 name=f"tracing instances {' '.join(names)}")


def instances(prefix: str) -> list[str]:
    """Names of existing instances with this prefix; [] where the kernel has no tracing."""
    look = f"{{ {MOUNT}; }} 2> /dev/null && ls {FOLDER}/instances; true"
    output = deadline.run("unshare", "--mount", "sh", "-c", look)
    return [name for name in output.split() if name.startswith(prefix)]

"""A lab's own cores: no other lab gets them while it is up.

Two labs that measure on one core bias each other. So the helper gives cores out under one lock for
all labs, and each lab's journal has its own. Labs may share if both were brought up with leave to
share; what such a lab records says so (`shared_cores`).
"""

import os
import pwd
from pathlib import Path

from labbook.lab import kernel

SHARE = "LABBOOK_SHARE_CORES"   # in the environment: leave to share, for labs that measure nothing


def are_shared() -> bool:
    """Whether labs that are brought up now may share cores."""
    return os.environ.get(SHARE, "") not in ("", "0")


def choose(count: int, others: list[dict], share: bool, cpus=None) -> list[int]:
    """`count` cores out of `cpus` (default: this machine's) that no other lab has for itself.

    `others`: the other labs: lab, study, uid, pid, cores, share_cores and keep. Of shared cores, those that
    fewest labs have are taken first; then those of which no thread of the same core is in use, since two threads of
    one core slow each other. ValueError says who has them and what to do.
    """
    cpus = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    if count > len(cpus):
        raise ValueError(f"the lab's hosts ask for {count} cores, this machine has {len(cpus)}")
    barred = [other for other in others if not (share and other["share_cores"])]
    taken = {cpu for other in barred for cpu in other["cores"]}
    free = [cpu for cpu in cpus if cpu not in taken]
    if count > len(free):
        raise ValueError(_none_left(count, free, [o for o in barred if set(o["cores"]) & set(cpus)]))
    users, chosen = [cpu for other in others for cpu in other["cores"]], []
    beside = {cpu: threads(cpu) - {cpu} for cpu in free}
    for _ in range(count):
        chosen.append(min(set(free) - set(chosen), key=lambda cpu: (
            users.count(cpu), len(beside[cpu] & {*users, *chosen}), cpu)))
    return sorted(chosen)


def threads(cpu: int, folder: Path = Path("/sys/devices/system/cpu")) -> set[int]:
    """The CPUs that are threads of the same core; the CPU alone where the kernel does not say."""
    try:
        listed = (folder / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return {cpu}
    ends = (part.split("-") for part in listed.split(","))
    return {one for first, *last in ends for one in range(int(first), int((last or [first])[0]) + 1)}


def _none_left(count, free, holders) -> str:
    left = f"only {_listed(free)} is free" if free else "none is free"
    who = "; ".join(map(_holder, holders))
    return (f"the lab asks for {count} {'core' if count == 1 else 'cores'} of its own, and {left}: {who}. "
            f"Or let labs share cores, which their records say: {SHARE}=1")


def _holder(other) -> str:
    what = (f"lab {other['lab']} ({other['study']}) of user {_user(other['uid'])} "
            f"has {_listed(other['cores'])}")
    down = f"labbook down {other['lab']}"
    if other["keep"]:
        return f"{what}, and stays up until `{down}`"
    if kernel.start_time(other["pid"]) is None:
        return f"{what}, though its process has ended: `{down}` frees it"
    return f"{what}; wait for its process {other['pid']}, or end it"


def _listed(cpus) -> str:
    return f"{'core' if len(cpus) == 1 else 'cores'} {', '.join(map(str, cpus))}"


def _user(uid) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)

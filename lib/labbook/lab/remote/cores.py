"""Which processors of its real host a lab host has."""

from labbook.errors import LabError


def share(description, names: list[str], cpus: list[int], place: str) -> dict[str, list[int]]:
    """CPUs of the lab hosts `names`, all on the real host `place`, that ask for some.

    Those with `cores` have theirs for themselves. One with `cores_of` has as many as those hosts
    have together: theirs, as far as they are here, then any that nobody has, then others'.
    LabError when there are too few.
    """
    free, given = list(cpus), {}
    for name in names:
        count = description.host(name).limits.get("cores")
        if count:
            _check(count, free, cpus, place)
            given[name], free = free[:count], free[count:]
    shared = {name: _shared(description, name, given, free, cpus, place)
              for name in names if description.host(name).limits.get("cores_of")}
    return given | shared


def _shared(description, name, given, free, cpus, place):
    owners = description.host(name).limits["cores_of"]
    count = sum(description.host(owner).limits["cores"] for owner in owners)
    theirs = [cpu for owner in owners for cpu in given.get(owner, ())]
    order = list(dict.fromkeys([*theirs, *free, *cpus]))
    _check(count, order, cpus, place)
    return sorted(order[:count])


def _check(count, there, cpus, place):
    if count > len(there):
        raise LabError(f"{place}: the lab's hosts there ask for more cores than its {len(cpus)}",
                       remedy="Give their roles to other hosts in the environment file")


def listed(text: str) -> list[int]:
    """`0-2,8` -> [0, 1, 2, 8]."""
    out = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        out += range(int(first), int(last or first) + 1)
    return out

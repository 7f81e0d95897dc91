"""Which of a user's hosts becomes which host of a lab."""

from collections import Counter

from labbook.checks import did_you_mean
from labbook.errors import InputError, LabError
from labbook.lab.environment.inventory import RealHost


def match(description, environment) -> dict[str, RealHost]:
    """The real host of each lab host, by the lab host's name.

    A real host serves at most one lab host of each of its roles; the hosts of one site of the
    study come from one site of the environment, of the same name if that can be, and no two sites
    of the study from one. What is first in the files comes first. InputError names what lacks.
    """
    there = _sites(environment)
    wanted = {site: Counter(h.role for h in description.hosts if h.site == site)
              for site in description.sites}
    chosen = _assign(list(wanted), wanted, there)
    if chosen is None:
        raise _lacking(description, environment, wanted, there)
    free = {(site, role): iter([h for h in there[chosen[site]] if role in h.roles])
            for site, roles in wanted.items() for role in roles}
    return {h.name: next(free[h.site, h.role]) for h in description.hosts}


def _sites(environment) -> dict[str, list[RealHost]]:
    there = {}
    for host in environment.hosts:
        there.setdefault(host.site, []).append(host)
    return there


def _assign(sites, wanted, there, taken=()) -> dict[str, str] | None:
    """Site of the study -> site of the environment; back to another choice where the rest fails."""
    if not sites:
        return {}
    first, *rest = sites
    for place in sorted(there, key=lambda place: (place != first, place in wanted)):
        if place in taken or _lacks(wanted[first], there[place]):
            continue
        others = _assign(rest, wanted, there, (*taken, place))
        if others is not None:
            return {first: place, **others}
    return None


def _lacks(roles: Counter, hosts) -> Counter:
    """How many hosts of which role are too few."""
    return roles - Counter(role for host in hosts for role in host.roles)


def _lacking(description, environment, wanted, there) -> InputError:
    study = f"study {description.name}"
    problems = []
    for site, roles in wanted.items():
        place = min(there, key=lambda p: (_lacks(roles, there[p]).total(), p != site))
        problems += [
            f"{study} needs {_hosts(roles[role])} of role {role} in one site (its {site}); "
            f"site {place} here has {roles[role] - few}, {few} too few{_meant(role, there)}"
            for role, few in _lacks(roles, there[place]).items()]
    if not problems:
        problems = [f"{study} has the sites {', '.join(wanted)}, each needing a site of its own; "
                    f"no way was found to place them in {', '.join(there)}"]
    return InputError("; ".join(problems), file=environment.file, key="hosts",
                      allowed="hosts whose `roles` and `site` make that up; "
                              "a host serves once for each of its roles")


def _meant(role, there) -> str:
    """A role of a host that may be this one, misspelt."""
    roles = {r for hosts in there.values() for host in hosts for r in host.roles}
    return "" if role in roles else did_you_mean(role, sorted(roles))


def _hosts(count) -> str:
    return "1 host" if count == 1 else f"{count} hosts"


def share_cores(description, names: list[str], cpus: list[int], place: str) -> dict[str, list[int]]:
    """CPUs of the lab hosts `names`, all on the real host `place`, that ask for some.

    Those with `cores` have theirs for themselves. One with `cores_of` has as many as those hosts
    have together: theirs, as far as they are here, then any that nobody has, then others'.
    LabError when there are too few.
    """
    free, given = list(cpus), {}
    for name in names:
        count = description.host(name).limits.get("cores")
        if count:
            _check_enough(count, free, cpus, place)
            given[name], free = free[:count], free[count:]
    shared = {name: _shared(description, name, given, free, cpus, place)
              for name in names if description.host(name).limits.get("cores_of")}
    return given | shared


def _shared(description, name, given, free, cpus, place):
    owners = description.host(name).limits["cores_of"]
    count = sum(description.host(owner).limits["cores"] for owner in owners)
    theirs = [cpu for owner in owners for cpu in given.get(owner, ())]
    order = list(dict.fromkeys([*theirs, *free, *cpus]))
    _check_enough(count, order, cpus, place)
    return sorted(order[:count])


def _check_enough(count, there, cpus, place):
    if count > len(there):
        raise LabError(f"{place}: the lab's hosts there ask for more cores than its {len(cpus)}",
                       remedy="Give their roles to other hosts in the environment file")


def parse_cpus(text: str) -> list[int]:
    """`0-2,8` -> [0, 1, 2, 8]."""
    out = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        out += range(int(first), int(last or first) + 1)
    return out

"""Assign a lab's hosts to the user's hosts, and to their CPUs."""

from collections import Counter

from labbook.checks import did_you_mean
from labbook.errors import InputError, LabError
from labbook.lab.environment.inventory import RealHost


def match(description, environment) -> dict[str, RealHost]:
    """{lab host's name: RealHost}.

    A real host serves at most one lab host of each of its roles. All hosts of a study's site come
    from one site of the environment, if possible of the same name; two sites of the study never
    share one. The order in the files decides. InputError says what is missing.
    """
    there = _sites(environment)
    wanted = {site: Counter(h.role for h in description.hosts if h.site == site)
              for site in description.sites}
    chosen = _assign(list(wanted), wanted, there)
    if chosen is None:
        raise _no_match(description, environment, wanted, there)
    free = {(site, role): iter([h for h in there[chosen[site]] if role in h.roles])
            for site, roles in wanted.items() for role in roles}
    return {h.name: next(free[h.site, h.role]) for h in description.hosts}


def _sites(environment) -> dict[str, list[RealHost]]:
    there = {}
    for host in environment.hosts:
        there.setdefault(host.site, []).append(host)
    return there


def _assign(sites, wanted, there, taken=()) -> dict[str, str] | None:
    """{site of the study: site of the environment} by backtracking; None when there is none."""
    if not sites:
        return {}
    first, *rest = sites
    for place in sorted(there, key=lambda place: (place != first, place in wanted)):
        if place in taken or _missing_roles(wanted[first], there[place]):
            continue
        others = _assign(rest, wanted, there, (*taken, place))
        if others is not None:
            return {first: place, **others}
    return None


def _missing_roles(roles: Counter, hosts) -> Counter:
    """How many hosts of which role are missing."""
    return roles - Counter(role for host in hosts for role in host.roles)


def _no_match(description, environment, wanted, there) -> InputError:
    study = f"study {description.name}"
    problems = []
    for site, roles in wanted.items():
        place = min(there, key=lambda p: (_missing_roles(roles, there[p]).total(), p != site))
        problems += [
            f"{study} needs {_hosts(roles[role])} of role {role} in one site (its {site}); "
            f"site {place} here has {roles[role] - few}, {few} too few{_meant(role, there)}"
            for role, few in _missing_roles(roles, there[place]).items()]
    if not problems:
        problems = [f"{study} has the sites {', '.join(wanted)}, each needing a site of its own; "
                    f"no way was found to place them in {', '.join(there)}"]
    return InputError("; ".join(problems), file=environment.file, key="hosts",
                      allowed="hosts whose `roles` and `site` make that up; "
                              "a host serves once for each of its roles")


def _meant(role, there) -> str:
    """A suggestion when the role looks like a misspelt one."""
    roles = {r for hosts in there.values() for host in hosts for r in host.roles}
    return "" if role in roles else did_you_mean(role, sorted(roles))


def _hosts(count) -> str:
    return "1 host" if count == 1 else f"{count} hosts"


def share_cores(description, names: list[str], cpus: list[int], place: str) -> dict[str, list[int]]:
    """{name: CPUs} for those of the lab hosts `names`, all on the real host `place`, that ask for some.

    A host with `cores` has its CPUs for itself. One with `cores_of` gets as many CPUs as those hosts
    have together: theirs, as far as they are on this real host, then free ones, then any others.
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

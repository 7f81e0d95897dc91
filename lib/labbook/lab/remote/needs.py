"""What a lab needs of each of the user's hosts, and whether their owner allows it."""

from dataclasses import dataclass, field

from labbook.errors import InputError
from labbook.lab.disk import modelled
from labbook.lab.environment.schema import ALLOW
from labbook.lab.link.firewall import NO_RATE

LIMITS = ("cores", "cores_of", "quota", "memory")


@dataclass
class HostRequest:
    """What lab.yml asks of one real host, for all lab hosts that it serves.

    of: {permission: purposes}; cores: CPUs; memory_bytes: the largest limit, since not all lab hosts
    of a real host work at once; disk_bytes: the sum of the disks that are made on it; modelled: whether
    one of them has a model.
    """

    of: dict[str, list[str]] = field(default_factory=dict)
    cores: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    modelled: bool = False

    def add(self, kind, what):
        if what not in self.of.setdefault(kind, []):
            self.of[kind].append(what)


@dataclass
class HostNeeds:
    """What one real host must have.

    `request`: what lab.yml asks for; Debian `packages` (`a | b`: either), `commands` and `folders` of
    systems' files, each with the reason; `programs`: the library and its packages; `python`: any
    Python; `disk_bytes` below its root folder.
    """

    request: HostRequest = field(default_factory=HostRequest)
    packages: dict[str, str] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    programs: bool = False
    python: bool = False
    disk_bytes: int = 0


def named_packages(description) -> dict[str, str]:
    """{package: reason} for the packages that a study's lab.yml names, which all its hosts need."""
    return {package: "named in the study's lab.yml"
            for package in description.needs.get("packages", ())}


def modelled_packages(request: HostRequest) -> dict[str, str]:
    """{package: reason} for a host that gets modelled disks."""
    return (dict.fromkeys(modelled.PACKAGES, "the daemon of modelled disks is compiled there")
            if request.modelled else {})


def host_requests(description, matched) -> dict[str, HostRequest]:
    """{real host's name: HostRequest}; `matched` is from assign.match."""
    found = {real.name: HostRequest() for real in matched.values()}
    for host in description.hosts:
        mine, limits = found[matched[host.name].name], host.limits
        given = [key for key in LIMITS if limits.get(key)]
        given += ["disk"] * bool({"iops", "mb_per_s"} & set(limits.get("disk") or {}))
        if given:
            mine.add("limits", f"{host.name} ({', '.join(given).replace('cores_of', 'cores')})")
        if limits.get("disk"):
            mine.add("disk", f"the disk of {host.name}")
            mine.disk_bytes += limits["disk"]["size"]
            mine.modelled |= "model" in limits["disk"]
        if limits.get("disk", {}).get("trace"):
            mine.add("trace", f"the disk of {host.name}")
        if limits.get("fuse"):
            mine.add("fuse", host.name)
        mine.memory_bytes = max(mine.memory_bytes, limits.get("memory", 0))
    for link in description.links:
        if any(value for key, value in link.items() if key != "between"):
            for host in description.hosts:
                if host.site in link["between"]:
                    found[matched[host.name].name].add("shape", f"link {' - '.join(link['between'])}")
    for name, count in _cores(description, matched).items():
        found[name].cores = count
    return found


def require_allowed(description, matched, environment) -> None:
    """InputError that names all permissions that the lab needs and the environment file lacks."""
    for link in description.links:
        if link.get("rate_mbit"):
            raise InputError(f"the link {' - '.join(link['between'])} of study {description.name} has "
                             "a rate", file=environment.file, key="provider", allowed=NO_RATE)
    reals = {real.name: real for real in matched.values()}
    refused = [(reals[name], kind, what) for name, asks in host_requests(description, matched).items()
               for kind, what in asks.of.items() if not reals[name].may(kind)]
    if not refused:
        return
    lines = [f"{'' if i == 0 else f'{real.entry}.allow: '}study {description.name} asks for {kind}: "
             f"{ALLOW[kind]}, for {', '.join(what)}" for i, (real, kind, what) in enumerate(refused)]
    real = refused[0][0]
    raise InputError("\n  ".join(lines), file=environment.file, key=f"{real.entry}.allow",
                     allowed=f"now {_listed(refused[0][0].allow)}; add what you agree to, of "
                             f"{', '.join(ALLOW)}")


def _cores(description, matched) -> dict[str, int]:
    """{real host's name: CPUs it must have}: the sum of its lab hosts' own cores, and at least as
    many as any lab host on it shares with others."""
    own = {real.name: 0 for real in matched.values()}
    for host in description.hosts:
        own[matched[host.name].name] += host.limits.get("cores", 0)
    for host in description.hosts:
        together = sum(description.host(owner).limits["cores"]
                       for owner in host.limits.get("cores_of", ()))
        name = matched[host.name].name
        own[name] = max(own[name], together)
    return own


def _listed(allow) -> str:
    return ", ".join(kind for kind in ALLOW if kind in allow) or "nothing"

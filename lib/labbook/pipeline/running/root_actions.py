"""The actions as root of bringing a lab up on this machine, in words: one by one, or each kind once."""

from labbook.lab.description import LabDescription


def every(lab: LabDescription) -> list[str]:
    """A line for each action."""
    names = ", ".join(host.name for host in lab.hosts)
    lines = [*_first(lab, f" ({names})"), *map(_link, lab.links)]
    for host in lab.hosts:
        lines += [f"{kind.replace('HOSTS', host.name)}{of}" for kind, of in _of_host(host)]
    return lines


def summary(lab: LabDescription) -> list[str]:
    """A line for each kind of action, with the number of hosts or links."""
    links = dict.fromkeys(map(_shape, lab.links))
    lines = _first(lab)
    for shape in links:
        alike = [link for link in lab.links if _shape(link) == shape]
        lines.append(_link(alike[0]) if len(alike) == 1 else f"{len(alike)} links{shape}")
    hosts = {}
    for host in lab.hosts:
        for kind, of in _of_host(host):
            hosts.setdefault(kind, {}).setdefault(of, []).append(host.name)
    for kind, each in hosts.items():
        parts = [f"{names[0] if len(names) == 1 else f'{len(names)} hosts'}{of}" for of, names in each.items()]
        lines.append(kind.replace("HOSTS", "; ".join(parts)))
    return lines


def _first(lab, named="") -> list[str]:
    return [f"{len(lab.hosts)} hosts in their own namespaces{named}, a bridge a site",
            "control groups that freeze hosts which are not measured"]


def _link(link) -> str:
    return f"a link {' - '.join(link['between'])}{_shape(link)}"


def _shape(link) -> str:
    settings = ", ".join(f"{key} {value}" for key, value in link.items() if key != "between" and value)
    return f" shaped to {settings}" if settings else ""


def _of_host(host) -> list[tuple[str, str]]:
    """(action on HOSTS, what of it is this host's) of each of a host's own."""
    disk, found = host.limits.get("disk") or {}, []
    limits = [key for key, value in host.limits.items() if value and key not in ("disk", "fuse")]
    if limits:
        found.append(("control group of HOSTS", f": {', '.join(limits).replace('cores_of', 'cores')}"))
    if disk:
        model = f", on a file that a daemon serves as slowly as {disk['model']}" if disk.get("model") else ""
        found.append(("a file system on a loop device for HOSTS", model))
    if disk.get("trace"):
        found.append(("the kernel's trace of requests to the disk of HOSTS", ""))
    if host.limits.get("fuse"):
        found.append(("FUSE file systems, visible to HOSTS only", ""))
    return found

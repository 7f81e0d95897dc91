"""A lab's description, as written in data/papers/NAME/lab.yml: hosts, sites, links, limits, needs."""

import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from labbook.checks import check, load_yaml
from labbook.errors import InputError
from labbook.lab import quantities
from labbook.lab.disk import loop_device, models
from labbook.lab.disk.models import ORDERS
from labbook.lab.link.shaping import Shape

# What fits into one lab's range of addresses (a /20), also where every site is linked to every other.
MOST_SITES, MOST_HOSTS = 14, 240
MOST_ADDRESSES = 245    # of hosts and of the routers that come with links, on the control network
LEAST_QUOTA = 0.01  # of one CPU's time
LEAST_BYTES = 16 << 20      # of a host's memory or disk: less is a number that lacks its unit
NAME = r"^[a-z][a-z0-9-]{0,11}$"
# what a lab has in its folder on a host, where the folders of its hosts lie too
OF_THE_LAB = {"apt", "artifacts", "journal", "programs", "software", "stays-up"}
SIZE = {"type": ["string", "integer"], "description": "a size such as 512M or 4G"}
SHARE = {"type": "number", "minimum": 0, "description": "a number from 0 up"}

DISK = {
    "type": "object", "additionalProperties": False, "required": ["size"],
    "properties": {
        "size": SIZE,
        "iops": {"type": "integer", "minimum": 1},
        "mb_per_s": {"type": "number", "exclusiveMinimum": 0},
        "scheduler": {"enum": ["none", "mq-deadline", "bfq", "kyber"]},
        "read_ahead_kb": {"type": "integer", "minimum": 0, "maximum": loop_device.READ_AHEADS_KB[-1],
                          "multipleOf": loop_device.READ_AHEADS_KB.step, "description": loop_device.READ_AHEADS},
        "model": {"type": "string"},    # of its time: a name in disk/models.yml
        "order": {"enum": list(ORDERS)},    # of a modelled disk's waiting requests
        # where the disk has its model in these experiments alone; otherwise it has it in all
        "modelled_in": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
        "trace": {"type": "boolean"},   # its requests will be traced: needs permission and kernel support
    },
}
LIMITS = {
    "type": "object", "additionalProperties": False,
    "properties": {
        "cores": {"type": "integer", "minimum": 1},
        # uses the cores of that host, or of all these
        "cores_of": {"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1,
                     "uniqueItems": True, "description": "a host's name, or a list of them"},
        "quota": {"type": "number", "minimum": LEAST_QUOTA},
        "memory": SIZE,
        "disk": DISK,
        "fuse": {"type": "boolean"},    # FUSE file systems are mounted there
    },
}
HOST = {
    "type": "object", "additionalProperties": False, "required": ["site", "role"],
    "properties": {
        "site": {"type": "string"},
        "role": {"type": "string", "pattern": NAME},
        "limits": LIMITS,
        # where the host is of these experiments alone; otherwise it is of all
        "experiments": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
    },
}
LINK = {
    "type": "object", "additionalProperties": False, "required": ["between"],
    "properties": {
        "between": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
        "rtt_ms": SHARE, "jitter_ms": SHARE, "loss": SHARE, "rate_mbit": SHARE,
    },
}
SYSTEM = {
    "type": "object", "additionalProperties": False, "required": ["name", "host"],
    "properties": {
        "name": {"type": "string"}, "settings": {"type": "object"},
        "host": {"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1,
                 "description": "a host's name, a range such as db[1-3], or a list of these"},
        "label": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},  # when several systems have one name
    },
}
LONGEST_S = 365 * 86400     # a bound, since YAML's .inf is a number
MINUTES = {"type": "number", "minimum": 0, "maximum": LONGEST_S // 60, "description": "minutes, a year at most"}
NEEDS = {
    "type": "object", "additionalProperties": False,
    "properties": {
        "packages": {"type": "array", "items": {"type": "string"}},
        "memory": SIZE,
        "disk": {**SIZE, "type": [*SIZE["type"], "object"], "additionalProperties": False, "required": ["quick"],
                 "properties": {"quick": SIZE, "full": SIZE},
                 "description": "a size such as 4G, or one a profile: {quick: 4G, full: 30G}"},
        "minutes": {
            "type": "object", "additionalProperties": False,
            "properties": {"quick": MINUTES, "full": MINUTES},
        },
    },
}
QUICK = {
    "type": "object", "additionalProperties": False, "required": ["claims", "seconds"],
    "properties": {
        "claims": {"enum": ["headline", "paper", "all"]},
        "without": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},     # ids of claims
        "seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_S,
                    "description": "seconds above 0, a year at most"},
    },
}
SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["sites", "hosts"],
    "properties": {
        "sites": {"type": "array", "items": {"type": "string", "pattern": NAME},
                  "minItems": 1, "maxItems": MOST_SITES, "uniqueItems": True},
        "hosts": {"type": "object", "minProperties": 1, "additionalProperties": HOST},
        "links": {"type": "array", "items": LINK},
        "systems": {"type": "array", "items": SYSTEM},
        "needs": NEEDS,
        "quick": QUICK,     # the quick profile asks these claims until they are decided
    },
}


@dataclass(frozen=True)
class HostPlan:
    """A host as described. `limits` as in lab.yml, with sizes (`memory`, `disk.size`) in bytes and
    `cores_of` as a list; a modelled disk also has its `order` and the `figures` of its model. `experiments`: for
    which the host is there; none stands for all."""

    name: str
    site: str
    role: str
    limits: dict = field(default_factory=dict)
    experiments: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabDescription:
    """A parsed lab.yml. Each of `systems` is its entry there plus `hosts`, the names of its hosts. `quick`:
    {claims, seconds}, or None."""

    name: str
    sites: tuple[str, ...]
    hosts: tuple[HostPlan, ...]
    links: tuple[dict, ...] = ()
    systems: tuple[dict, ...] = ()
    needs: dict = field(default_factory=dict)
    quick: dict | None = None

    @classmethod
    def load(cls, path: Path) -> "LabDescription":
        """Read and check lab.yml; InputError names the file, the key and what is allowed."""
        return cls.parse(load_yaml(path), file=path, name=Path(path).parent.name)

    @classmethod
    def parse(cls, data: dict, *, file="lab.yml", name="lab") -> "LabDescription":
        """Check the parsed YAML of `file`, which errors name; `name` is the study's."""
        check(data, SCHEMA, file)
        hosts = tuple(_hosts(data, file))
        _check_links(data, hosts, file)
        _check_shared_cores(hosts, file)
        systems = tuple(_systems(data, {h.name for h in hosts if not h.experiments}, file))
        needs = {k: _sizes(v, file, f"needs.{k}") if k in ("memory", "disk") else v
                 for k, v in data.get("needs", {}).items()}
        return cls(name, tuple(data["sites"]), hosts, tuple(data.get("links", ())),
                   systems, needs, data.get("quick"))

    def of(self, experiment: str | None = None) -> "LabDescription":
        """The lab while this experiment is measured: without the hosts, and the models of disks, of other ones, and
        without the sites and links that have no hosts then."""
        hosts = tuple(replace(host, limits=_limits_in(experiment, host.limits)) for host in self.hosts
                      if not host.experiments or experiment in host.experiments)
        used = {host.site for host in hosts}
        return replace(self, hosts=hosts, sites=tuple(site for site in self.sites if site in used),
                       links=tuple(link for link in self.links if used.issuperset(link["between"])))

    @property
    def apart(self) -> set[str]:
        """The experiments that have hosts, or models of disks, of their own, and so a lab of their own."""
        return {one for host in self.hosts
                for one in (*host.experiments, *host.limits.get("disk", {}).get("modelled_in", ()))}

    def disk_bytes(self, profile: str = "quick") -> int:
        """Bytes of disk that a profile needs, by `needs.disk`; 0 where nothing is said."""
        disk = self.needs.get("disk", 0)
        return disk.get(profile, disk["quick"]) if isinstance(disk, dict) else disk

    def system(self, label: str) -> tuple[str, dict]:
        """Name and settings of a system, found by its label or else by its name. InputError where there is none."""
        known = {s.get("label", s["name"]): (s["name"], s.get("settings", {}))
                 for s in reversed(self.systems)}
        if label not in known:
            raise InputError(f"no system {label!r}", file=f"{self.name}/lab.yml", key="systems",
                             allowed=sorted(known))
        return known[label]

    @property
    def cores(self) -> int:
        """Total cores that hosts have for themselves."""
        return sum(h.limits.get("cores", 0) for h in self.hosts)

    def host(self, name: str) -> HostPlan:
        return next(h for h in self.hosts if h.name == name)


def _hosts(data, file):
    seen = set()
    for pattern, entry in data["hosts"].items():
        for name in expand(pattern, file):
            if name in seen:
                raise InputError("this host is described twice", file=file, key=f"hosts.{name}")
            seen.add(name)
            if entry["site"] not in data["sites"]:
                raise InputError(f"no site {entry['site']!r}", file=file,
                                 key=f"hosts.{pattern}.site", allowed=data["sites"])
            if name in OF_THE_LAB:
                raise InputError(f"the lab's own {name} lies beside the folders of its hosts", file=file,
                                 key=f"hosts.{pattern}", allowed="any other name")
            if entry["role"] == "router" or name.startswith("router-"):
                raise InputError("routers come with the links", file=file,
                                 key=f"hosts.{pattern}", allowed="any other name and role")
            yield HostPlan(name, entry["site"], entry["role"],
                           _limits(entry.get("limits", {}), file, f"hosts.{pattern}.limits"),
                           tuple(entry.get("experiments", ())))
    if len(seen) > MOST_HOSTS:
        raise InputError(f"{len(seen)} hosts", file=file, key="hosts", allowed=f"1 to {MOST_HOSTS}")


def expand(pattern: str, file="lab.yml", key=None) -> list[str]:
    """`db[1-3]` -> db1, db2, db3; a plain name -> itself. InputError for what is neither."""
    match = re.fullmatch(r"([a-z][a-z0-9-]*)(?:\[(\d+)-(\d+)\])?", str(pattern))
    if match and match[2] and int(match[3]) - int(match[2]) >= MOST_HOSTS:
        raise InputError(f"{pattern!r} is too many hosts", file=file, key=key or f"hosts.{pattern}",
                         allowed=f"1 to {MOST_HOSTS}")
    names = [] if not match else [match[1]] if match[2] is None else [
        f"{match[1]}{i}" for i in range(int(match[2]), int(match[3]) + 1)]
    if not names or not all(re.fullmatch(NAME, n) for n in names):
        raise InputError(f"{pattern!r} is not a host's name", file=file,
                         key=key or f"hosts.{pattern}",
                         allowed="a-z, 0-9 and -, at most 12 characters, or a range such as db[1-3]")
    return names


def _limits(limits, file, key) -> dict:
    limits = dict(limits)
    if not math.isfinite(limits.get("quota", 1)):
        raise InputError(f"{limits['quota']} is no share of a core", file=file, key=f"{key}.quota",
                         allowed=f"a number from {LEAST_QUOTA:g} up")
    if "memory" in limits:
        limits["memory"] = _bytes(limits["memory"], file, f"{key}.memory", LEAST_BYTES)
    if isinstance(limits.get("cores_of"), str):
        limits["cores_of"] = [limits["cores_of"]]
    if "disk" in limits:
        disk = limits["disk"]
        if not math.isfinite(disk.get("mb_per_s", 1)):
            raise InputError(f"{disk['mb_per_s']} is no rate", file=file, key=f"{key}.disk.mb_per_s",
                             allowed="a number above 0")
        limits["disk"] = {**disk, "size": _bytes(disk["size"], file, f"{key}.disk.size", LEAST_BYTES),
                          **_modelled(disk, file, f"{key}.disk")}
    return limits


def _limits_in(experiment: str | None, limits: dict) -> dict:
    """A host's limits while this experiment is measured."""
    disk = limits.get("disk", {})
    if "modelled_in" not in disk:
        return limits
    left_out = {"modelled_in"} | (set() if experiment in disk["modelled_in"] else {"model", "order", "figures"})
    return {**limits, "disk": {key: value for key, value in disk.items() if key not in left_out}}


def _modelled(disk, file, key) -> dict:
    """`order` and `figures` of a disk with a model."""
    if "model" not in disk:
        if "modelled_in" in disk:
            raise InputError("a disk without a model has none in any experiment", file=file,
                             key=f"{key}.modelled_in", allowed="a model beside it")
        if "order" in disk:
            raise InputError("the kernel orders the requests of a disk without a model", file=file,
                             key=f"{key}.order", allowed="scheduler, or a model beside the order")
        return {}
    model = models.find(disk["model"], file, f"{key}.model")
    return {"order": disk.get("order", model.order), "figures": model.figures()}


def _bytes(value, file, key, least=1) -> int:
    try:
        size = quantities.size_bytes(value)
    except ValueError as error:
        raise InputError(str(error), file=file, key=key, allowed=SIZE["description"]) from None
    if size < least:
        raise InputError(f"{value!r} is {quantities.size_text(size)}", file=file, key=key,
                         allowed=f"{quantities.size_text(least)} and more, {SIZE['description']}")
    return size


def _sizes(value, file, key) -> int | dict[str, int]:
    """Bytes of a size, or of one a profile."""
    if isinstance(value, dict):
        return {profile: _bytes(size, file, f"{key}.{profile}") for profile, size in value.items()}
    return _bytes(value, file, key)


def _check_shared_cores(hosts, file):
    owners = [h.name for h in hosts if "cores" in h.limits and not h.experiments]
    for host in hosts:
        for other in host.limits.get("cores_of", ()):
            if other not in owners:
                raise InputError(f"{other!r} has no cores of its own", file=file,
                                 key=f"hosts.{host.name}.limits.cores_of", allowed=owners)
        if {"cores", "cores_of"} <= set(host.limits):
            raise InputError("cores of its own, or those of another host", file=file,
                             key=f"hosts.{host.name}.limits", allowed="one of the two")


def _check_links(data, hosts, file):
    seen = set()
    for i, link in enumerate(data.get("links", ())):
        a, b = link["between"]
        for site in (a, b):
            if site not in data["sites"]:
                raise InputError(f"no site {site!r}", file=file, key=f"links.{i}.between",
                                 allowed=data["sites"])
        if a == b or frozenset((a, b)) in seen:
            raise InputError("a link joins two sites, once", file=file, key=f"links.{i}.between")
        seen.add(frozenset((a, b)))
        _check_shape(link, file, f"links.{i}")
    if (count := len(hosts) + len(linked := frozenset().union(*seen))) > MOST_ADDRESSES:
        raise InputError(f"{len(hosts)} hosts and {len(linked)} routers of linked sites", file=file, key="hosts",
                         allowed=f"{MOST_ADDRESSES} together, {count - MOST_ADDRESSES} hosts fewer")
    used = {h["site"] for h in data["hosts"].values()}
    empty = [s for s in data["sites"] if s not in used]
    if empty:
        raise InputError(f"no host in site {empty[0]!r}", file=file, key="sites")


def _check_shape(link, file, key):
    """Check a link's values before a lab is made."""
    try:
        Shape(**{name: value for name, value in link.items() if name != "between"})
    except InputError as error:
        raise InputError(error.message, file=file, key=f"{key}.{error.key}",
                         allowed=error.allowed) from None


def _systems(data, hosts, file):
    labels = [s.get("label", s["name"]) for s in data.get("systems", ())]
    for i, system in enumerate(data.get("systems", ())):
        if labels[i] in labels[:i] and "label" in system:
            raise InputError("two systems have this label", file=file, key=f"systems.{i}.label")
        yield {**system, "hosts": _host_names(system["host"], hosts, file, f"systems.{i}.host")}


def _host_names(patterns, hosts, file, key) -> list[str]:
    """Hosts that a name, a range or a list of these stands for, in that order."""
    names = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        for name in expand(pattern, file, key):
            if name not in hosts:
                raise InputError(f"no host {name!r}", file=file, key=key, allowed=sorted(hosts))
            if name in names:
                raise InputError(f"{name!r} is named twice", file=file, key=key)
            names.append(name)
    return names

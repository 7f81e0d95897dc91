"""An environment file (environments/*.yml): where labs run."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from labbook.checks import check, load_yaml
from labbook.errors import InputError
from labbook.lab.environment import clouds, inventory
from labbook.lab.environment.clouds import OwnCloud
from labbook.lab.environment.inventory import Jump, RealHost
from labbook.lab.environment.schema import LOCAL_PROGRAMS

# Reserved for benchmarks (RFC 2544); ordinary networks do not use it.
BENCHMARK_RANGE = "198.18.0.0/15"

PROVIDERS = ("namespaces", "ssh")
ANY = {"type": "object", "required": ["provider"], "properties": {"provider": {"enum": PROVIDERS}}}
NAMESPACES = {
    "type": "object", "additionalProperties": False,
    "properties": {
        "provider": {"const": "namespaces"},
        "range": {"type": "string", "description": "an IPv4 network such as 198.18.0.0/15"},
        "state": {"type": "string", "pattern": "^/", "description": "an absolute path"},
        "clouds": clouds.SCHEMA,
        "programs": LOCAL_PROGRAMS,
    },
}


@dataclass(frozen=True)
class Environment:
    """A parsed environment file.

    Provider `namespaces`: labs take their addresses from the block `range`; hosts' folders lie in
    `state`. Provider `ssh`: `hosts` and the `jumps` on the way to them. `clouds` replace what a study
    would bring up in its lab; `programs` (name: folder) replace our own benchmarks,
    and the kernel of the servers of a lab's own cloud.
    """

    name: str
    provider: str = "namespaces"
    range: str = BENCHMARK_RANGE
    state: str = "/var/lib/labbook"
    hosts: tuple[RealHost, ...] = ()
    jumps: tuple[Jump, ...] = ()
    clouds: tuple[OwnCloud, ...] = ()
    programs: dict = field(default_factory=dict)
    file: str = "environment.yml"   # what errors name

    @classmethod
    def load(cls, path: Path, *, keys: bool = True) -> "Environment":
        """Read and check a file; see parse."""
        return cls.parse(load_yaml(path), file=path, keys=keys)

    @classmethod
    def parse(cls, data: dict, *, file="environment.yml", keys: bool = True) -> "Environment":
        """Check the parsed YAML of `file`. InputError names the file, the key and what is allowed.

        `keys`: also check the files of keys, known hosts and clouds' credentials.
        """
        check(data, ANY, file)
        name = Path(file).stem
        own = clouds.parse(data.get("clouds", {}), file, keys)
        if data["provider"] == "ssh":
            hosts, jumps = inventory.parse(data, file, keys)
            return cls(name, "ssh", hosts=hosts, jumps=jumps, clouds=own,
                       programs=data.get("programs", {}), file=str(file))
        check(data, NAMESPACES, file)
        environment = cls(name, **{**data, "clouds": own}, file=str(file))
        _check_range(environment.range, file)
        inventory.check_root(PurePosixPath(environment.state), file, "state")
        return environment


def _check_range(text, file):
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as error:
        raise InputError(str(error), file=file, key="range",
                         allowed=NAMESPACES["properties"]["range"]["description"]) from None
    if not 8 <= network.prefixlen <= 20:
        why = ("too small: a lab takes a /20" if network.prefixlen > 20
               else "too large: this machine would lose its own routes")
        raise InputError(why, file=file, key="range", allowed="/8 to /20")

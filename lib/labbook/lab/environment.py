"""Where labs live: a file under environments/."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from labbook.checks import check, load_yaml
from labbook.errors import InputError

# RFC 2544 sets this range aside for measuring; ordinary networks do not use it.
BENCHMARK_RANGE = "198.18.0.0/15"

SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["provider"],
    "properties": {
        "provider": {"enum": ["namespaces"]},
        "range": {"type": "string", "description": "an IPv4 network such as 198.18.0.0/15"},
        "state": {"type": "string", "pattern": "^/", "description": "an absolute path"},
    },
}


@dataclass(frozen=True)
class Environment:
    """`range` is the block of addresses labs take theirs from; `state` where hosts' folders lie."""

    name: str
    provider: str = "namespaces"
    range: str = BENCHMARK_RANGE
    state: str = "/var/lib/labbook"

    @classmethod
    def load(cls, path: Path) -> "Environment":
        return cls.parse(load_yaml(path), file=path)

    @classmethod
    def parse(cls, data: dict, *, file="environment.yml") -> "Environment":
        check(data, SCHEMA, file)
        environment = cls(Path(file).stem, **data)
        _check_range(environment.range, file)
        return environment


def _check_range(text, file):
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as error:
        raise InputError(str(error), file=file, key="range",
                         allowed=SCHEMA["properties"]["range"]["description"]) from None
    if network.prefixlen > 20:
        raise InputError("too small: a lab takes a /20", file=file, key="range", allowed="/8 to /20")

"""A fleet file (environments/fleet.yml): the machines that measure together, and how SSH reaches them."""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from labbook import paths
from labbook.paths import LOCAL
from labbook.checks import check, load_yaml
from labbook.errors import InputError
from labbook.lab.environment import inventory
from labbook.lab.environment.schema import DEFAULTS, JUMP
from labbook.lab.ssh.login import Login

# What `labbook install --fleet` may do on a machine.
ALLOW = {
    "code": "copy this checkout's files to `checkout` there, and make its Python environment",
    "packages": "install the Debian packages, jars and Python packages that studies need (sudo)",
}
LOST_AFTER_S = 60
_OF_ALL = {
    "checkout": {"type": "string", "pattern": r"^/[A-Za-z0-9._/-]+$", "maxLength": 200, "description":
                 "an absolute path of letters, digits and . _ - /: the folder of the machine's own checkout"},
    "environment": {"type": "string", "pattern": r"^[A-Za-z0-9._/-]+\.yml$", "description":
                    f"an environment file with provider: namespaces, a path from the checkout such as {LOCAL}"},
    "allow": {"type": "array", "items": {"enum": list(ALLOW)}, "uniqueItems": True,
              "description": f"a list of {', '.join(ALLOW)}"},
    "studies": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1,
                "description": "names of studies that it may measure"},
}
NAME = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$", "description":
        "a letter or digit, then letters, digits and . _ -, at most 40 characters"}
WITHOUT = {"environment": LOCAL, "allow": [], "studies": None}
_LOGIN = JUMP["properties"]
_TOP = {**{key: DEFAULTS[key] for key in _LOGIN if key != "address"}, **_OF_ALL}
MACHINE = {"type": "object", "additionalProperties": False, "required": ["address"],
           "properties": {**_LOGIN, **_OF_ALL}}
SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["machines"],
    "properties": {
        "name": NAME,
        "lost_after_s": {"type": "integer", "minimum": 3, "maximum": 3600, "description": "3 to 3600 seconds"},
        **_TOP,
        "machines": {"type": "object", "minProperties": 1, "additionalProperties": MACHINE,
                     "description": "name: {address, ...}, one or more"},
        "jumps": {"type": "object", "additionalProperties": JUMP},
    },
}


@dataclass(frozen=True)
class FleetMachine:
    """`checkout`: its folder on the machine. `studies`: those that it may measure, None: all."""

    name: str
    login: Login
    checkout: PurePosixPath
    environment: str = LOCAL
    allow: frozenset = frozenset()
    studies: frozenset | None = None
    entry: str = ""

    def may(self, kind: str) -> bool:
        """Whether the file allows `kind`, a key of ALLOW."""
        return kind in self.allow


@dataclass(frozen=True)
class Fleet:
    """A parsed fleet file. `name`: of the folder of its records, by default the file's. lost_after_s: without an
    answer, after which a machine stops what it does, and its job is given to another."""

    name: str
    machines: tuple[FleetMachine, ...]
    lost_after_s: float = LOST_AFTER_S
    file: str = "fleet.yml"

    @property
    def folder(self) -> str:
        """Name of the folder of its records, in the place of a machine's id."""
        return f"fleet-{self.name}"

    @classmethod
    def load(cls, name) -> "Fleet":
        """Read and check a file, named from the working folder or the checkout; see parse."""
        file = paths.environment(name, "fleet file", "--fleet")
        return cls.parse(load_yaml(file), file)

    @classmethod
    def parse(cls, data, file="fleet.yml") -> "Fleet":
        """Check the parsed YAML of `file`. InputError names the file, the key and what is allowed."""
        if isinstance(data, dict) and "provider" in data:
            raise InputError("this is an environment, not a fleet", file=file, key="provider",
                             allowed="a file such as environments/fleet.example.yml; an environment goes with "
                                     "--environment")
        check(data, SCHEMA, file)
        places, _ = inventory.logins(data, file, "machines", _TOP)
        top = {**WITHOUT, **{key: data[key] for key in _OF_ALL if key in data}}
        machines = tuple(_machine(place, {**top, **data["machines"][place.name]}, file) for place in places)
        _check_twice(machines, file)
        return cls(_name(data, file), machines, data.get("lost_after_s", LOST_AFTER_S), str(file))


def _name(data: dict, file) -> str:
    """By default the file's own, which the schema has not seen."""
    name = data.get("name", Path(file).stem)
    if not re.fullmatch(NAME["pattern"], name):
        raise InputError(f"missing, and the file's own name, {name!r}, is no valid name", file=file, key="name",
                         allowed=NAME["description"])
    return name


def _machine(place, entry: dict, file) -> FleetMachine:
    if "checkout" not in entry:
        raise InputError("missing, here and at the top of the file", file=file, key=f"{place.entry}.checkout",
                         allowed=_OF_ALL["checkout"]["description"])
    folder = PurePosixPath(entry["checkout"])
    if ".." in folder.parts or len(folder.parts) < 3:
        raise InputError(f"{folder} cannot be a checkout", file=file, key=f"{place.entry}.checkout",
                         allowed="a folder of its own, such as /home/op/labbook")
    studies = entry["studies"]
    return FleetMachine(place.name, place.login, folder, entry["environment"], frozenset(entry["allow"]),
                        None if studies is None else frozenset(_known(studies, place, file)), place.entry)


def _known(studies, place, file) -> list:
    from labbook.pipeline.sources import notebooks

    there = notebooks.studies()
    for study in studies:
        if study not in there:
            raise InputError(f"no such study: {study}", file=file, key=f"{place.entry}.studies", allowed=there)
    return studies


def _check_twice(machines, file) -> None:
    """Refuse two entries for one machine, which would measure two things at a time."""
    seen = {}
    for one in machines:
        how = (one.login.address.lower(), one.login.port, one.login.jump)
        if how in seen:
            raise InputError(f"{one.login.address}, port {one.login.port}, is {seen[how]} already", file=file,
                             key=f"{one.entry}.address", allowed="one entry a machine")
        seen[how] = one.name

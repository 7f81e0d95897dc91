"""The user's own hosts in an environment file with `provider: ssh`."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from labbook.checks import check, did_you_mean
from labbook.errors import InputError
from labbook.lab.environment.key_files import check_files
from labbook.lab.environment.schema import DEFAULTS, SCHEMA
from labbook.lab.ssh.login import Login

NAME = r"[a-z0-9][a-z0-9.-]{0,62}"
WITHOUT = {"port": 22, "known_hosts": "~/.ssh/known_hosts", "python": "python3", "site": "lan",
           "jump": None, "allow": [], "shared_address": False}  # when neither the host nor the top of the file has it
OF_JUMPS = ("user", "key", "known_hosts")   # defaults at the top of the file that also apply to jumps
APART = ("an IPv4 address in a network of the lab's own, or shared_address: true if whoever "
         "reaches SSH there may call the lab's servers too")
SECRET = re.compile(r"pass|secret|token|become", re.I)
SYSTEM_FOLDERS = frozenset("bin boot dev etc lib lib32 lib64 libx32 proc run sbin sys usr".split())


@dataclass(frozen=True)
class Jump:
    """A jump host. `key` and `known_hosts` are absolute paths on this machine.

    `entry` is its place in the file, such as `jumps.bastion`, which messages name.
    """

    name: str
    address: str
    port: int
    user: str
    key: str
    known_hosts: str
    jump: "Jump | None" = None
    entry: str = ""

    @property
    def login(self) -> Login:
        return Login(self.address, self.user, self.key, self.known_hosts, self.port,
                     self.jump.login if self.jump else None)


@dataclass(frozen=True)
class RealHost(Jump):
    """A user's host. SSH uses `address`, servers and clients use `data` (IPv4); labs write to `root`.

    A lab places at most one lab host of each of `roles` here. `allow` are keys of schema.ALLOW.
    `shared_address`: servers may listen at the address that SSH uses.
    """

    data: str = ""
    root: PurePosixPath = PurePosixPath("/")
    python: str = "python3"
    site: str = "lan"
    roles: tuple[str, ...] = ()
    allow: frozenset[str] = frozenset()
    shared_address: bool = False

    def may(self, kind: str) -> bool:
        """Whether the environment file allows `kind`, a key of schema.ALLOW."""
        return kind in self.allow


def parse(data: dict, file, keys: bool = True) -> tuple[tuple[RealHost, ...], tuple[Jump, ...]]:
    """(hosts, jumps) in the file's order. InputError names the file, the key and what is allowed.

    `keys`: also check the files of keys and known hosts on this machine.
    """
    _refuse_secrets(data, file)
    check(data, SCHEMA, file)
    entries = _Entries(data, file)
    jumps = tuple(entries.jump(name) for name in data.get("jumps", {}))
    hosts = tuple(entries.host(name) for name in data["hosts"])
    _check_twice(hosts, file)
    if keys:
        for place in (*jumps, *hosts):
            check_files(place, file, entries.at)
    return hosts, jumps


def logins(data: dict, file, part: str, defaults) -> tuple[tuple[Jump, ...], tuple[Jump, ...]]:
    """(places, jumps): how SSH reaches the entries of data[part], of a file that was checked by its own schema, which
    has `defaults` for them. InputError as `parse` raises it, for files of keys and known hosts, too."""
    _refuse_secrets(data, file)
    entries = _Entries(data, file, part, defaults)
    jumps = tuple(entries.jump(name) for name in data.get("jumps", {}))
    places = tuple(entries.jump(name) for name in data[part])
    for place in (*jumps, *places):
        check_files(place, file, entries.at)
    return places, jumps


class _Entries:
    """Entries of the file, with defaults filled in and jump hosts resolved; `part`: the key of those that are no
    jumps."""

    def __init__(self, data, file, part="hosts", defaults=DEFAULTS):
        self.file, self.part, self.top = file, part, {k: data[k] for k in defaults if k in data}
        self.hosts, self.jumps = data[part], data.get("jumps", {})
        for part, entries in ((self.part, self.hosts), ("jumps", self.jumps)):
            for name in entries:
                self._check_name(part, name)

    def host(self, name) -> RealHost:
        entry = self._full(name)
        key, site = f"hosts.{name}", entry["site"]
        root = PurePosixPath(self._needed(entry, "root", key))
        check_root(root, self.file, self.at(name, "root"))
        return RealHost(
            **self._login(name, entry), data=self._data(entry, key), root=root,
            python=entry["python"], site=site, roles=tuple(entry["roles"]),
            allow=frozenset(entry["allow"]), shared_address=entry["shared_address"])

    def jump(self, name) -> Jump:
        return Jump(**self._login(name, self._full(name)))

    def at(self, name, what) -> str:
        """The key that errors name: in the host's own entry, or at the top when the default applies."""
        own = what in (self.jumps if name in self.jumps else self.hosts)[name] or what not in self.top
        return f"{self._entry(name)}.{what}" if own else what

    def _entry(self, name) -> str:
        return f"jumps.{name}" if name in self.jumps else f"{self.part}.{name}"

    def _full(self, name) -> dict:
        if name in self.jumps:
            top = {k: v for k, v in self.top.items() if k in OF_JUMPS}
            return {**WITHOUT, **top, **self.jumps[name]}
        full = {**WITHOUT, **self.top, **self.hosts[name]}
        if full["jump"] == name and "jump" not in self.hosts[name]:
            full["jump"] = None     # the default jump host is reached directly
        return full

    def _login(self, name, entry, through=()) -> dict:
        user, key = (self._needed(entry, what, self._entry(name)) for what in ("user", "key"))
        return {"name": name, "address": entry["address"], "port": entry["port"], "user": user,
                "key": _expanded(key), "known_hosts": _expanded(entry["known_hosts"]),
                "jump": self._jump(name, entry["jump"], (*through, name)),
                "entry": self._entry(name)}

    def _jump(self, name, jump, through) -> Jump | None:
        if jump is None:
            return None
        known = [*self.jumps, *(host for host in self.hosts if host != name)]
        if jump not in known and jump != name:
            raise InputError(f"no jump {jump!r}{did_you_mean(jump, known)}", file=self.file,
                             key=self.at(name, "jump"), allowed=known)
        if jump in through:
            raise InputError(f"leads in a circle: {' - '.join((*through, jump))}", file=self.file,
                             key=self.at(name, "jump"), allowed=[k for k in known if k not in through]
                             or "null")
        return Jump(**self._login(jump, self._full(jump), through))

    def _needed(self, entry, what, key):
        if entry.get(what) is None:
            raise InputError("missing, here and at the top of the file", file=self.file,
                             key=f"{key}.{what}", allowed=DEFAULTS[what]["description"])
        return entry[what]

    def _data(self, entry, key) -> str:
        given = entry.get("data", entry["address"])
        if given == entry["address"] and not entry["shared_address"]:
            raise InputError(f"servers would listen at {given}, SSH's address", file=self.file,
                             key=f"{key}.data", allowed=APART)
        try:
            return str(ipaddress.IPv4Address(given))
        except ValueError:
            problem = (f"{given!r} is no IPv4 address" if "data" in entry else
                       f"missing, and the address {given!r} cannot stand in for it")
            raise InputError(problem, file=self.file, key=f"{key}.data",
                             allowed="an IPv4 address of the host's own") from None

    def _check_name(self, part, name):
        if not re.fullmatch(NAME, name) if isinstance(name, str) else True:
            raise InputError("not a name", file=self.file, key=f"{part}.{name}",
                             allowed="a-z, 0-9, . and -, at most 63 characters")
        if part == "jumps" and name in self.hosts:
            raise InputError("a host has this name", file=self.file, key=f"jumps.{name}",
                             allowed="another name; a host can be named as jump itself")


def _expanded(path: str) -> str:
    return str(Path(path).expanduser())


def _refuse_secrets(data, file):
    """Checked before the schema, whose error would suggest another name for the key."""
    for key, value in _keys(data):
        if SECRET.search(key.rpartition(".")[2]) and not isinstance(value, dict):
            raise InputError("no secret belongs in this file: SSH takes a key, sudo no "
                             "password", file=file, key=key, allowed="key: the private key's file")


def _keys(data, before=()):
    if isinstance(data, dict):
        for name, value in data.items():
            yield ".".join((*before, str(name))), value
            yield from _keys(value, (*before, str(name)))


def check_root(root: PurePosixPath, file, key):
    """Refuse folders of the system: a lab deletes what it made below root."""
    parts = root.parts[1:]
    shared = (len(parts) < 2 or parts[0] in SYSTEM_FOLDERS or ".." in parts
              or len(parts) == 2 and parts[0] in ("home", "var"))
    if shared:
        raise InputError(f"{root} is a folder of the system or a user's home", file=file, key=key,
                         allowed="a folder of its own, such as /home/op/labbook or /srv/labbook/lab")


def _check_twice(hosts, file):
    """Refuse two entries for one machine."""
    reached, data = {}, {}
    for host in hosts:
        how = (host.address.lower(), host.port, host.jump)
        if how in reached:
            raise InputError(f"{host.address}, port {host.port}, is {reached[how]} already", file=file,
                             key=f"hosts.{host.name}.address", allowed="one entry a machine")
        if host.data in data:
            raise InputError(f"{host.data} is the data address of {data[host.data]} already",
                             file=file, key=f"hosts.{host.name}.data",
                             allowed="each host's own IPv4 address")
        reached[how] = data[host.data] = host.name

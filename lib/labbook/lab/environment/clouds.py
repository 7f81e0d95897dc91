"""The user's own clouds in an environment file: how to reach each, and which credentials file to use.

Secrets stay in the user's credentials files: the environment file must have none, and none is copied.
"""

import configparser
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from labbook.checks import check, did_you_mean, load_yaml
from labbook.errors import InputError

NAME = r"^[a-z][a-z0-9.-]{0,31}$"
SECRET = re.compile(r"pass|secret|token|access_key", re.I)
WORDS = {"type": "object", "additionalProperties": {"type": "string"}}
URL = {"type": "string", "pattern": r"^https?://[^\s/@]+(/[^\s@]*)?$",
       "description": "http:// or https://, without a user"}
FILE = {"type": "string", "pattern": r"^[~/]",
        "description": "an absolute path, or one that begins with ~/"}
TEXT = {"type": "string", "minLength": 1}

_BOTH = {
    "credentials": FILE, "profile": TEXT, "region": TEXT, "zone": TEXT, "network": TEXT,
    "security_group": TEXT, "user": TEXT, "images": WORDS, "flavors": WORDS, "certificates": FILE,
}
KINDS = {
    "ec2": {"type": "object", "additionalProperties": False, "required": ["kind", "credentials"],
            "properties": {"kind": {"const": "ec2"}, **_BOTH, "endpoint": URL, "blocks": URL}},
    "openstack": {"type": "object", "additionalProperties": False,
                  "required": ["kind", "credentials", "profile"],
                  "properties": {"kind": {"const": "openstack"}, **_BOTH}},
}
KIND = {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": list(KINDS)}}}
SCHEMA = {"type": "object", "additionalProperties": KIND, "description": "name: {kind, ...}"}


@dataclass(frozen=True)
class OwnCloud:
    """One entry of `clouds`. Paths are absolute paths on this machine.

    `credentials` is the user's own file; `profile` is a section of an AWS credentials file or a cloud
    of a clouds.yaml. `images` and `flavors` map a study's name to the cloud's name or id. `user` is
    the login user of guests. `file` is what errors name.
    """

    name: str
    kind: str
    credentials: str
    profile: str = "default"
    endpoint: str | None = None     # None: AWS, in `region`
    blocks: str | None = None       # the EBS direct API, which takes an image's blocks
    region: str | None = None
    zone: str | None = None
    network: str | None = None
    security_group: str | None = None
    certificates: str | None = None
    user: str = "root"
    images: dict = field(default_factory=dict)
    flavors: dict = field(default_factory=dict)
    file: str = "environment.yml"

    def key(self, what: str = "") -> str:
        """The entry's place in the file, which errors name: `clouds.mine.region`."""
        return f"clouds.{self.name}.{what}".rstrip(".")

    def facts(self) -> dict:
        """As JSON, for a journal or lab.json; `OwnCloud(**facts)` is an equal object."""
        return asdict(self)


def parse(data: dict, file, files: bool = True) -> tuple[OwnCloud, ...]:
    """Parse an environment file's `clouds`. InputError names the file, the key and what is allowed.

    `files`: also check the credentials files.
    """
    _refuse_secrets(data, file)
    check({"clouds": data}, {"type": "object", "properties": {"clouds": SCHEMA}}, file)
    clouds = tuple(_cloud(name, entry, file) for name, entry in data.items())
    for cloud in clouds if files else ():
        check_credentials(cloud)
    return clouds


def _cloud(name, entry, file) -> OwnCloud:
    if not re.fullmatch(NAME, name if isinstance(name, str) else ""):
        raise InputError("not a name", file=file, key=f"clouds.{name}",
                         allowed="a-z, 0-9, . and -, at most 32 characters")
    of_kind = {"type": "object", "properties": {name: KINDS[entry["kind"]]}}
    check({"clouds": {name: entry}}, {"type": "object", "properties": {"clouds": of_kind}}, file)
    if entry["kind"] == "ec2" and not {"endpoint", "region"} & set(entry):
        raise InputError("neither an endpoint nor a region of AWS", file=file,
                         key=f"clouds.{name}.endpoint", allowed=URL["description"])
    paths = {what: str(Path(entry[what]).expanduser())
             for what in ("credentials", "certificates") if what in entry}
    return OwnCloud(name, file=str(file), **{**entry, **paths})


def check_credentials(cloud: OwnCloud) -> None:
    """InputError when the file is missing, readable for others, or lacks the profile, or that of certificates is
    missing."""
    path = Path(cloud.credentials)
    try:
        mode = path.stat().st_mode & 0o777
        names, secret = (_sections if cloud.kind == "ec2" else _clouds)(path, cloud.profile)
    except FileNotFoundError:
        raise _wrong(cloud, "no such file", "your own file of credentials") from None
    except (OSError, ValueError, configparser.Error):  # the error's text may quote a secret
        raise _wrong(cloud, "cannot be read", "your own file of credentials") from None
    if cloud.profile not in names:
        raise InputError(f"{path} has no {cloud.profile!r}{did_you_mean(cloud.profile, names)}",
                         file=cloud.file, key=cloud.key("profile"), allowed=names or "none is in it")
    if secret and mode & 0o077:
        raise _wrong(cloud, f"others may read it (mode {mode:04o})", f"mode 0600: chmod 600 {path}")
    beside = path.with_name("secure.yaml")      # openstacksdk reads it, too
    if cloud.kind == "openstack" and beside.exists() and (mode := beside.stat().st_mode & 0o777) & 0o077:
        raise InputError(f"{beside}: others may read it (mode {mode:04o})", file=cloud.file,
                         key=cloud.key("credentials"), allowed=f"mode 0600: chmod 600 {beside}")
    if cloud.certificates and not Path(cloud.certificates).is_file():
        raise InputError(f"{cloud.certificates}: no such file", file=cloud.file, key=cloud.key("certificates"),
                         allowed="a file of certificates of authorities that you trust")


def _wrong(cloud, problem, allowed):
    return InputError(f"{cloud.credentials}: {problem}", file=cloud.file, key=cloud.key("credentials"),
                      allowed=allowed)


def _sections(path, _profile):
    """Profiles in an AWS credentials file, and that it holds secrets."""
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.read_string(path.read_text())
    return [name for name in parsed.sections() if "aws_access_key_id" in parsed[name]], True


def _clouds(path, profile):
    """Names in a clouds.yaml, and whether it (not secure.yaml) holds the profile's secrets."""
    clouds = _entries(path)
    return list(clouds), any(_secrets(clouds.get(profile)))


def _entries(path) -> dict:
    """The entries of a clouds.yaml by name; ValueError when it has none by name."""
    data = load_yaml(path) or {}
    clouds = (data.get("clouds") or {}) if isinstance(data, dict) else None
    if not isinstance(clouds, dict):
        raise ValueError("no mapping")
    return clouds


def endpoints(cloud: OwnCloud) -> list[str]:
    """Host names of the cloud's API; [] when the credentials file cannot be read."""
    urls = [cloud.endpoint, cloud.blocks]
    if cloud.kind == "openstack":
        with suppress(InputError, OSError, ValueError, AttributeError):
            entry = _entries(Path(cloud.credentials)).get(cloud.profile) or {}
            urls.append((entry.get("auth") or {}).get("auth_url"))
    return [host for url in urls if url and (host := urlsplit(url).hostname)]


def _secrets(data, before=""):
    """Dotted keys of entries that look like secrets."""
    for key, value in data.items() if isinstance(data, dict) else ():
        where = f"{before}{key}"
        in_url = isinstance(value, str) and re.match(r"https?://[^/]*@", value)
        if in_url or SECRET.search(str(key)) and not isinstance(value, dict):
            yield where
        yield from _secrets(value, f"{where}.")


def _refuse_secrets(data, file):
    for key in _secrets(data):
        raise InputError("no secret belongs in this file", file=file, key=f"clouds.{key}",
                         allowed="credentials: your own file that holds them, and its profile")

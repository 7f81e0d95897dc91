"""Keystone's configuration files, as pure functions, and its secrets."""

import base64
import hashlib
import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

from labbook.lab.cache.build import build_once
from labbook.targets import USER

DATABASE = "keystone"
ADMIN = "admin"  # name of the first user and of its project
DOMAIN = "Default"
SECRETS = "secrets.json"


def new_key() -> str:
    """A Fernet key: 32 random bytes."""
    return base64.urlsafe_b64encode(os.urandom(32)).decode()


@dataclass(frozen=True)
class Secrets:
    """The administrator's password and the keys of a Keystone's database: `fernet` for tokens,
    `credential` for stored credentials.

    Neither text nor record of an object shows them.
    """

    password: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    fernet: str = field(default_factory=new_key, repr=False)
    credential: str = field(default_factory=new_key, repr=False)

    @classmethod
    def load(cls, folder: Path) -> "Secrets":
        return cls(**json.loads((folder / SECRETS).read_text()))

    @classmethod
    def of_machine(cls) -> "Secrets":
        """Those of all Keystones of this machine's cache, made once."""
        return cls.load(build_once("keystone-secrets", cls().save))

    @property
    def digest(self) -> str:
        """Identifies these secrets without revealing them."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()

    def save(self, folder: Path) -> None:
        """Write them to a file that only its owner can read."""
        file = folder / SECRETS
        with open(file, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
            json.dump(asdict(self), out)


def configuration(settings, address: str, port: int, home: PurePosixPath, password: str) -> str:
    """keystone.conf; options that are left out keep Keystone's defaults. `password`: the database's."""
    parts = {
        "DEFAULT": {
            "public_endpoint": f"http://{address}:{port}",
            "use_stderr": "true",
            "max_db_limit": 1_000_000,  # by default a list ends after 1000
            # lower levels log every request
            "default_log_levels": "keystone=ERROR,oslo_policy=ERROR,py.warnings=ERROR",
        },
        "database": {
            "connection": f"mysql+pymysql://{USER}:{password}@{settings.database_address}:"
                          f"{settings.database_port}/{DATABASE}?charset=utf8mb4",
            # a worker without a database fails at once and the request is repeated
            "max_retries": 1, "retry_interval": 1,
        },
        "cache": {"enabled": str(settings.cache).lower(), "backend": "dogpile.cache.memory"},
        "token": {"provider": "fernet"},
        # Longer than a seed is kept: the first revocation deletes all that are older than this and a token's hour.
        "revoke": {"expiration_buffer": 10 * 365 * 24 * 3600},
        "fernet_tokens": {"key_repository": home / "fernet-keys"},
        "fernet_receipts": {"key_repository": home / "fernet-keys"},
        "credential": {"key_repository": home / "credential-keys"},
        "identity": {"password_hash_rounds": settings.password_hash_rounds},
        "oslo_concurrency": {"lock_path": home / "locks"},
    }
    return "\n".join(line for name, options in parts.items() for line in (
        f"[{name}]", *(f"{key} = {value}" for key, value in options.items()), ""))


def gunicorn(address: str, port: int, home: PurePosixPath, processes: int) -> str:
    """gunicorn's settings, in Python: a process serves one request a connection.

    The application is loaded once, before the processes fork; it opens no database connection until
    the first request.
    """
    options = {
        "wsgi_app": "keystone.wsgi.api:application", "bind": f"{address}:{port}", "backlog": 512,
        "workers": processes, "worker_class": "sync", "preload_app": True, "keepalive": 0,
        "timeout": 300, "graceful_timeout": 5,
        "worker_tmp_dir": str(home), "control_socket_disable": True,
    }
    return "".join(f"{key} = {value!r}\n" for key, value in options.items())

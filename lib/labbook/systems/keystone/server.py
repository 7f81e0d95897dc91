"""Keystone, the identity service of OpenStack: a current release on a running database."""

import http.client
import json
import shlex
from pathlib import Path

from labbook.errors import InputError, SystemFailure
from labbook.lab.python_packages import PythonPackages
from labbook.systems.base import Needs, System
from labbook.systems.keystone import config
from labbook.systems.keystone.config import ADMIN, DATABASE, DOMAIN, Secrets
from labbook.targets import KEYSTONE, USER, password

VERSION = "30.0.0"
PACKAGES = PythonPackages("keystone", VERSION, (f"keystone=={VERSION}", "gunicorn", "pymysql"),
                          Path(__file__).with_name("keystone.txt"))
# `keystone-manage`, whose installed script would need a certain Python.
MANAGE = "from keystone.cmd.manage import main; main()"
MANAGE_SECONDS = 300
# Files of the secrets below its home, which only its user can read.
FOLDERS = ("locks", "fernet-keys", "credential-keys")
SECRETS = {"fernet": "fernet-keys/1", "credential": "credential-keys/1", "password": "password"}


class Keystone(System):
    """A Keystone server of several processes, with Fernet tokens. See `over`."""

    NAME = "keystone"
    SETTINGS = {
        "version": {"enum": [VERSION], "default": VERSION},
        "database_address": {"type": "string"},
        "database_port": {"type": "integer", "minimum": 1, "maximum": 65535, "default": 3306},
        "processes": {"type": "integer", "minimum": 1, "maximum": 256, "default": 5},
        "cache": {"type": "boolean", "default": True},  # in each process's memory
        "password_hash_rounds": {"type": "integer", "minimum": 4, "maximum": 16, "default": 4},
    }
    NEEDS = Needs(packages=("iproute2", "procps"), commands=("ss", "ps"), artifacts=(PACKAGES,))
    START_SECONDS = 120
    port = 5000
    protocol = KEYSTONE
    database = None     # the system at database_address

    def __init__(self, host, secrets: Secrets | None = None, **settings):
        """`secrets`: of the Keystone that made the database's content; without, new ones."""
        super().__init__(host, **settings)
        self.secrets = secrets or Secrets()
        self._python = None

    @classmethod
    def over(cls, host, database, secrets=None, **settings) -> "Keystone":
        """A Keystone on `host` that uses `database`, a system with MySQL's protocol."""
        keystone = cls(host, secrets, database_address=database.address,
                       database_port=database.port, **settings)
        keystone.database = database
        return keystone

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}/v3"

    @property
    def credentials(self) -> dict:
        """A client's login as the administrator. The password must not enter a record."""
        return {"auth_url": self.url, "username": ADMIN, "password": self.secrets.password,
                "project": ADMIN, "domain": DOMAIN}

    def deploy(self) -> None:
        """Write its files, and its tables and first user if the database lacks any of them."""
        self.put_files()
        if not self._is_filled():
            self.fill()

    def put_files(self) -> None:
        if self.settings.database_address is None:
            raise InputError("Keystone needs a database", file="settings of keystone",
                             key="database_address")
        self.run("mkdir", "-p", *(self.home / part for part in FOLDERS))
        self.run("chmod", "700", self.home, *(self.home / part for part in FOLDERS))
        self.put_secret(config.configuration(self.settings, self.address, self.port, self.home,
                                             password(self.database)), "keystone.conf")
        self.put(config.gunicorn(self.address, self.port, self.home, self.settings.processes),
                 "gunicorn.conf.py")
        for kind, place in SECRETS.items():
            self.put_secret(getattr(self.secrets, kind), place)

    def fill(self) -> None:
        """Create the tables and the first user, project and endpoint, those that are missing."""
        self._query(f"CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4")
        self.manage("db_sync")
        # The endpoint is resolved by whichever Keystone uses these tables.
        self.manage("bootstrap", "--bootstrap-public-url", "$(public_endpoint)s/v3",
                    "--bootstrap-region-id", "RegionOne")

    def manage(self, *arguments) -> str:
        """The output of `keystone-manage` with these arguments."""
        line = shlex.join(("-c", MANAGE, "--config-file", f"{self.home}/keystone.conf", *arguments))
        # read on the host, so that `ps` does not show it
        password = shlex.quote(str(self.home / SECRETS["password"]))
        return self.host.run(f"export OS_BOOTSTRAP_PASSWORD=$(cat {password}); {self._env()} {line}",
                             timeout=MANAGE_SECONDS).stdout

    def command(self) -> str:
        # gunicorn reads gunicorn.conf.py in its folder; Keystone would parse any arguments as its own.
        return f"{self._env()} -m gunicorn"

    def answers(self) -> None:
        """Request a token, which involves the database too. ConnectionError for an error of the server's."""
        answer = self._ask_token()
        if answer.status >= 500:    # its database may not serve yet
            raise ConnectionError(f"it gave no token: {answer.status} {answer.text[:200]}")
        _token(answer)

    def report(self) -> dict:
        return {"release": self.request("GET", "").json["version"]["id"],
                "python": self.host.run(f"{self._env()} --version").stdout.split()[1]}

    def admin_token(self) -> str:
        """A new token of the administrator for the first project; SystemFailure where Keystone gives none."""
        return _token(self._ask_token())

    def _ask_token(self):
        domain = {"name": DOMAIN}
        user = {"name": ADMIN, "domain": domain, "password": self.secrets.password}
        return self.request("POST", "/auth/tokens", {"auth": {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": {"name": ADMIN, "domain": domain}}}})

    def request(self, method: str, path: str, body=None, token=None, headers=None):
        """The whole answer (`.status`, `.text`, `.json`) to a request below /v3; takes one or two SSH
        round trips."""
        connection = http.client.HTTPConnection(self.address, self.port)
        connection.sock = channel = self.channel(timeout=60)
        # The server closes the connection after its answer, so http.client would close the SSH channel
        # before the body is read, and data that the channel has received would be lost.
        connection.close = lambda: None
        sent = {"Content-Type": "application/json", **(headers or {})}
        if token is not None:
            sent["X-Auth-Token"] = token
        try:
            connection.request(method, f"/v3{path}", body and json.dumps(body), sent)
            answer = connection.getresponse()
            answer.text = answer.read().decode()
        finally:
            channel.close()
        try:
            answer.json = json.loads(answer.text)
        except ValueError:
            answer.json = None
        return answer

    def _env(self) -> str:
        """Command of the Python with Keystone's packages, with all its files below its home."""
        if self._python is None:
            self._python = PACKAGES.python_on(self.host)
        files = shlex.quote(f"{self.home}/keystone.conf")
        home = shlex.quote(str(self.home))
        return (f"env HOME={home} XDG_CACHE_HOME={home} PYTHONWARNINGS=ignore "
                f"OS_KEYSTONE_CONFIG_FILES={files} {self._python}")

    def _is_filled(self) -> bool:
        """Whether there is what `fill` makes last, an endpoint."""
        tables = self._query("SELECT 1 FROM information_schema.tables WHERE table_name = 'endpoint' "
                             f"AND table_schema = '{DATABASE}'")
        return bool(tables and self._query(f"SELECT 1 FROM {DATABASE}.endpoint LIMIT 1"))

    def _query(self, statement):
        import pymysql

        s = self.settings
        connection = pymysql.connect(user=USER, password=password(self.database),
                                     defer_connect=True, autocommit=True, read_timeout=30)
        try:
            connection.connect(self.host.dial(s.database_address, s.database_port))
        except (OSError, pymysql.Error) as error:
            raise SystemFailure(f"{self.host.name}: Keystone's database at {s.database_address}:"
                                f"{s.database_port} does not answer: {error}") from None
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall()
        finally:
            connection.close()


def _token(answer) -> str:
    if answer.status != 201:
        raise SystemFailure(f"Keystone gave no token: {answer.status} {answer.text[:200]}")
    return answer.headers["X-Subject-Token"]

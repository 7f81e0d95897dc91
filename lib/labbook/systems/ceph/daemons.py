"""What all daemons of a Ceph cluster share: files, a life, and an admin socket."""

import shlex
import time
import uuid
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from labbook.errors import InputError, SystemFailure
from labbook.systems.base import System
from labbook.systems.ceph import config
from labbook.systems.ceph.admin_socket import ask, put_tools

EARLIER = "earlier.log"
SOCKET = "socket"  # a relative path, as a whole one may be longer than a socket's can be


def quoted(path) -> str:
    return shlex.quote(str(path))


@dataclass
class Cluster:
    """What its daemons have in common: the monitor's `address`, `options` for all ceph.conf, and,
    new with each life, its id and the `keys` by name."""

    address: str
    options: dict
    fsid: str = ""
    keys: dict[str, str] = field(default_factory=dict)

    def renew(self, names) -> None:
        self.fsid, now = str(uuid.uuid4()), time.time()
        self.keys = {name: config.new_key(now) for name in (config.ADMIN, *names)}


class CephDaemon(System):
    """One daemon of `cluster`, called `id` there; a kind gives KIND and `own_options()`."""

    KIND: str
    SHARED_KEYS: tuple[str, ...] = ()
    port = 6800     # the first that it tries

    def __init__(self, host, id: str | None = None, cluster: Cluster | None = None):
        super().__init__(host)
        if cluster is None:
            raise InputError(f"{self.NAME} is a part of ceph, and none by itself", key="systems",
                             allowed="ceph")
        self.id, self.cluster, self._lives = id, cluster, 0

    @property
    def name(self) -> str:
        """As the cluster calls it, such as osd.3."""
        return f"{self.KIND}.{self.id}"

    @property
    def socket(self) -> str:
        """The admin socket's path, from the host's root folder."""
        return f"{self.home.name}/{SOCKET}"

    @property
    def data(self) -> PurePosixPath:
        return self.home / "data"

    def begin(self) -> None:
        """Start, and do not wait. What it said in earlier lives is kept."""
        if self._lives:
            self.host.run(f"cat {quoted(self.process.log)} >> {quoted(self.home / EARLIER)}")
        self._lives += 1
        super().begin()

    def said(self, pattern: str) -> str:
        """The lines of all its lives that match; its logs can be long."""
        now = self.process.log if self.process is not None else "/dev/null"
        told = self.host.run(f"cat {quoted(self.home / EARLIER)} {quoted(now)} 2> /dev/null | "
                             f"grep -aE {quoted(pattern)}", check=False)
        return told.stdout

    def kill(self) -> None:
        """End it if it runs, at once."""
        if self.process is not None:
            self.process.kill()

    def destroy(self) -> None:
        """End it if it runs, and take its files away: nothing of it is kept."""
        self.kill()
        self._process, self._lives = None, 0
        self.run("rm", "-rf", self.home)

    def deploy(self) -> None:
        self.run("mkdir", "-p", self.data)
        self.put(self.configuration(), config.CONF)
        names = (self.name, *self.SHARED_KEYS)
        self.put_secret(config.keyring({name: self.cluster.keys[name] for name in names}),
                        config.KEYRING)
        put_tools(self.host, self.home)

    def put_secret(self, text: str, name: str) -> None:
        """A file that only its user can read."""
        self.host.put(text, self.home / name, mode=0o600)

    def configuration(self) -> str:
        return config.text(self.cluster.fsid, self.cluster.address, self.home, **{
            f"{self.KIND}_data": self.data, "admin_socket": SOCKET, "public_addr": self.address,
            **self.cluster.options, **self.own_options()})

    def own_options(self) -> dict:
        return {}

    def command(self) -> str:
        return shlex.join((f"ceph-{self.KIND}", "-f", "-i", self.id, "-c",
                           f"{self.home}/{config.CONF}"))

    def ask(self, prefix: str, seconds: float = 10, **arguments):
        """What its admin socket answers; SystemFailure when nothing."""
        return ask(self.host, self.home, self.socket, {"prefix": prefix, **arguments}, seconds)

    def answers(self) -> None:
        try:
            self.ask("version", 5)
        except SystemFailure as failure:  # not yet
            raise ConnectionError(failure.message) from None

    def server_facts(self) -> dict:
        return {"version": self.ask("version")["version"]}

    def _server_pid(self) -> int | None:
        """Its ports are the system's to choose, so it is asked for by its process."""
        process = self.process
        return process.pid if process is not None and process.alive() else None

"""What all daemons of a Ceph cluster share: files, a life, and an admin socket."""

import shlex
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from labbook.systems import ceph_config as config
from labbook.systems.base import System
from labbook.systems.ceph_asking import ask, put_tools

SOCKET = "socket"  # a relative path, as a whole one may be longer than a socket's can be


@dataclass
class Cluster:
    """What its daemons have in common; `keys` by name, `options` for all ceph.conf."""

    fsid: str
    address: str
    keys: dict[str, str]
    options: dict = field(default_factory=dict)


class CephDaemon(System):
    """One daemon of `cluster`, called `id` there. A kind gives KIND, `own_options()` and, where it
    must make its store first, `make()`."""

    KIND: str
    SHARED_KEYS: tuple[str, ...] = ()

    def __init__(self, host, id: str, cluster: Cluster):
        super().__init__(host)
        self.id, self.cluster = id, cluster

    @property
    def name(self) -> str:
        """As the cluster calls it, such as osd.3."""
        return f"{self.KIND}.{self.id}"

    @property
    def data(self) -> PurePosixPath:
        return self.home / "data"

    def destroy(self) -> None:
        """End it if it runs, at once, and take its files away: nothing of it is kept."""
        if self.process is not None:
            self.process.kill()
        self._process = None
        self.run("rm", "-rf", self.home)

    def deploy(self) -> None:
        self.run("mkdir", "-p", self.data)
        self.put(self.configuration(), config.CONF)
        names = (self.name, *self.SHARED_KEYS)
        self.put(config.keyring({name: self.cluster.keys[name] for name in names}), config.KEYRING)
        self.host.run(f"chmod 600 {self.home / config.KEYRING}")
        put_tools(self.host, self.home)

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
        """What its admin socket answers; LabError when it does not."""
        return ask(self.host, self.home, f"{self.NAME}/{SOCKET}",
                   {"prefix": prefix, **arguments}, seconds)

    def answers(self) -> None:
        self.ask("version", 5)

    def server_facts(self) -> dict:
        return {"version": self.ask("version")["version"]}

    def _ready(self) -> bool:
        return super()._ready()

    def _server_pid(self) -> int | None:
        """Its ports are the system's to choose, so it is asked for by its process."""
        process = self.process
        return process.pid if process is not None and process.alive() else None

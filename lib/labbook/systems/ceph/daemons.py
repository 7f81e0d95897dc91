"""What all daemons of a Ceph cluster share: files, a life, and an admin socket."""

import shlex
import time
import uuid
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from labbook.errors import InputError, LabError, SystemFailure
from labbook.systems.base import Needs, System
from labbook.systems.ceph import config
from labbook.systems.ceph.admin_socket import ask, ask_all, put_tools, tools
from labbook.systems.ceph.config import ADMIN, CONF, KEYRING, MON_PORTS, keyring, monitors

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
        self.keys = {name: config.new_key(now) for name in (ADMIN, *names)}


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
        self.put(self.configuration(), CONF)
        names = (self.name, *self.SHARED_KEYS)
        self.put_secret(keyring({name: self.cluster.keys[name] for name in names}),
                        KEYRING)
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
                           f"{self.home}/{CONF}"))

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


TELLER = "ceph_teller"  # the process's name
PYTHON = "/usr/bin/python3"  # Debian's, which has librados's package
MAKE = """set -e; cd {home}
monmaptool --create --clobber --fsid {fsid} --addv {id} '{where}' monmap
ceph-mon --mkfs -i {id} -c {conf} --monmap monmap --keyring {every} --log-to-stderr=false"""
EVERY = "all-keys"


class CephMon(CephDaemon):
    """It starts from the keys of all; OSDs make themselves known to it."""

    NAME, KIND = "ceph_mon", "mon"
    SHARED_KEYS = (ADMIN,)  # the teller's
    NEEDS = Needs(packages=("ceph-mon", "ceph-common", "python3-rados", "procps"),
                  commands=("ps",))
    port = MON_PORTS["v2"]

    @property
    def name(self) -> str:
        return "mon."

    def kill(self) -> None:
        if (teller := self.host.process(TELLER)) is not None:
            teller.kill()
        super().kill()

    def deploy(self) -> None:
        super().deploy()
        self.put_secret(keyring(self.cluster.keys), EVERY)
        self.host.run(MAKE.format(home=shlex.quote(str(self.home)), fsid=self.cluster.fsid,
                                  id=self.id, where=monitors(self.address), every=EVERY, conf=CONF))

    def start(self) -> None:
        """Start it and the teller; returns when the teller can ask it."""
        super().start()
        words = tools(self.host, self.home, "tell", self.home / CONF,
                             f"{self.NAME}/teller", python=PYTHON).replace(" -S ", " ", 1)
        process = self.host.start(TELLER, words)
        self.host.wait_for(self._tells, "the monitor to be told something", 30, process, 0.05)

    def tell(self, prefix: str, seconds: float = 30, **arguments):
        """What the monitor answers to a command, as JSON; SystemFailure with why when it refuses."""
        return ask(self.host, self.home, f"{self.NAME}/teller",
                          {"prefix": prefix, **arguments}, seconds)

    def tell_all(self, commands: list[dict], seconds: float = 30) -> list:
        """Several, one after the other, for the price of one."""
        return ask_all(self.host, self.home, f"{self.NAME}/teller", commands, seconds)

    def _tells(self) -> bool:
        try:
            self.tell("mon stat", 5)
        except SystemFailure:
            return False
        return True


MEMORY = {"osd_objectstore": "memstore", "memstore_device_bytes": 4 << 30}
DISK = {"osd_objectstore": "bluestore", "osd_memory_target": 896 << 20,
        "bluestore_cache_autotune": "false", "bluestore_cache_size": 64 << 20}
STORES = ("memory", "disk")
MOST_BYTES, LEAST_BYTES, LEFT_BYTES = 2 << 30, 1 << 30, 256 << 20


class CephOSD(CephDaemon):
    """`store`: memory (of this process, gone with it) or disk (BlueStore on a file that grows).
    `sharing`: how many OSDs, this one too, may have their files on one disk."""

    NAME, KIND = "ceph_osd", "osd"
    NEEDS = Needs(packages=("ceph-osd", "procps"), commands=("ps",))

    def __init__(self, host, id=None, cluster=None, store: str = "memory",
                 sharing: int = 1):
        super().__init__(host, id, cluster)
        self.store, self.sharing, self._block_bytes = store, sharing, MOST_BYTES

    def own_options(self) -> dict:
        own = MEMORY if self.store == "memory" else {
            **DISK, "bluestore_block_size": self._block_bytes}
        return {**own, "crush_location": f"root=default host={self.host.name}"}

    def deploy(self) -> None:
        """LabError where there is too little room on the disk."""
        if self.store == "disk":
            self._block_bytes = self._room()
        super().deploy()
        self.run("ceph-osd", "--mkfs", "-i", self.id, "-c", self.home / CONF,
                 "--osd-uuid", uuid.uuid4(), "--log-to-stderr=false", timeout=120)

    def _room(self) -> int:
        """How large its file may get: what is free, but for what others write. An OSD that finds
        less than it was told of aborts."""
        free = int(self.run("df", "--output=avail", "-B1", self.host.root).stdout.split()[-1])
        room = min(MOST_BYTES, (free - LEFT_BYTES) // self.sharing)
        if room < LEAST_BYTES:
            needed = self.sharing * LEAST_BYTES + LEFT_BYTES
            raise LabError(f"{self.host.name}: {free >> 20} MB of disk are free, and {self.sharing} "
                           f"OSDs need {needed >> 20}")
        return room


class CephMDS(CephDaemon):
    """Whatever it knows it gets from the monitor and the OSDs."""

    NAME, KIND = "ceph_mds", "mds"
    NEEDS = Needs(packages=("ceph-mds", "procps"), commands=("ps",))

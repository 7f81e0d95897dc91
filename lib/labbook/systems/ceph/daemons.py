"""Ceph's daemons: what all share, and the monitor, the object store (OSD) and the metadata server (MDS)."""

import shlex
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from labbook.errors import InputError, LabError, SystemFailure
from labbook.systems.base import Needs, System
from labbook.systems.ceph import config
from labbook.systems.ceph.admin_socket import ask, ask_all, put_tools, tools
from labbook.systems.ceph.config import ADMIN, CONF, KEYRING, MON_PORTS, keyring, monitors

EARLIER = "earlier.log"
SOCKET = "socket"  # relative, since a socket's absolute path could be too long
PROXY = "ceph_mon_proxy"        # name of the process
DEBIAN_PYTHON = "/usr/bin/python3"  # the only one with Debian's librados module
MAKE_MONITOR = """set -e; cd {home}
monmaptool --create --clobber --fsid {fsid} --addv {id} '{addresses}' monmap
ceph-mon --mkfs -i {id} -c {conf} --monmap monmap --keyring {all_keys} --log-to-stderr=false"""
ALL_KEYS = "all-keys"
MEMORY = {"osd_objectstore": "memstore", "memstore_device_bytes": 4 << 30}
DISK = {"osd_objectstore": "bluestore", "osd_memory_target": 896 << 20,
        "bluestore_cache_autotune": "false", "bluestore_cache_size": 64 << 20}
MOST_BYTES, LEAST_BYTES, RESERVED_BYTES = 2 << 30, 1 << 30, 256 << 20


def quoted(path) -> str:
    return shlex.quote(str(path))


@dataclass
class Identity:
    """What the daemons of one cluster share.

    address: the monitor's. options: for every ceph.conf. fsid, keys (by daemon name): new each time
    the cluster is made.
    """

    address: str
    options: dict
    fsid: str = ""
    keys: dict[str, str] = field(default_factory=dict, repr=False)

    def renew(self, names) -> None:
        self.fsid, now = str(uuid.uuid4()), time.time()
        self.keys = {name: config.new_key(now) for name in (ADMIN, *names)}


class CephDaemon(System):
    """A daemon of a cluster. A kind of daemon defines KIND and `own_options()`."""

    KIND: str
    SHARED_KEYS: tuple[str, ...] = ()
    port = 6800     # the first that a daemon tries

    def __init__(self, host, id: str | None = None, cluster: Identity | None = None):
        super().__init__(host)
        if cluster is None:
            raise InputError(f"{self.NAME} is a part of ceph, and cannot run alone", key="systems",
                             allowed="ceph")
        self.id, self.cluster, self._starts = id, cluster, 0

    @property
    def name(self) -> str:
        """The daemon's name in the cluster, such as osd.3."""
        return f"{self.KIND}.{self.id}"

    @property
    def socket(self) -> str:
        """Path of the admin socket, relative to the host's root folder."""
        return f"{self.home.name}/{SOCKET}"

    @property
    def data(self) -> PurePosixPath:
        return self.home / "data"

    def begin(self) -> None:
        """Start without waiting; the log of an earlier start is kept for `grep_logs`."""
        if self._starts:
            self.host.run(f"cat {quoted(self.process.log)} >> {quoted(self.home / EARLIER)}")
        self._starts += 1
        super().begin()

    def grep_logs(self, pattern: str) -> str:
        """The lines of all its logs that match the extended regular expression."""
        current = self.process.log if self.process is not None else "/dev/null"
        return self.host.run(f"cat {quoted(self.home / EARLIER)} {quoted(current)} 2> /dev/null | "
                             f"grep -aE {quoted(pattern)}", check=False).stdout

    def destroy(self) -> None:
        """Kill the daemon if it runs and remove its files."""
        super().destroy()
        self._starts = 0

    def deploy(self) -> None:
        self.run("mkdir", "-p", self.data)
        self.put(self.configuration(), CONF)
        names = (self.name, *self.SHARED_KEYS)
        self.put_secret(keyring({name: self.cluster.keys[name] for name in names}), KEYRING)
        put_tools(self.host, self.home)

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
        """The answer at the admin socket; SystemFailure without one."""
        return ask(self.host, self.home, self.socket, {"prefix": prefix, **arguments}, seconds)

    def answers(self) -> None:
        try:
            self.ask("version", 5)
        except SystemFailure as failure:  # not up yet
            raise ConnectionError(failure.message) from None

    def report(self) -> dict:
        return {"version": self.ask("version")["version"]}

    def _server_pid(self) -> int | None:
        """By the process and not by a port, since the daemon chooses its ports."""
        process = self.process
        return process.pid if process is not None and process.alive() else None


class CephMon(CephDaemon):
    """The monitor, and a proxy process that passes commands on to it."""

    NAME, KIND = "ceph_mon", "mon"
    SHARED_KEYS = (ADMIN,)  # for the proxy
    NEEDS = Needs(packages=("ceph-mon", "ceph-common", "python3-rados", "procps"),
                  commands=("ps",))
    port = MON_PORTS["v2"]

    @property
    def name(self) -> str:
        return "mon."

    def kill(self) -> None:
        with ExitStack() as after:
            after.callback(super().kill)    # also where the proxy is not killed
            if (proxy := self.host.process(PROXY)) is not None:
                proxy.kill()

    def deploy(self) -> None:
        super().deploy()
        self.put_secret(keyring(self.cluster.keys), ALL_KEYS)
        self.host.run(MAKE_MONITOR.format(
            home=shlex.quote(str(self.home)), fsid=self.cluster.fsid, id=self.id,
            addresses=monitors(self.address), all_keys=ALL_KEYS, conf=CONF))

    def start(self) -> None:
        """Start monitor and proxy; returns when the proxy passes commands on."""
        super().start()
        command = tools(self.host, self.home, "proxy", self.home / CONF, self._proxy_socket,
                        python=DEBIAN_PYTHON).replace(" -S ", " ", 1)
        process = self.host.start(PROXY, command)
        self.host.wait_for(self._proxy_answers, "the monitor to accept commands", 30, process, 0.05)

    def send(self, prefix: str, seconds: float = 30, **arguments):
        """The monitor's answer to a command, parsed; SystemFailure with the reason if refused."""
        return ask(self.host, self.home, self._proxy_socket, {"prefix": prefix, **arguments}, seconds)

    def send_all(self, commands: list[dict], seconds: float = 30) -> list:
        """The answers to several commands, over one SSH round trip."""
        return ask_all(self.host, self.home, self._proxy_socket, commands, seconds)

    @property
    def _proxy_socket(self) -> str:
        return f"{self.NAME}/proxy"

    def _proxy_answers(self) -> bool:
        try:
            self.send("mon stat", 5)
        except SystemFailure:
            return False
        return True


class CephOSD(CephDaemon):
    """An object store: in memory, or on its host's disk.

    store: `memory` (lost with the process) or `disk` (BlueStore in a sparse file).
    sharing: number of OSDs, including this one, whose files are on one disk.
    """

    NAME, KIND = "ceph_osd", "osd"
    NEEDS = Needs(packages=("ceph-osd", "procps"), commands=("ps",))

    def __init__(self, host, id=None, cluster=None, store: str = "memory",
                 sharing: int = 1):
        super().__init__(host, id, cluster)
        self.store, self.sharing, self._block_bytes = store, sharing, MOST_BYTES

    def own_options(self) -> dict:
        own = MEMORY if self.store == "memory" else {
            **DISK, "bluestore_block_size": self._block_bytes}
        # without cluster_addr, other OSDs and heartbeats are answered on all interfaces
        return {**own, "cluster_addr": self.address, "crush_location": f"root=default host={self.host.name}"}

    def deploy(self) -> None:
        """LabError if the disk has too little free space."""
        if self.store == "disk":
            self._block_bytes = self._room()
        super().deploy()
        self.run("ceph-osd", "--mkfs", "-i", self.id, "-c", self.home / CONF,
                 "--osd-uuid", uuid.uuid4(), "--log-to-stderr=false", timeout=120)

    def _room(self) -> int:
        """Bytes that the OSD's file may use. (An OSD aborts when it finds less than configured.)"""
        free = int(self.run("df", "--output=avail", "-B1", self.host.root).stdout.split()[-1])
        room = min(MOST_BYTES, (free - RESERVED_BYTES) // self.sharing)
        if room < LEAST_BYTES:
            needed = self.sharing * LEAST_BYTES + RESERVED_BYTES
            raise LabError(f"{self.host.name}: {free >> 20} MB of disk are free, and {self.sharing} "
                           f"OSDs need {needed >> 20}")
        return room


class CephMDS(CephDaemon):
    """A metadata server, which has a rank, follows one, or stands by."""

    NAME, KIND = "ceph_mds", "mds"
    NEEDS = Needs(packages=("ceph-mds", "procps"), commands=("ps",))

"""A Ceph file system mounted on a client host by ceph-fuse, which can be ended whatever hangs."""

import re
import shlex
import time
from contextlib import suppress
from pathlib import PurePosixPath

from labbook.errors import LabError, SystemFailure
from labbook.lab.host import fuse
from labbook.lab.host.mount_point import MountPoint
from labbook.systems.base import Needs, System
from labbook.systems.ceph.admin_socket import ask, put_tools
from labbook.systems.ceph.config import CONF, KEYRING, MON_PORTS
from labbook.systems.ceph.daemons import SOCKET

MOUNTS = "mounts"
# Of the root directory, which the client has in its cache, this is asked of an MDS each time.
ASK_MDS = "import os; print(os.getxattr('.', 'ceph.dir.rctime').decode())"
ASK_SECONDS = 2
CALL = re.compile(r"#(?P<ino>0x[0-9a-f]+)(?:/(?P<name>.*))?$")     # what one is about, as ceph-fuse says it
END_SECONDS = 5     # that ceph-fuse has for its good-byes once nothing is mounted


class CephMount(System):
    """One mount on one host, called `name`; a host may have several, each a client of its own.

    `ceph` gives `client_config(**options)` and `client_keyring`, the texts by which client.admin
    finds and reaches the cluster. `path` is the folder on the host where the file system is seen,
    below the host's own: for programs there, and never for this process. Whoever calls there
    waits as long as the MDS does not answer, and SIGKILL does not end that: so see `call`.

    cache_inodes: client_cache_size, how many files the client keeps (None: as shipped, 16384).
    The host must be let use FUSE: `limits: {fuse: true}` in lab.yml.
    """

    NAME = "ceph_mount"
    SETTINGS = {
        "name": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,15}$", "default": "client1"},
        "cache_inodes": {"type": ["integer", "null"], "minimum": 1, "default": None},
    }
    NEEDS = Needs(packages=("ceph-fuse", "mount", "procps"), commands=("ceph-fuse", "ps"))
    START_SECONDS = 30
    protocol = "cephfs"
    port = MON_PORTS["v2"]

    def __init__(self, host, ceph, **settings):
        super().__init__(host, **settings)
        self.ceph, self.name = ceph, self.settings.name
        self.home = host.root / f"{self.NAME}-{self.name}"
        # Not below its home, which is deleted with all that is in it.
        self.path: PurePosixPath = host.root / MOUNTS / self.name
        self._point = MountPoint(host, self.path)

    @property
    def address(self) -> str:
        """The monitor's."""
        return self.ceph.address

    @property
    def process(self):
        """ceph-fuse's; None when it never was up."""
        if self._process is None:
            self._process = self.host.process(self.home.name)
        return self._process

    def up(self, seconds: float | None = None) -> "CephMount":
        """Take away what an earlier one of this name left, mount, and return once an MDS answers
        through it. SystemFailure with ceph-fuse's log when it does not in `seconds` (30), and then
        nothing is mounted; LabError before anything starts where FUSE cannot be used."""
        self._require_fuse()
        self.destroy()
        self.provide()
        self.deploy()
        self.begin()
        self.await_answer(seconds)
        self._give()
        return self

    def deploy(self) -> None:
        self.run("mkdir", "-p", self.home, self.path)
        self.put(self.ceph.client_config(**self._options()), CONF)
        self.host.put(self.ceph.client_keyring, self.home / KEYRING, 0o600)
        put_tools(self.host, self.home)

    def command(self) -> str:
        return shlex.join(("ceph-fuse", "-f", "--id", "admin", "-c", f"{self.home}/{CONF}",
                           "-k", f"{self.home}/{KEYRING}", str(self.path)))

    def begin(self) -> None:
        self._process = self.host.start(self.home.name, self.command(), cwd=str(self.home),
                                        root=True)

    def stop(self) -> None:
        self.end()

    def mounted(self) -> bool:
        return self._point.mounted()

    def alive(self, seconds: float = 5) -> bool:
        """Whether the MDS that has the root directory (rank 0) answers through the mount within
        `seconds`."""
        done = self.call(shlex.join((self.host.python, "-I", "-S", "-c", ASK_MDS)), seconds)
        return done is not None and done.exit_code == 0

    def call(self, command: str, seconds: float):
        """The Result of a shell command that may hang on the mount, run in the mounted folder;
        None when it had not ended after `seconds`. It is then left behind, and ends at the latest
        when the mount does."""
        return self._point.call(command, seconds)

    def ask(self, prefix: str, seconds: float = 10, **arguments):
        """What ceph-fuse says at its admin socket, also when the mount hangs: `mds_sessions`,
        `status`, `perf dump`, `dump_cache`, `mds_requests` (calls that wait), ... SystemFailure
        when it does not answer."""
        return ask(self.host, self.home, f"{self.home.name}/{SOCKET}",
                   {"prefix": prefix, **arguments}, seconds)

    def sessions(self) -> dict[int, str]:
        """{rank: state} of the client's sessions with MDSs: opening, open, stale, closed, ..."""
        return {each["mds"]: each["state"] for each in self.ask("mds_sessions")["sessions"]}

    def cut(self) -> bool:
        """Whether the cluster has shut this client out, as far as the client knows."""
        return bool(self.ask("status")["blocklisted"])

    def identity(self) -> tuple[int, str]:
        """Its number and its address, by which servers' logs and the list of those shut out name it."""
        told = self.ask("status")
        return told["id"], told["inst_str"].rpartition(" ")[2]

    def waiting(self) -> list[dict]:
        """Its calls that no MDS has answered: rank, of whom it waits for; ino and name, what it is
        about: the name from that inode on, "" the inode itself."""
        found = self.ask("mds_requests").get("request", [])
        asked = [(one["mds"], CALL.match(one["path"])) for one in (found if isinstance(found, list) else [found])]
        return [{"rank": rank, "ino": int(path["ino"], 16), "name": path["name"] or ""}
                for rank, path in asked if path]

    def cached(self) -> int:
        """How many entries of directories the client's cache holds now, which is what
        cache_inodes limits, some seconds late. (Their inodes stay as long as the kernel likes.)"""
        return self.ask("status")["dentry_count"]

    def end(self, seconds: float = 10) -> None:
        """Unmount, in order if that takes no more than `seconds`; else the connection between
        kernel and ceph-fuse is aborted, at which all callers end with an error. ceph-fuse then
        takes leave of the MDSs, and is killed when they do not answer. Nothing is mounted then."""
        if self.process is None:
            return
        if not self.mounted():
            self.process.kill()
            return
        began = time.monotonic()
        if self._point.unmount(seconds):
            self._await_end(max(END_SECONDS, seconds - (time.monotonic() - began)))
        else:
            self._point.abort()
            self._await_end(END_SECONDS)

    def destroy(self) -> None:
        """End it, at once where no MDS answers, and take its files away. (An MDS keeps what it
        gave to a client that goes without a word, for a minute, and others wait for that.)"""
        if self._server_pid() is not None and self.mounted() and self.alive(1):
            self.end(END_SECONDS)
        self._point.abort()
        if self.process is not None:
            self.process.kill()
        self._process = None
        self.run("rm", "-rf", self.home, root=True)
        self._point.remove()

    def server_facts(self) -> dict:
        return {"version": self.ask("version")["version"]}

    def _options(self) -> dict:
        options = {"run_dir": self.home, "admin_socket": SOCKET, "admin_socket_mode": "0600",
                   "client_cache_size": self.settings.cache_inodes,
                   # else a directory's size is that of all below it, which servers tell each
                   # other late: it would change by itself
                   "client_dirsize_rbytes": "false"}
        return {key: value for key, value in options.items() if value is not None}

    def _require_fuse(self):
        if not self.host.may("fuse"):
            raise LabError(f"{self.host.name}: to mount file systems of programs is not allowed",
                           remedy="Add it if you agree, in the environment file: allow: [fuse]")
        if self.host.run(f"test -c {fuse.DEVICE}", check=False).exit_code:
            raise LabError(f"{self.host.name}: no {fuse.DEVICE}, which ceph-fuse needs",
                           remedy="Type there: modprobe fuse; `labbook doctor` tells more")

    def _give(self):
        """The root directory and the admin socket, to the host's user where that is not root."""
        user = self.host.login.user
        if user == "root":
            return
        self.run("chown", user, self.home / SOCKET, root=True)
        if not self._point.give(user, END_SECONDS):
            self.end()
            raise SystemFailure(f"{self.host.name}: {user} was not given {self.path}")

    def _await_end(self, seconds):
        """Of ceph-fuse, by itself if it does."""
        with suppress(SystemFailure):
            self.host.wait_for(lambda: not self.process.alive(), "ceph-fuse to end", seconds,
                               interval=0.05)
            return
        self.process.kill()

    def _ready(self) -> bool:
        return self.mounted() and self.alive(ASK_SECONDS)

    def _server_pid(self) -> int | None:
        """It has no port of its own."""
        process = self.process
        return process.pid if process is not None and process.alive() else None

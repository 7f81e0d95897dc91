"""A Ceph file system mounted on a client host by ceph-fuse, which can be unmounted even when it hangs."""

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
from labbook.targets import CEPHFS

MOUNTS = "mounts"
# Reading this attribute of the root directory always takes a request to an MDS.
ASK_MDS = "import os; print(os.getxattr('.', 'ceph.dir.rctime').decode())"
ASK_SECONDS = 2
REQUEST = re.compile(r"#(?P<ino>0x[0-9a-f]+)(?:/(?P<name>.*))?$")     # the path of a client's request
END_SECONDS = 5     # in which ceph-fuse closes its sessions after the unmount


class CephMount(System):
    """One mount on one host; a host may have several, each with its `name` and its own client.

    `ceph` gives `client_config(**options)` and `client_keyring`. `path` is the mounted folder on the
    host. Only programs on the host may use it, never this process: a call there blocks as long as
    the MDS does not answer, and SIGKILL does not end it. Use `call`.

    cache_inodes: client_cache_size, the number of files that the client caches (None: Ceph's 16384).
    The host needs FUSE: `limits: {fuse: true}` in lab.yml.
    """

    NAME = "ceph_mount"
    SETTINGS = {
        "name": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,15}$", "default": "client1"},
        "cache_inodes": {"type": ["integer", "null"], "minimum": 1, "default": None},
    }
    NEEDS = Needs(packages=("ceph-fuse", "mount", "procps"), commands=("ceph-fuse", "ps"))
    START_SECONDS = 30
    protocol = CEPHFS
    port = MON_PORTS["v2"]

    def __init__(self, host, ceph, **settings):
        super().__init__(host, **settings)
        self.ceph, self.name = ceph, self.settings.name
        self.home = host.root / f"{self.NAME}-{self.name}"
        # Not below its home, which is deleted with all its files.
        self.path: PurePosixPath = host.root / MOUNTS / self.name
        self._point = MountPoint(host, self.path)

    @property
    def address(self) -> str:
        """The monitor's address."""
        return self.ceph.address

    @property
    def process(self):
        """The process of ceph-fuse; None if it was never started."""
        if self._process is None:
            self._process = self.host.process(self.home.name)
        return self._process

    def up(self, seconds: float | None = None) -> "CephMount":
        """Remove what an earlier mount of this name left, mount, and wait until an MDS answers.

        LabError before anything starts if FUSE cannot be used. SystemFailure with ceph-fuse's log if
        no MDS answers within `seconds` (default 30); nothing is mounted then.
        """
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
        """Whether the MDS of the root directory (rank 0) answers through the mount within `seconds`."""
        done = self.call(shlex.join((self.host.python, "-I", "-S", "-c", ASK_MDS)), seconds)
        return done is not None and done.exit_code == 0

    def call(self, command: str, seconds: float):
        """Run a shell command, which may hang, in the mounted folder; returns its Result.

        None if it has not ended after `seconds`. It is then abandoned, and ends with the mount at
        the latest.
        """
        return self._point.call(command, seconds)

    def ask(self, prefix: str, seconds: float = 10, **arguments):
        """ceph-fuse's answer at its admin socket, even while the mount hangs; SystemFailure without.

        Prefixes are `mds_sessions`, `status`, `perf dump`, `dump_cache`, `mds_requests`, ...
        """
        return ask(self.host, self.home, f"{self.home.name}/{SOCKET}",
                   {"prefix": prefix, **arguments}, seconds)

    def sessions(self) -> dict[int, str]:
        """{rank: state} of the client's sessions: opening, open, stale, closed, ..."""
        return {each["mds"]: each["state"] for each in self.ask("mds_sessions")["sessions"]}

    def blocklisted(self) -> bool:
        """Whether the client knows that the cluster has blocklisted it."""
        return bool(self.ask("status")["blocklisted"])

    def identity(self) -> tuple[int, str]:
        """The client's id and address, which name it in the servers' logs and the blocklist."""
        status = self.ask("status")
        return status["id"], status["inst_str"].rpartition(" ")[2]

    def unanswered(self) -> list[dict]:
        """Requests that no MDS has answered yet: rank (of the MDS), ino, and name (the path below that
        inode, or "" for the inode itself)."""
        found = self.ask("mds_requests").get("request", [])
        requests = found if isinstance(found, list) else [found]
        paths = [(one["mds"], REQUEST.match(one["path"])) for one in requests]
        return [{"rank": rank, "ino": int(path["ino"], 16), "name": path["name"] or ""}
                for rank, path in paths if path]

    def cached(self) -> int:
        """Number of directory entries in the client's cache, which cache_inodes limits with some
        seconds of delay. (The kernel may keep their inodes longer.)"""
        return self.ask("status")["dentry_count"]

    def end(self, seconds: float = 10) -> None:
        """Unmount, and end ceph-fuse.

        If an orderly unmount takes longer than `seconds`, the kernel's connection to ceph-fuse is
        aborted, and blocked callers get an error. ceph-fuse then closes its sessions with the MDSs,
        and is killed if they do not answer.
        """
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
        """Unmount, by force if no MDS answers, and remove its files.

        (A client that leaves without closing its sessions blocks others for a minute.)
        """
        if self._server_pid() is not None and self.mounted() and self.alive(1):
            self.end(END_SECONDS)
        self._point.abort()
        if self.process is not None:
            self.process.kill()
        self._process = None
        self.run("rm", "-rf", self.home, root=True)
        self._point.remove()

    def report(self) -> dict:
        return {"version": self.ask("version")["version"]}

    def _options(self) -> dict:
        options = {"run_dir": self.home, "admin_socket": SOCKET, "admin_socket_mode": "0600",
                   "client_cache_size": self.settings.cache_inodes,
                   # else a directory's size is the sum of all below it, which MDSs exchange late:
                   # it would change by itself
                   "client_dirsize_rbytes": "false"}
        return {key: value for key, value in options.items() if value is not None}

    def _require_fuse(self):
        if not self.host.may("fuse"):
            raise LabError(f"{self.host.name}: mounting a FUSE file system is not allowed",
                           remedy="Add it if you agree, in the environment file: allow: [fuse]")
        if self.host.run(f"test -c {fuse.DEVICE}", check=False).exit_code:
            raise LabError(f"{self.host.name}: no {fuse.DEVICE}, which ceph-fuse needs",
                           remedy="Run there: modprobe fuse. `labbook doctor` says what is missing")

    def _give(self):
        """Give the root directory and the admin socket to the host's user if that is not root."""
        user = self.host.login.user
        if user == "root":
            return
        self.run("chown", user, self.home / SOCKET, root=True)
        if not self._point.give(user, END_SECONDS):
            self.end()
            raise SystemFailure(f"{self.host.name}: could not give {self.path} to {user}")

    def _await_end(self, seconds):
        """Wait until ceph-fuse ends; kill it after `seconds`."""
        with suppress(SystemFailure):
            self.host.wait_for(lambda: not self.process.alive(), "ceph-fuse to end", seconds,
                               interval=0.05)
            return
        self.process.kill()

    def _ready(self) -> bool:
        return self.mounted() and self.alive(ASK_SECONDS)

    def _server_pid(self) -> int | None:
        """By the process, since ceph-fuse listens at no port."""
        process = self.process
        return process.pid if process is not None and process.alive() else None

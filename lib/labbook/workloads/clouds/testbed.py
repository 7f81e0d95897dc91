"""Servers of a cloud to try its client's functions on, and what they say of themselves over ssh.

The cloud is handed in, whichever it is; this knows its calls only.
"""

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labbook.errors import LabbookError, LabError, Lost, SystemFailure

BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
DISKS = "ls /sys/block"
DISK = re.compile(r"(?:xv|[vsh])d[a-z]+")   # names that Linux gives to disks
ASK_S, LOOK_S = 20, 0.5


@dataclass
class Testbed:
    """`reach(server)` gives something whose `run(command, timeout=, check=)` runs a shell command in
    the guest as root and tells stdout, stderr and exit_code. `dial`: as for Cloud.await_answers.
    `file`: a small raw image to upload, a file of this machine. `fit` servers of type `large` are
    told to fit at once. `hard`: reboot as by the switch, for guests that do not listen. `software`:
    what in the guest makes many files. The most that a boot may take: `seconds`, again
    `reboot_seconds`.
    """

    __test__ = False    # no test of pytest's

    cloud: Any
    image: Any
    flavor: Any
    key: Any
    reach: Callable
    dial: Callable | None = None
    file: Path | None = None
    large: Any = None
    fit: int = 8
    hard: bool = True
    software: str = "mkdir -p /opt/labbook && cp -a /usr/bin /usr/lib /opt/labbook"
    seconds: float = 300
    reboot_seconds: float = 120
    standing: list = field(default_factory=list)
    known: set = field(default_factory=set)
    begun: set = field(default_factory=set)     # ids of all servers that were started

    def run(self, n: int, image=None, flavor=None) -> list:
        """So many servers in one call, which is not waited for."""
        made = self.cloud.run(n, image or self.image, flavor or self.flavor, self.key)
        self.begun |= {one.id for one in made}
        return made

    def started(self, n: int, image=None, flavor=None) -> list:
        """Servers that answer on ssh, started in one call; SystemFailure when one does not."""
        made = self.run(n, image, flavor)
        self.cloud.await_running(made, self.seconds)
        self.cloud.require_running(made)
        self.cloud.await_answers(made, self.dial, self.seconds)
        self.cloud.require_answers(made)
        return made

    def servers(self, n: int) -> list:
        """So many that answer, kept for further functions."""
        if len(self.standing) < n:
            self.standing += self.started(n - len(self.standing))
        return self.standing[:n]

    def only(self, n: int, flavor) -> list:
        """So many of that type, and no other server of the testbed's: those that are there, if they
        are just these."""
        if [one.flavor for one in self.standing] != [str(flavor)] * n:
            self.clear()
            self.standing += self.started(n, flavor=flavor)
        return self.standing

    def clear(self) -> None:
        """End the servers that were kept."""
        if self.standing:
            self.cloud.terminate(self.standing)
            self.standing.clear()

    def abandon(self) -> None:
        """No longer keep servers that may be broken, nor such as a function has left; they are ended as
        far as the cloud does it."""
        self.standing.clear()
        with suppress(SystemFailure, LabError):
            left = [one for one in self.cloud.servers() if one.id in self.begun]
            if left:
                self.cloud.terminate(left)

    def cached(self, image) -> None:
        """Have the cloud's host keep the image, by a server that runs from it; once for each image."""
        if image.id not in self.known:
            made = self.run(1, image)
            self.cloud.await_running(made, self.seconds)
            self.cloud.require_running(made)
            self.cloud.terminate(made)
            self.known.add(image.id)

    def destroy(self) -> None:
        """All that was made on the cloud, and the cloud where it is the lab's."""
        self.cloud.destroy()

    def ask(self, server, command: str, timeout: float = ASK_S) -> str:
        """What the command says in the guest; SystemFailure when it fails there, or nobody answers."""
        try:
            result = self.reach(server).run(command, timeout=timeout, check=False)
        except Lost:        # the lab's own host
            raise
        except LabError as error:
            raise SystemFailure(f"{server.name}: {error.message}") from None
        if result.exit_code:
            raise SystemFailure(f"{server.name}: `{command[:60]}` ended with exit code {result.exit_code}",
                                log=result.stderr[-2000:])
        return result.stdout.strip()

    def boots(self, servers) -> list[str]:
        """The boot that each is in, "" for one that does not say it; asked all at a time."""
        with ThreadPoolExecutor(len(servers) or 1) as pool:
            return list(pool.map(self._boot, servers))

    def rebooted(self, servers, before: list[str]) -> list[bool]:
        """Whether each is in another boot than `before`, once all are or the time is up."""
        until = time.monotonic() + self.reboot_seconds
        while True:
            now = self.boots(servers)
            other = [one not in ("", earlier) for one, earlier in zip(now, before)]
            if all(other) or time.monotonic() > until:
                return other
            time.sleep(LOOK_S)

    def disks(self, server) -> set[str]:
        """Names of the disks that the guest sees."""
        return {name for name in self.ask(server, DISKS).split() if DISK.fullmatch(name)}

    def new_disk(self, server, before: set[str], seconds: float = ASK_S) -> str | None:
        """The name of a disk that it had not `before`, None when none comes."""
        return next(iter(self._until(lambda: self.disks(server) - before, seconds)), None)

    def disk_gone(self, server, name: str, seconds: float = ASK_S) -> bool:
        return bool(self._until(lambda: name not in self.disks(server), seconds))

    def _boot(self, server) -> str:
        try:
            return self.ask(server, BOOT_ID, timeout=ASK_S)
        except (LabbookError, OSError, EOFError):     # it is down just now
            return ""

    @staticmethod
    def _until(look, seconds):
        """look()'s first true answer, or its last one."""
        until = time.monotonic() + seconds
        while not (seen := look()) and time.monotonic() < until:
            time.sleep(LOOK_S)
        return seen

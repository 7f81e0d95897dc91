"""Servers of a cloud on which its client's functions are tried, and their state as seen over ssh.

The cloud is an argument: any object with the calls of systems.cloud.
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
UNKNOWN = "\0"      # in place of an address that is not known: no message has it
DISK = re.compile(r"(?:xv|[vsh])d[a-z]+")   # names that Linux gives to disks
ASK_S, LOOK_S = 20, 0.5


@dataclass
class Testbed:
    """`reach(server)` returns an object whose `run(command, timeout=, check=)` runs a shell command in
    the guest as root, with stdout, stderr and exit_code as its result. `dial`: as of
    Cloud.await_answers. `file`: a small raw image to upload, a file of this machine. `fit`: how many
    servers of type `large` should run at once. `hard`: reboot by power cycle, for guests that ignore
    ACPI. `software`: a command that makes many files in the guest. `seconds`, `reboot_seconds`: how
    long a boot and a reboot may take. `standing`: servers kept for further functions; `known`: ids of
    images that the cloud's host has cached; `begun`: ids of all servers that were started. `trying`: see
    labbook.workloads.clouds.functions.
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
    begun: set = field(default_factory=set)
    trying: bool = False

    def run(self, n: int, image=None, flavor=None) -> list:
        """Start n servers in one call, without waiting for them."""
        made = self.cloud.run(n, image or self.image, flavor or self.flavor, self.key)
        self.begun |= {one.id for one in made}
        return made

    def started(self, n: int, image=None, flavor=None) -> list:
        """Start n servers in one call and wait until they answer on ssh; SystemFailure when one does
        not."""
        made = self.run(n, image, flavor)
        self.cloud.await_running(made, self.seconds)
        self.cloud.require_running(made)
        self.cloud.await_answers(made, self.dial, self.seconds)
        self.cloud.require_answers(made)
        for one in made:
            self.reach(one)     # which fails here if the server's host key cannot be known
        return made

    def servers(self, n: int) -> list:
        """n servers that answer, kept for further functions."""
        if len(self.standing) < n:
            self.standing += self.started(n - len(self.standing))
        return self.standing[:n]

    def only(self, n: int, flavor) -> list:
        """n servers of that type, and no others: those that are kept, if they are just these."""
        if [one.flavor for one in self.standing] != [str(flavor)] * n:
            self.clear()
            self.standing += self.started(n, flavor=flavor)
        return self.standing

    def clear(self) -> None:
        """Terminate the kept servers."""
        if self.standing:
            self.cloud.terminate(self.standing)
            self.standing.clear()

    def abandon(self) -> None:
        """Drop all servers, since they may be broken, and terminate them as far as the cloud can."""
        self.standing.clear()
        with suppress(SystemFailure, LabError):
            left = [one for one in self.cloud.servers() if one.id in self.begun]
            if left:
                self.cloud.terminate(left)

    def cached(self, image, machines: int = 1) -> None:
        """Make the cloud's hosts cache the image, by running a server from it on each; once for each image."""
        if image.id not in self.known:
            made = self.run(machines, image)
            self.cloud.await_running(made, self.seconds)
            self.cloud.require_running(made)
            self.cloud.terminate(made)
            self.known.add(image.id)

    def destroy(self) -> None:
        """Destroy all that was made on the cloud, and the cloud if it is the lab's."""
        self.cloud.destroy()

    def ask(self, server, command: str, timeout: float = ASK_S) -> str:
        """A command's output in the guest; SystemFailure when it fails, or the guest does not answer."""
        try:
            result = self.reach(server).run(command, timeout=timeout, check=False)
        except Lost:        # the lab's own host
            raise
        except LabError as error:
            # its address is the cloud's, which records do not know to leave out
            raise SystemFailure(
                f"{server.name}: {error.message.replace(server.address or UNKNOWN, server.name)}") from None
        if result.exit_code:
            raise SystemFailure(f"{server.name}: `{command[:60]}` ended with exit code {result.exit_code}",
                                log=result.stderr[-2000:])
        return result.stdout.strip()

    def boots(self, servers) -> list[str]:
        """The boot id of each, "" for one that does not answer; asked in parallel."""
        with ThreadPoolExecutor(len(servers) or 1) as pool:
            return list(pool.map(self._boot, servers))

    def rebooted(self, servers, before: list[str]) -> list[bool]:
        """Whether each has another boot id than `before`, once all have or the time is up. False for one that did
        not answer before, since its boot was not known then."""
        until = time.monotonic() + self.reboot_seconds
        while True:
            now = self.boots(servers)
            other = [earlier != "" and one not in ("", earlier) for one, earlier in zip(now, before)]
            if all(other) or time.monotonic() > until:
                return other
            time.sleep(LOOK_S)

    def disks(self, server) -> set[str]:
        """Names of the disks that the guest sees."""
        return {name for name in self.ask(server, DISKS).split() if DISK.fullmatch(name)}

    def new_disk(self, server, before: set[str], seconds: float = ASK_S) -> str | None:
        """The name of a disk that it did not have `before`; None when none appears."""
        return next(iter(self._until(lambda: self.disks(server) - before, seconds)), None)

    def disk_gone(self, server, name: str, seconds: float = ASK_S) -> bool:
        return bool(self._until(lambda: name not in self.disks(server), seconds))

    def _boot(self, server) -> str:
        try:
            return self.ask(server, BOOT_ID, timeout=ASK_S)
        except Lost:        # the lab's own host
            raise
        except (LabbookError, OSError, EOFError):     # it is down at the moment
            return ""

    @staticmethod
    def _until(look, seconds):
        """look()'s first true result, or its last one."""
        until = time.monotonic() + seconds
        while not (seen := look()) and time.monotonic() < until:
            time.sleep(LOOK_S)
        return seen

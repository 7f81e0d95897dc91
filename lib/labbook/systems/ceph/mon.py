"""Ceph's monitor, of which a lab has one, and the teller that asks it."""

import shlex

from labbook.errors import SystemFailure
from labbook.systems.base import Needs
from labbook.systems.ceph import admin_socket as asking
from labbook.systems.ceph.config import ADMIN, CONF, MON_PORTS, keyring, monitors
from labbook.systems.ceph.daemons import CephDaemon

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
        words = asking.tools(self.host, self.home, "tell", self.home / CONF,
                             f"{self.NAME}/teller", python=PYTHON).replace(" -S ", " ", 1)
        process = self.host.start(TELLER, words)
        self.host.wait_for(self._tells, "the monitor to be told something", 30, process, 0.05)

    def tell(self, prefix: str, seconds: float = 30, **arguments):
        """What the monitor answers to a command, as JSON; SystemFailure with why when it refuses."""
        return asking.ask(self.host, self.home, f"{self.NAME}/teller",
                          {"prefix": prefix, **arguments}, seconds)

    def tell_all(self, commands: list[dict], seconds: float = 30) -> list:
        """Several, one after the other, for the price of one."""
        return asking.ask_all(self.host, self.home, f"{self.NAME}/teller", commands, seconds)

    def _tells(self) -> bool:
        try:
            self.tell("mon stat", 5)
        except SystemFailure:
            return False
        return True

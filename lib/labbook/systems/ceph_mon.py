"""Ceph's monitor, of which a lab has one, and the teller that asks it."""

import shlex

from labbook.errors import LabbookError, SystemFailure
from labbook.systems import ceph_asking as asking
from labbook.systems.base import Needs
from labbook.systems.ceph_config import CONF, MON_PORTS, monitors
from labbook.systems.ceph_daemon import CephDaemon

TELLER = "ceph_teller"  # the process's name
PYTHON = "/usr/bin/python3"  # Debian's, which has librados's package
MAKE = """set -e; cd {home}
monmaptool --create --clobber --fsid {fsid} --addv {id} '{where}' monmap
osdmaptool --createsimple {osds} --clobber osdmap
ceph-mon --mkfs -i {id} -c {conf} --monmap monmap --osdmap osdmap --keyring keyring"""


class CephMon(CephDaemon):
    """It starts from a map that has the OSDs, and from all keys."""

    NAME, KIND = "ceph_mon", "mon"
    NEEDS = Needs(packages=("ceph-mon", "ceph-base", "ceph-common", "python3-rados", "procps"),
                  commands=("ps",))
    port = MON_PORTS["v2"]

    def __init__(self, host, id, cluster, osds: int):
        super().__init__(host, id, cluster)
        self.osds = osds

    @property
    def name(self) -> str:
        return "mon."

    @property
    def teller(self):
        return self.host.process(TELLER)

    def destroy(self) -> None:
        if (teller := self.teller) is not None:
            teller.kill()
        super().destroy()

    def stop(self) -> None:
        if (teller := self.teller) is not None:
            teller.kill()
        super().stop()

    def deploy(self) -> None:
        super().deploy()
        self.host.run(MAKE.format(home=shlex.quote(str(self.home)), fsid=self.cluster.fsid,
                                  id=self.id, where=monitors(self.address), osds=self.osds,
                                  conf=CONF))

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

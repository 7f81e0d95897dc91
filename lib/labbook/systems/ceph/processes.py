"""A Ceph cluster as a whole: its parts, its life from up to destroy, and whom to ask what."""

import time
from contextlib import contextmanager, suppress

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.systems.base import Described
from labbook.systems.ceph import config
from labbook.systems.ceph.daemons import Cluster
from labbook.systems.ceph.fsmap import ACTIVE, FsMap, parsed
from labbook.systems.ceph.mds import CephMDS
from labbook.systems.ceph.mon import CephMon
from labbook.systems.ceph.osd import CephOSD
from labbook.systems.ceph.watch import Watch
from labbook.systems.cluster import each, together

UP_SECONDS = 60
ASK_SECONDS = 0.1   # between two looks at the map, of which each costs the monitor a ms
PARTS = {"mon": CephMon, "osd": CephOSD, "mds": CephMDS}    # by the role of a host


class CephCluster(Described):
    """What Ceph is but for its metadata servers' ranks."""

    SETTINGS = config.SETTINGS
    fs_name = config.FS_NAME
    protocol = "cephfs"

    def __init__(self, hosts, **settings):
        self.settings = self.checked(settings)
        self.hosts = list(hosts)
        by_role = {role: [h for h in self.hosts if h.role == role] for role in PARTS}
        config.check_hosts(self.settings, {role: len(found) for role, found in by_role.items()})
        self.host, = by_role["mon"]
        self._cluster = Cluster(self.host.address, config.options(self.settings))
        mdss = by_role["mds"][:self.settings["active"] + self.settings["standby"]]
        self.mon = CephMon(self.host, "a", self._cluster)
        self.osds = [CephOSD(host, str(i), self._cluster, self.settings["osds"], len(by_role["osd"]))
                     for i, host in enumerate(by_role["osd"])]
        self.mdss = {host.name: CephMDS(host, host.name, self._cluster) for host in mdss}
        self.address, self.port = self.mon.address, self.mon.port
        self.up_s: float | None = None  # how long `up` took the last time

    @classmethod
    def checked(cls, settings: dict) -> dict:
        settings = super().checked(settings)
        if settings["replay"] and not settings["standby"]:
            settings["standby"] = settings["active"]
        return settings

    def daemons(self) -> dict:
        """All by name: mon, osd.0 and so on, MDSs by their hosts."""
        return {"mon": self.mon, **{osd.name: osd for osd in self.osds}, **self.mdss}

    @property
    def process(self):
        """The monitor's."""
        return self.mon.process

    @property
    def processes(self) -> list:
        return [daemon.process for daemon in self.daemons().values()]

    def up(self) -> "CephCluster":
        """Take away what earlier runs left and make a new cluster; returns when all ranks are
        active and the spares are there. SystemFailure with a log's tail if not: nothing runs then.
        """
        began = time.monotonic()
        self.destroy()
        each(self.daemons().values(), lambda daemon: daemon.provide())
        self._cluster.renew(daemon.name for daemon in self.daemons().values())
        with self._or_none():
            self.mon.deploy()
            self.mon.start()
            each([*self.osds, *self.mdss.values()], _deploy_and_begin)
            self._await_osds()
            self.mon.tell_all(config.file_system(self.settings))
            self._await_all()
        self.up_s = time.monotonic() - began
        return self

    def stop(self) -> None:
        """End all at once, in no order: nothing is to be kept."""
        each(self.daemons().values(), lambda daemon: daemon.kill())

    def destroy(self) -> None:
        """End what runs and take its files away."""
        each(self.daemons().values(), lambda daemon: daemon.destroy())

    def facts(self) -> dict:
        """Settings, the version as each daemon tells it, and what a running MDS goes by."""
        mds = self.mdss[next(iter(self.fs_map().ranks.values())).name]
        own = {key: float(mds.ask("config get", var=key)[key]) for key in config.MDS_FACTS}
        found = together(each(self.daemons().values(), lambda daemon: daemon.facts()))
        return {"system": self.NAME, **self.settings, "osd_count": len(self.osds),
                "version": found["version"], "resident_mb": found["resident_mb"], **own}

    def mount(self, host, **settings):
        """A CephMount of the file system on a client host, not yet up."""
        from labbook.systems.ceph.mount import CephMount

        return CephMount(host, self, **settings)

    def client_config(self, **options) -> str:
        """Text of a client's ceph.conf, with these options; the file `keyring` is beside it."""
        return config.client_text(self._cluster.fsid, self.address, **options)

    @property
    def client_keyring(self) -> str:
        """Of client.admin."""
        return config.keyring({config.ADMIN: self._cluster.keys[config.ADMIN]})

    def fs_map(self) -> FsMap:
        """As the monitor has it now."""
        return parsed(self.mon.tell("fs dump"))

    def ask(self, name: str, prefix: str, seconds: float = 10, **arguments):
        """What a daemon's admin socket answers; `name` as in `daemons`. SystemFailure if nothing."""
        known = self.daemons()
        if name not in known:
            raise InputError(f"no daemon {name!r}", allowed=list(known))
        return known[name].ask(prefix, seconds, **arguments)

    def command(self, prefix: str, seconds: float = 30, **arguments):
        """What the monitor answers to a command, as the `ceph` command would send it."""
        return self.mon.tell(prefix, seconds, **arguments)

    def watch(self, seconds_between: float = 0.5) -> Watch:
        """Begin to sample all MDSs; see Watch."""
        serving = [one.name for one in self.ranks().values()]
        return Watch(self.mdss.values(), seconds_between, serving).begin()

    def _await_osds(self):
        for osd in self.osds:
            osd.await_answer()
        self.host.wait_for(lambda: self.mon.tell("osd stat")["num_up_osds"] == len(self.osds),
                           f"{len(self.osds)} OSDs to be up", UP_SECONDS, self.osds[-1].process)

    def _await_all(self):
        s = self.settings
        following = min(s["standby"], s["active"]) if s["replay"] else 0
        self._await(lambda seen: seen.settled(s["active"]) and len(seen.followers) == following
                    and len(seen.standbys) == s["standby"] - following,
                    f"{s['active']} ranks and {s['standby']} spares", UP_SECONDS)

    def _await(self, settled, what, seconds) -> FsMap:
        """The first map that is; SystemFailure with the last one, and a rank's log, if none is."""
        seen = None

        def look():
            nonlocal seen
            seen = self.fs_map()
            return settled(seen)

        try:
            self.host.wait_for(look, what, seconds, interval=ASK_SECONDS)
        except SystemFailure as error:
            error.message += f"; it is {seen.told()}" if seen else ""
            error.log = self._log_of_the_last(seen)
            raise
        return seen

    def _log_of_the_last(self, seen) -> str | None:
        """Of the MDS that is not there, or else of one that is not active."""
        there = seen.daemons if seen else {}
        wanted = sorted(self.mdss, key=lambda name: (name in there, name in there
                                                     and there[name].state == ACTIVE))
        process = self.mdss[wanted[0]].process
        return process.log_tail() if process else None

    @contextmanager
    def _or_none(self):
        """Nothing is left running when it does not come up."""
        try:
            yield
        except BaseException:
            with suppress(LabbookError):  # what went wrong first is what must be told
                self.stop()
            raise


def _deploy_and_begin(daemon) -> None:
    daemon.deploy()
    daemon.begin()

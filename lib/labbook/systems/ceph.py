"""A Ceph cluster with its file system: one monitor, OSDs, and metadata servers that come and go."""

import time
from contextlib import contextmanager, suppress

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.systems import ceph_config as config
from labbook.systems.base import Described, Needs
from labbook.systems.ceph_daemon import Cluster
from labbook.systems.ceph_faults import Faults, fault_log
from labbook.systems.ceph_map import ACTIVE, Daemon, FsMap, parsed
from labbook.systems.ceph_mds import CephMDS
from labbook.systems.ceph_mon import CephMon
from labbook.systems.ceph_osd import CephOSD
from labbook.systems.ceph_tools import reading
from labbook.systems.ceph_watch import Watch
from labbook.systems.several import each, together

FS = "labbook"
UP_SECONDS = 60
ASK_SECONDS = 0.1   # between two looks at the map, of which each costs the monitor a ms
PARTS = {"mon": CephMon, "osd": CephOSD, "mds": CephMDS}


class Ceph(Described):
    """Of `hosts`, the one of role mon has the monitor, those of role osd an OSD each, those of role
    mds a metadata server (MDS) each, as many as are asked for; hosts of other roles are ignored.

    osds: where the OSDs keep their objects, in `memory` or on their hosts' `disk` (BlueStore).
    active: MDSs with a rank. standby: further ones that wait. replay: the spares follow the ranks,
    one a rank, and can take over that rank alone; without `standby` there are as many as ranks.
    cache_mb: mds_cache_memory_limit. balancer: as shipped (every 10 s), or never. beacon_grace_s:
    after how long without a word an MDS counts as dead. propose_s: paxos_propose_interval, how long
    the monitor gathers changes. None: as shipped.

    An MDS is called by the name of its host. InputError for what cannot be a cluster.
    """

    NAME = "ceph"
    SETTINGS = config.SETTINGS
    NEEDS = Needs(*(tuple(dict.fromkeys(one for part in PARTS.values()
                                        for one in getattr(part.NEEDS, kind)))
                    for kind in ("packages", "artifacts", "commands", "made")))
    PARTS = {role: part.NAME for role, part in PARTS.items()}
    protocol = "cephfs"
    fs_name = FS

    def __init__(self, hosts, **settings):
        self.settings = self.checked(settings)
        self.hosts = list(hosts)
        by_role = {role: [h for h in self.hosts if h.role == role] for role in PARTS}
        config.check_hosts(self.settings, {role: len(found) for role, found in by_role.items()})
        self.host, = by_role["mon"]
        mdss = by_role["mds"][:self.settings["active"] + self.settings["standby"]]
        self._cluster = Cluster(self.host.address, config.options(self.settings))
        self.mon = CephMon(self.host, "a", self._cluster)
        self.osds = [CephOSD(host, str(i), self._cluster, self.settings["osds"])
                     for i, host in enumerate(by_role["osd"])]
        self.mdss = {host.name: CephMDS(host, host.name, self._cluster) for host in mdss}
        self.address, self.port = self.mon.address, self.mon.port
        self._killed: dict[str, float] = {}     # by name, when
        self._dead: set[int] = set()            # lives of MDSs that the map may still have

    @classmethod
    def checked(cls, settings: dict) -> dict:
        settings = super().checked(settings)
        if settings["replay"] and not settings["standby"]:
            settings["standby"] = settings["active"]
        return settings

    def daemons(self) -> dict:
        """All by name: `a` for the monitor, osd.0 and so on, MDSs by their hosts."""
        return {"mon": self.mon, **{osd.name: osd for osd in self.osds}, **self.mdss}

    @property
    def process(self):
        """The monitor's."""
        return self.mon.process

    @property
    def processes(self) -> list:
        return [daemon.process for daemon in self.daemons().values()]

    # its life

    def up(self) -> "Ceph":
        """Take away what earlier runs left and make a new cluster; returns when all ranks are
        active and the spares are there. SystemFailure with a log's tail if not: nothing runs then.
        """
        self.destroy()
        each(self.daemons().values(), lambda daemon: daemon.provide())
        self._cluster.renew(daemon.name for daemon in self.daemons().values())
        with self._or_none():
            self.mon.deploy()
            self.mon.start()
            each([*self.osds, *self.mdss.values()], _deploy_and_begin)
            self._await_osds()
            self.mon.tell_all(config.file_system(FS, self.settings))
            self._await_all(UP_SECONDS)
        return self

    def stop(self) -> None:
        """End all at once, in no order: nothing is to be kept."""
        each(self.daemons().values(), lambda daemon: daemon.kill())

    def destroy(self) -> None:
        """End what runs and take its files away."""
        each(self.daemons().values(), lambda daemon: daemon.destroy())
        self._killed, self._dead = {}, set()

    def facts(self) -> dict:
        """Settings, the version as each daemon tells it, and what a running MDS goes by."""
        mds = self.mdss[next(iter(self.ranks().values())).name]
        own = {key: mds.ask("config get", var=key)[key] for key in config.MDS_FACTS}
        found = together(each(self.daemons().values(), lambda daemon: daemon.facts()))
        return {"system": self.NAME, **self.settings, "osd_count": len(self.osds),
                "version": found["version"], "resident_mb": found["resident_mb"], **own}

    # what clients need

    def mount(self, host, **settings):
        """A CephMount of the file system on a client host, not yet up."""
        from labbook.systems.ceph_mount import CephMount

        return CephMount(host, self, **settings)

    def client_config(self, **options) -> str:
        """Text of a client's ceph.conf, with these options; the file `keyring` is beside it."""
        return config.client_text(self._cluster.fsid, self.address, **options)

    @property
    def client_keyring(self) -> str:
        """Of client.admin."""
        return config.keyring({config.ADMIN: self._cluster.keys[config.ADMIN]})

    # who has which rank

    def fs_map(self) -> FsMap:
        """As the monitor has it now."""
        return parsed(self.mon.tell("fs dump"))

    def ranks(self) -> dict[int, Daemon]:
        return self.fs_map().ranks

    def standbys(self) -> list[Daemon]:
        return self.fs_map().standbys

    def active(self, count: int, seconds: float = UP_SECONDS) -> FsMap:
        """Have `count` ranks from now on; returns when that many are active."""
        if not 1 <= count <= len(self.mdss):
            raise InputError(f"{count} metadata servers of {len(self.mdss)}", file=config.FILE,
                             key="active", allowed=f"1 to {len(self.mdss)}")
        self._set("max_mds", count)
        return self.await_active(count, seconds)

    def await_active(self, count: int | None = None, seconds: float = UP_SECONDS) -> FsMap:
        """The map once that many ranks (as in the settings) are active, and there are no others;
        what was killed or failed here does not count, although the map may still have it."""
        count = count or self.settings["active"]
        return self._await(lambda seen: seen.settled(count, self._dead),
                           f"{count} ranks to be active", seconds)

    def kill(self, rank: int) -> tuple[str, float]:
        """SIGKILL to the MDS that has this rank: its name, and when (epoch seconds)."""
        found = self._of_rank(rank)
        mds = self._mds(found.name)
        self._dead.add(found.gid)
        at_s = self._killed[mds.id] = time.time()
        mds.process.kill()
        return mds.id, at_s

    def start_mds(self, name: str) -> float:
        """Start the MDS of that name again, and do not wait: when (epoch seconds)."""
        mds, at_s = self._mds(name), time.time()
        mds.begin()
        return at_s

    def fail(self, rank: int) -> float:
        """Have the monitor take the rank away now: when that was asked (epoch seconds)."""
        found, at_s = self._of_rank(rank), time.time()
        self._dead.add(found.gid)
        self.mon.tell("mds fail", role_or_gid=str(found.gid))
        return at_s

    def standby_replay(self, on: bool, seconds: float = UP_SECONDS) -> FsMap:
        """Have spares follow ranks or not; returns when all do that can, or none does."""
        self._set("allow_standby_replay", on)

        def settled(seen):
            spares = len(seen.followers) + len(seen.standbys)
            return len(seen.followers) == (min(spares, len(seen.ranks)) if on else 0)

        return self._await(settled, f"spares {'' if on else 'not '}to follow", seconds)

    # what they tell

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
        return Watch(self.mdss.values(), seconds_between).begin()

    def fault_log(self, since_s: float) -> Faults:
        """What happened since then (epoch seconds); see Faults."""
        return fault_log(self, since_s)

    def owned(self) -> dict[int, list[str]]:
        """By rank, from which directories on it is in charge, as each says; `/` is the root."""
        return {rank: reading.owned(self.ask(one.name, "get subtrees"), rank)
                for rank, one in sorted(self.ranks().items())}

    def export(self, path: str, rank: int, seconds: float = 30) -> None:
        """Have a directory, such as `/a/b`, move to another rank; returns when that one has it.

        The balancer may take it back. SystemFailure when it does not come within `seconds`.
        """
        had = {one: paths for one, paths in self.owned().items() if one != rank}
        giver = max(had, key=lambda one: max((len(p) for p in had[one] if _within(path, p)),
                                             default=-1))
        self.ask(self.ranks()[giver].name, "export dir", path=path, rank=rank)
        self.host.wait_for(lambda: path in self.owned()[rank], f"{path} to move to rank {rank}",
                           seconds, interval=ASK_SECONDS)

    def killed(self) -> dict[str, float]:
        """By name, when `kill` ended an MDS last (epoch seconds)."""
        return dict(self._killed)

    def _set(self, var: str, value) -> None:
        self.mon.tell("fs set", fs_name=FS, var=var, val=str(value).lower())

    def _mds(self, name: str) -> CephMDS:
        if name not in self.mdss:
            raise InputError(f"no metadata server {name!r}", allowed=list(self.mdss))
        return self.mdss[name]

    def _of_rank(self, rank: int) -> Daemon:
        ranks = self.ranks()
        if rank not in ranks:
            raise InputError(f"nobody has rank {rank}", allowed=sorted(ranks))
        return ranks[rank]

    def _await_osds(self):
        def up():
            stat = self.mon.tell("osd stat")
            return stat["num_up_osds"] == len(self.osds)

        for osd in self.osds:
            osd.await_answer()
        self.host.wait_for(up, f"{len(self.osds)} OSDs to be up", UP_SECONDS, self.osds[-1].process)

    def _await_all(self, seconds):
        s = self.settings

        def settled(seen):
            following = min(s["standby"], s["active"]) if s["replay"] else 0
            return (seen.settled(s["active"]) and len(seen.followers) == following
                    and len(seen.standbys) == s["standby"] - following)

        self._await(settled, f"{s['active']} ranks and {s['standby']} spares", seconds)

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
        """Of the MDS that is not there, or of one of those that are not active."""
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


def _within(path: str, folder: str) -> bool:
    return folder == "/" or path == folder or path.startswith(f"{folder}/")


def _deploy_and_begin(daemon) -> None:
    daemon.deploy()
    daemon.begin()

"""A Ceph cluster with its file system: one monitor, OSDs, and metadata servers (MDSs)."""

import shlex
import time
from collections import Counter
from contextlib import suppress

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.lab import clock
from labbook.systems.base import Needs
from labbook.systems.ceph import config
from labbook.systems.ceph.daemons import CephDaemon, CephMDS, CephMon, CephOSD, Identity
from labbook.systems.ceph.faults import Faults, fault_log
from labbook.systems.ceph.fsmap import Daemon, FsMap, parse_map, suspect
from labbook.systems.ceph.on_host.ceph_tools import parse
from labbook.systems.ceph.watch import Watch
from labbook.systems.cluster import Cluster, in_parallel, merged
from labbook.targets import CEPHFS

UP_SECONDS = 60
ASK_SECONDS = 0.1   # between two queries of the map, each of which costs the monitor 1 ms
PARTS = {"mon": CephMon, "osd": CephOSD, "mds": CephMDS}    # by the role of a host
PIN = """
import os, sys
os.makedirs(f"{sys.argv[1]}/home", exist_ok=True)   # no rank takes an empty directory
os.setxattr(sys.argv[1], "ceph.dir.pin", sys.argv[2].encode())
"""


class Ceph(Cluster):
    """One monitor on the host of role mon, an OSD on each host of role osd, and MDSs on the first
    `active + standby` hosts of role mds. Hosts of other roles are ignored.

    osds: the object store, in `memory` or on the hosts' `disk` (BlueStore).
    replication: copies of each object.
    active: number of MDSs with a rank.
    standby: number of further MDSs.
    replay: standby-replay. Each standby follows one rank and can take over only that rank; without
        `standby` there are as many standbys as ranks.
    cache_mb: mds_cache_memory_limit.
    balancer: run the MDS balancer, or never.
    balance_s: seconds between two rounds of the balancer (Ceph's default is 10); its other times are scaled.
    beacon_grace_s: mds_beacon_grace, after which an MDS without beacons counts as dead.
    propose_s: paxos_propose_interval, during which the monitor collects changes.

    A setting that is None keeps Ceph's default. An MDS has the name of its host. InputError if the
    hosts do not fit the settings.
    """

    NAME = "ceph"
    NEEDS = Needs.union(*(part.NEEDS for part in PARTS.values()))
    PARTS = {role: part.NAME for role, part in PARTS.items()}
    SETTINGS = config.SETTINGS
    fs_name = config.FS_NAME
    protocol = CEPHFS

    def __init__(self, hosts, **settings):
        super().__init__(hosts, **settings)
        self.up_s: float | None = None  # duration of the last `up`
        self._reset()

    @classmethod
    def checked(cls, settings: dict) -> dict:
        settings = super().checked(settings)
        if settings["replay"] and not settings["standby"]:
            settings["standby"] = settings["active"]
        return settings

    def make_nodes(self) -> list[CephDaemon]:
        s, by_role = self.settings, {role: self.of_role(role) for role in PARTS}
        config.check_hosts(vars(s), {role: len(found) for role, found in by_role.items()})
        mon, = by_role["mon"]
        self._identity = Identity(mon.address, config.options(vars(s)))
        self.mon = CephMon(mon, "a", self._identity)
        shared = Counter(map(_disk, by_role["osd"]))
        self.osds = [CephOSD(host, str(i), self._identity, s.osds, shared[_disk(host)])
                     for i, host in enumerate(by_role["osd"])]
        self.mdss = {host.name: CephMDS(host, host.name, self._identity)
                     for host in by_role["mds"][:s.active + s.standby]}
        return [self.mon, *self.osds, *self.mdss.values()]

    def daemons(self) -> dict[str, CephDaemon]:
        """All daemons by name: `mon`, `osd.0` and so on, MDSs by the name of their host."""
        return {"mon": self.mon, **{osd.name: osd for osd in self.osds}, **self.mdss}

    @property
    def addresses(self) -> list[str]:
        """The monitor's, which tells clients the other daemons' addresses."""
        return [self.address]

    def up(self) -> "Ceph":
        """Remove what earlier runs left and start a new cluster.

        Returns when all ranks are active and all standbys have registered. SystemFailure with the
        end of a log if not; no daemon is left running then.
        """
        began = time.monotonic()
        super().up()
        self.up_s = time.monotonic() - began
        return self

    def deploy(self) -> None:
        """Write the monitor's files. Those of the other daemons need a running monitor; see `start`."""
        self._identity.renew(daemon.name for daemon in self.nodes)
        self.mon.deploy()

    def start(self) -> None:
        with self.all_or_none():
            self.mon.start()
            in_parallel(self.nodes[1:], _deploy_and_begin)
            self._await_osds()
            self.mon.send_all(config.file_system(vars(self.settings)))
            self.await_formed()

    def await_formed(self) -> None:
        """Wait until all ranks are active and all standbys have registered."""
        s = self.settings
        following = min(s.standby, s.active) if s.replay else 0
        self._await(lambda seen: seen.settled(s.active) and len(seen.followers) == following
                    and len(seen.standbys) == s.standby - following,
                    f"{s.active} ranks and {s.standby} standbys", UP_SECONDS)

    def stop(self) -> None:
        """Kill all daemons at once, since none of their state is reused."""
        self.kill_all()

    def destroy(self) -> None:
        super().destroy()
        self._reset()

    def facts(self) -> dict:
        """Settings, versions, memory, and the options that a running MDS reports (MDS_FACTS)."""
        mds = self.mdss[next(iter(self.fs_map().ranks.values())).name]
        own = {key: float(mds.ask("config get", var=key)[key]) for key in config.MDS_FACTS}
        found = merged(in_parallel(self.nodes, lambda daemon: daemon.facts()))
        return {"system": self.NAME, **vars(self.settings), "osd_count": len(self.osds),
                "version": found["version"], "resident_mb": found["resident_mb"], **own}

    def mount(self, host, **settings):
        """A CephMount of the file system on a client host; call its `up`."""
        from labbook.systems.ceph.mount import CephMount

        return CephMount(host, self, **settings)

    def client_config(self, **options) -> str:
        """A client's ceph.conf with these options; it expects the file `keyring` in its folder."""
        return config.client_text(self._identity.fsid, self.address, **options)

    @property
    def client_keyring(self) -> str:
        """The keyring of client.admin."""
        return config.keyring({config.ADMIN: self._identity.keys[config.ADMIN]})

    def fs_map(self) -> FsMap:
        """The monitor's current map."""
        return parse_map(self.mon.send("fs dump"))

    def ask(self, name: str, prefix: str, seconds: float = 10, **arguments):
        """A daemon's answer at its admin socket; `name` as in `daemons`. SystemFailure without one."""
        known = self.daemons()
        if name not in known:
            raise InputError(f"no daemon {name!r}", allowed=list(known))
        return known[name].ask(prefix, seconds, **arguments)

    def command(self, prefix: str, seconds: float = 30, **arguments):
        """The monitor's answer to a command, as the `ceph` program sends it."""
        return self.mon.send(prefix, seconds, **arguments)

    def watch(self, seconds_between: float = 0.5) -> Watch:
        """Start sampling all MDSs; see Watch."""
        serving = [one.name for one in self.ranks().values()]
        return Watch(self.mdss.values(), seconds_between, serving).begin()

    def ranks(self) -> dict[int, Daemon]:
        return self.fs_map().ranks

    def standbys(self) -> list[Daemon]:
        return self.fs_map().standbys

    def active(self, count: int, seconds: float = UP_SECONDS) -> FsMap:
        """Set the number of ranks and wait until that many are active; returns the map.

        InputError for fewer than one or more than there are servers; SystemFailure after `seconds`.
        """
        if not 1 <= count <= len(self.mdss):
            raise InputError(f"{count} metadata servers of {len(self.mdss)}", file=config.FILE,
                             key="active", allowed=f"1 to {len(self.mdss)}")
        self._set("max_mds", count)
        self._count = count
        return self.await_active(count, seconds)

    def await_active(self, count: int | None = None, seconds: float = UP_SECONDS) -> FsMap:
        """Wait until exactly `count` ranks (default: as last set) are active; returns the map.

        An MDS that was killed or failed through this object does not count, even if it is still in
        the map. SystemFailure with the last map if it takes longer than `seconds`.
        """
        count = count or self._count
        return self._await(lambda seen: seen.settled(count, self._dead),
                           f"{count} ranks to be active", seconds)

    def kill(self, rank: int, before=None) -> tuple[str, float]:
        """SIGKILL the MDS of this rank. Returns its name and the time (epoch seconds).

        `before()` is called right before the signal, once the MDS is known.
        """
        found = self._of_rank(rank)
        mds = self._mds(found.name)
        if before is not None:
            before()
        self._dead.add(found.gid)
        at_s = self._killed[mds.id] = clock.now()
        mds.process.kill()
        return mds.id, at_s

    def start_mds(self, name: str) -> float:
        """Start an MDS again without waiting. Returns the time (epoch seconds)."""
        mds, at_s = self._mds(name), clock.now()
        mds.begin()
        self._killed.pop(name, None)
        return at_s

    def fail(self, rank: int) -> float:
        """Run `ceph mds fail` on this rank. Returns the time (epoch seconds).

        A running MDS restarts itself then.
        """
        found, at_s = self._of_rank(rank), clock.now()
        self._dead.add(found.gid)
        self.mon.send("mds fail", role_or_gid=str(found.gid))
        return at_s

    def standby_replay(self, on: bool, seconds: float = UP_SECONDS) -> FsMap:
        """Turn standby-replay on or off; returns once the standbys have changed their state."""
        self._set("allow_standby_replay", on)

        def settled(seen):
            spares = len(seen.followers) + len(seen.standbys)
            return len(seen.followers) == (min(spares, len(seen.ranks)) if on else 0)

        return self._await(settled, f"spares {'' if on else 'not '}to follow", seconds)

    def owned(self, dead: int | None = None) -> dict[int, list[str]]:
        """The directories at which each rank's subtrees begin, as that rank's MDS reports them.

        `/` is the root. `dead`: a rank whose server died; its subtrees are taken from the other
        MDSs, which know only those that border on their own.
        """
        reports = {rank: self.ask(one.name, "get subtrees")
                for rank, one in sorted(self.ranks().items()) if rank != dead}
        found = {rank: parse.owned(subtrees, rank) for rank, subtrees in reports.items()}
        if dead is not None:
            found[dead] = sorted({path for each in reports.values() for path in parse.owned(each, dead)})
        return found

    def locked_inodes(self, inodes, dead: int) -> set[int]:
        """The inode numbers among `inodes` that have a lock at another rank's MDS which waits for an
        answer from the rank `dead`."""
        others = [one.name for rank, one in self.ranks().items() if rank != dead]
        return {ino for ino in inodes for name in others
                if parse.waits_for(self.ask(name, "dump inode", number=ino), dead)}

    def migrating(self) -> dict[str, list[str]]:
        """Directories that are migrating to another rank, by the MDS that reports them.

        An MDS that does not answer is left out.
        """
        found = {}
        for one in self.ranks().values():
            with suppress(LabbookError):    # killed but still in the map
                found[one.name] = parse.migrating(self.ask(one.name, "get subtrees"))
        return found

    def pin_folder(self, mount, name: str, rank: int, seconds: float = 60) -> str:
        """Create the folder `NAME/home` through the mount, pin NAME to the rank, and return its path
        once that rank owns NAME. Nothing below NAME migrates.

        SystemFailure if it takes longer than `seconds`.
        """
        done = mount.call(shlex.join((mount.host.python, "-I", "-S", "-c", PIN, name, str(rank))), seconds)
        if done is None or done.exit_code:
            raise SystemFailure(f"could not pin {name}: {done.stderr.strip() if done else 'no answer'}")
        self.host.wait_for(lambda: f"/{name}" in self.owned()[rank], f"rank {rank} to own {name}",
                           seconds, interval=ASK_SECONDS)
        return f"{name}/home"

    def fault_log(self, since_s: float) -> Faults:
        """Faults since this time (epoch seconds); see Faults."""
        return fault_log(self, since_s)

    def killed(self) -> dict[str, float]:
        """Epoch seconds at which `kill` ended an MDS, by name; without those started again."""
        return dict(self._killed)

    def _reset(self):
        self._count = self.settings.active
        self._killed: dict[str, float] = {}
        self._dead: set[int] = set()    # gids of dead MDSs that may still be in the map

    def _set(self, var: str, value) -> None:
        self.mon.send("fs set", fs_name=self.fs_name, var=var, val=str(value).lower())

    def _mds(self, name: str) -> CephMDS:
        if name not in self.mdss:
            raise InputError(f"no metadata server {name!r}", allowed=list(self.mdss))
        return self.mdss[name]

    def _of_rank(self, rank: int) -> Daemon:
        ranks = self.ranks()
        if rank not in ranks:
            raise InputError(f"no MDS has rank {rank}", allowed=sorted(ranks))
        return ranks[rank]

    def _await_osds(self):
        for osd in self.osds:
            osd.await_answer()
        self.host.wait_for(lambda: self.mon.send("osd stat")["num_up_osds"] == len(self.osds),
                           f"{len(self.osds)} OSDs to be up", UP_SECONDS, self.osds[-1].process)

    def _await(self, settled, what, seconds) -> FsMap:
        """Wait for a map that is `settled` and return it; SystemFailure with the last map if none is."""
        seen = None

        def look():
            nonlocal seen
            seen = self.fs_map()
            return settled(seen)

        try:
            self.host.wait_for(look, what, seconds, interval=ASK_SECONDS)
        except SystemFailure as error:
            error.message += f"; the map has {seen.summary()}" if seen else ""
            error.log = self._log_of_suspect(seen)
            raise
        return seen

    def _log_of_suspect(self, seen) -> str | None:
        """The end of the log of the MDS that a wait in vain was probably for."""
        process = self.mdss[suspect(self.mdss, seen, self._killed)].process
        return process.log_tail() if process else None


def _disk(host):
    """What is equal for hosts whose files are on one disk: the name of one with a disk of its own, else the machine."""
    if "disk" in host.limits:
        return host.name
    return host.login if host.is_remote else None


def _deploy_and_begin(daemon) -> None:
    daemon.deploy()
    daemon.begin()

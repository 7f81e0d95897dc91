"""A Ceph cluster as a whole: its parts, its life from up to destroy, and whom to ask what."""

import shlex
import time
from contextlib import contextmanager, suppress

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.systems.base import Described, Needs
from labbook.systems.ceph import config
from labbook.systems.ceph.daemons import CephMDS, CephMon, CephOSD, Cluster
from labbook.systems.ceph.faults import Faults, fault_log
from labbook.systems.ceph.fsmap import ACTIVE, Daemon, FsMap, parsed
from labbook.systems.ceph.on_host.ceph_tools import reading
from labbook.systems.ceph.watch import Watch
from labbook.systems.cluster import each, together

UP_SECONDS = 60
ASK_SECONDS = 0.1   # between two looks at the map, of which each costs the monitor a ms
PARTS = {"mon": CephMon, "osd": CephOSD, "mds": CephMDS}    # by the role of a host
PIN = """
import os, sys
os.makedirs(f"{sys.argv[1]}/home", exist_ok=True)   # of an empty one no rank takes charge
os.setxattr(sys.argv[1], "ceph.dir.pin", sys.argv[2].encode())
"""


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
    NEEDS = Needs(*(tuple(dict.fromkeys(one for part in PARTS.values()
                                        for one in getattr(part.NEEDS, kind)))
                    for kind in ("packages", "artifacts", "commands", "made")))
    PARTS = {role: part.NAME for role, part in PARTS.items()}
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
        self._forget()

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

    def up(self) -> "Ceph":
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
        self._forget()

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
        self._count = count
        return self.await_active(count, seconds)

    def await_active(self, count: int | None = None, seconds: float = UP_SECONDS) -> FsMap:
        """The map once that many ranks (as many as there are to be) are active, and there are no
        others; what was killed or failed here is not, although the map may still have it."""
        count = count or self._count
        return self._await(lambda seen: seen.settled(count, self._dead),
                           f"{count} ranks to be active", seconds)

    def kill(self, rank: int, before=None) -> tuple[str, float]:
        """SIGKILL to the MDS that has this rank: its name, and when (epoch seconds). `before()` is
        called once it is known who that is, right before."""
        found = self._of_rank(rank)
        mds = self._mds(found.name)
        if before is not None:
            before()
        self._dead.add(found.gid)
        at_s = self._killed[mds.id] = time.time()
        mds.process.kill()
        return mds.id, at_s

    def start_mds(self, name: str) -> float:
        """Start the MDS of that name again, and do not wait: when (epoch seconds)."""
        mds, at_s = self._mds(name), time.time()
        mds.begin()
        self._killed.pop(name, None)
        return at_s

    def fail(self, rank: int) -> float:
        """Have the monitor take the rank away now, as `ceph mds fail` does: when (epoch seconds).

        The MDS makes itself anew then, if it runs.
        """
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

    def owned(self, dead: int | None = None) -> dict[int, list[str]]:
        """By rank, from which directories on it is in charge, as each says; `/` is the root. `dead`:
        a rank whose server has died; as the others say, who know of it what borders on theirs."""
        told = {rank: self.ask(one.name, "get subtrees")
                for rank, one in sorted(self.ranks().items()) if rank != dead}
        found = {rank: reading.owned(subtrees, rank) for rank, subtrees in told.items()}
        if dead is not None:
            found[dead] = sorted({path for each in told.values() for path in reading.owned(each, dead)})
        return found

    def held(self, inodes, dead: int) -> set[int]:
        """Those of these inodes (numbers) of which a lock, at a server with another rank, waits for
        the word of `dead`'s."""
        others = [one.name for rank, one in self.ranks().items() if rank != dead]
        return {ino for ino in inodes for name in others
                if reading.waits_for(self.ask(name, "dump inode", number=ino), dead)}

    def moving(self) -> dict[str, list[str]]:
        """By MDS that has a rank and answers, directories on their way to another rank, as it says."""
        found = {}
        for one in self.ranks().values():
            with suppress(LabbookError):    # killed, and still in the map
                found[one.name] = reading.moving(self.ask(one.name, "get subtrees"))
        return found

    def export(self, path: str, rank: int, seconds: float = 30) -> None:
        """Have a directory, such as `/a/b`, move to another rank; returns when that one has it.

        The first time between two ranks takes some s. The balancer may take it back.
        SystemFailure when it does not come within `seconds`.
        """
        giver = in_charge(path, {one: had for one, had in self.owned().items() if one != rank})
        self.ask(self.ranks()[giver].name, "export dir", path=path, rank=rank)
        self.host.wait_for(lambda: path in self.owned()[rank], f"{path} to move to rank {rank}",
                           seconds, interval=ASK_SECONDS)

    def pinned(self, mount, name: str, rank: int, seconds: float = 60) -> str:
        """A folder, `NAME/home`, made through the mount where it is not there, once that rank is in
        charge of it: all that is made in it is that rank's, and nothing of it migrates.
        SystemFailure when it does not come to that within `seconds`."""
        done = mount.call(shlex.join((mount.host.python, "-I", "-S", "-c", PIN, name, str(rank))), seconds)
        if done is None or done.exit_code:
            raise SystemFailure(f"{name} was not pinned: {done.stderr.strip() if done else 'no answer'}")
        self.host.wait_for(lambda: f"/{name}" in self.owned()[rank], f"{name} to be rank {rank}'s",
                           seconds, interval=ASK_SECONDS)
        return f"{name}/home"

    def fault_log(self, since_s: float) -> Faults:
        """What happened since then (epoch seconds); see Faults."""
        return fault_log(self, since_s)

    def killed(self) -> dict[str, float]:
        """By name, when `kill` ended an MDS (epoch seconds) that has not been started again."""
        return dict(self._killed)

    def _forget(self):
        self._count = self.settings["active"]
        self._killed: dict[str, float] = {}
        self._dead: set[int] = set()    # lives of MDSs that the map may still have

    def _set(self, var: str, value) -> None:
        self.mon.tell("fs set", fs_name=self.fs_name, var=var, val=str(value).lower())

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


def in_charge(path: str, owned: dict[int, list[str]]) -> int:
    """The rank that has the nearest directory above `path`, or that one itself."""
    def depth(rank):
        above = [folder for folder in owned[rank] if folder == "/" or path == folder
                 or path.startswith(f"{folder}/")]
        return max(map(len, above), default=0)

    if not any(map(depth, owned)):
        raise InputError(f"no other rank is in charge of {path}", allowed=owned)
    return max(owned, key=depth)

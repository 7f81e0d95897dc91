"""A Ceph cluster with its file system: one monitor, OSDs, and metadata servers that come and go."""

import shlex
import time
from contextlib import suppress

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.systems.base import Needs
from labbook.systems.ceph import config
from labbook.systems.ceph.faults import Faults, fault_log
from labbook.systems.ceph.fsmap import Daemon, FsMap
from labbook.systems.ceph.mds import CephMDS
from labbook.systems.ceph.on_host.ceph_tools import reading
from labbook.systems.ceph.processes import ASK_SECONDS, PARTS, UP_SECONDS, CephCluster

PIN = """
import os, sys
os.makedirs(f"{sys.argv[1]}/home", exist_ok=True)   # of an empty one no rank takes charge
os.setxattr(sys.argv[1], "ceph.dir.pin", sys.argv[2].encode())
"""


class Ceph(CephCluster):
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

    def __init__(self, hosts, **settings):
        super().__init__(hosts, **settings)
        self._forget()

    def destroy(self) -> None:
        super().destroy()
        self._forget()

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


def in_charge(path: str, owned: dict[int, list[str]]) -> int:
    """The rank that has the nearest directory above `path`, or that one itself."""
    def depth(rank):
        above = [folder for folder in owned[rank] if folder == "/" or path == folder
                 or path.startswith(f"{folder}/")]
        return max(map(len, above), default=0)

    if not any(map(depth, owned)):
        raise InputError(f"no other rank is in charge of {path}", allowed=owned)
    return max(owned, key=depth)
